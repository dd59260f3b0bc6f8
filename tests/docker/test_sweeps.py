"""Whole sweeps on containers that mngr creates with a real Docker daemon."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from swarm_tui.hosts.events import HostAbandoned, HostDestroyed
from swarm_tui.journal.events import Launched
from swarm_tui.journal.folder import list_sweeps
from swarm_tui.model.event import Event
from tests.bench.sweep_speed import make_project
from tests.docker.daemon import IMAGE, DockerDaemon
from tests.git_project import GitProject
from tests.isolation import IsolatedMngr
from tests.sweep.sweeping import Program, offline
from tests.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs("docker", "dockerd", "debootstrap", "iptables", "ip", "ssh", "rsync"),
]

FIT = f"FROM {IMAGE}\nRUN apt-get update && apt-get install -y python3 python3-pytest procps\n"


def image(folder: Path, content: str) -> str:
    """Return the argument that builds the hosts from a Dockerfile."""
    folder.mkdir(exist_ok=True)
    (folder / "Dockerfile").write_text(content)
    return f"--build-arg={folder}"


def sweep_words(*more: str) -> tuple[str, ...]:
    words = ("run", "--headless", "--provider", "docker", "--integrator", "none")
    return (*words, *more, *offline("records"))


def program_in(project: GitProject, mngr: IsolatedMngr) -> Program:
    return Program(project.root, mngr.environment)


def events_so_far(program: Program) -> Sequence[Event]:
    return program.newest_events() if list_sweeps(program.folder) else ()


def test_command_of_readme_needs_no_image(tmp_path: Path, daemon: DockerDaemon, docker_mngr: IsolatedMngr) -> None:
    program = program_in(make_project(tmp_path, 8), docker_mngr)
    done = program.call(*sweep_words("--per-host", "4", "--slots", "16"))
    assert done.returncode == 0, done.stderr
    assert f"FROM {IMAGE}" in done.stderr
    assert daemon.left() == []
    hosts = program.status()["hosts"]
    assert {host["state"] for host in hosts} == {"released"}
    assert (len(hosts) <= 2, sum(host["finished"] for host in hosts)) == (True, 8)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (f"FROM {IMAGE}\n", "hosts of this image cannot run agents"),
        (f"FROM {IMAGE}\nRUN echo no compiler >&2; exit 3\n", "the image of the hosts cannot be built: no compiler"),
    ],
    ids=["no-python", "failing-build"],
)
def test_unfit_image_stops_after_one_host(
    tmp_path: Path, daemon: DockerDaemon, docker_mngr: IsolatedMngr, content: str, reason: str
) -> None:
    program = program_in(make_project(tmp_path, 8), docker_mngr)
    done = program.call(*sweep_words("--per-host", "2", "--slots", "8", image(tmp_path / "image", content)))
    assert done.returncode == 1
    assert "--build-arg" in done.stderr
    ended = [event for event in program.newest_events() if isinstance(event, HostDestroyed)]
    assert [(event.is_failed, reason in event.reason) for event in ended] == [(True, True)], done.stderr
    assert daemon.left() == []


def test_tests_of_killed_container_run_on_another(
    tmp_path: Path, daemon: DockerDaemon, docker_mngr: IsolatedMngr
) -> None:
    project = make_project(tmp_path, 4)
    for record in (project.root / "records").iterdir():
        record.write_text(record.read_text().replace("sleep = 0.8", "sleep = 30"))
    program = program_in(project, docker_mngr)
    started = program.start(*sweep_words("--per-host", "2", "--slots", "4", image(tmp_path / "image", FIT)))

    def has_agents() -> bool:
        launched = [event for event in events_so_far(program) if isinstance(event, Launched)]
        return len(launched) == 4

    until(has_agents, "four agents", seconds=400)
    victim = next(event.host for event in program.newest_events() if isinstance(event, Launched))
    daemon.docker("kill", f"mngr-{victim.partition('.')[0]}")
    assert started.wait(600) == 0
    gone = [(event.host, event.reason) for event in program.newest_events() if isinstance(event, HostAbandoned)]
    assert gone == [(victim, "mngr reports it as crashed")]
    status = program.status()
    assert {test["result"] for test in status["tests"]} == {"better"}
    assert {host["state"] for host in status["hosts"]} == {"released"}
    assert daemon.left() == []
    for _ in range(2):
        cleaned = program.call("clean", "--yes")
        assert cleaned.returncode == 0, cleaned.stderr
        assert "hosts" not in cleaned.stdout
