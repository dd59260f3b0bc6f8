"""Whole sweeps on containers that mngr creates with a real Docker daemon."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.sweep_speed import make_project
from tests.docker.daemon import IMAGE, DockerDaemon
from tests.git_project import GitProject
from tests.isolation import IsolatedMngr
from tests.sweep.sweeping import Program, offline

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


def test_hosts_of_finished_sweep_are_removed(tmp_path: Path, daemon: DockerDaemon, docker_mngr: IsolatedMngr) -> None:
    program = program_in(make_project(tmp_path, 8), docker_mngr)
    fit = image(tmp_path / "image", FIT)
    done = program.call(*sweep_words("--per-host", "4", "--slots", "8", fit))
    assert done.returncode == 0, done.stderr
    assert daemon.left() == []
    status = program.status()
    assert [(host["state"], host["finished"]) for host in status["hosts"]] == [("released", 4), ("released", 4)]
