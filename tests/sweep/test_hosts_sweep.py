"""Whole sweeps over real hosts on the loopback: the same end as on this machine, also when hosts and engines die."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.mngr_settings import user_settings
from swarm_tui.demo import RECORDS, sample_repository
from swarm_tui.journal.folder import list_sweeps
from swarm_tui.journal.open import OpenedSweep
from tests.isolation import IsolatedMngr
from tests.loopback import LoopbackHost, can_have_own_disks, loopback_hosts, mngr_settings
from tests.sweep.sweeping import Program, kill_engine
from tests.waiting import PATIENCE, until

pytestmark = [pytest.mark.slow, pytest.mark.needs("sshd", "ssh")]

TESTS = ("tests/e2e/test_change.py", "tests/e2e/test_fill.py")


@pytest.fixture(scope="module")
def hosts(isolated_mngr: IsolatedMngr) -> Iterator[list[LoopbackHost]]:
    """Return three hosts that mngr knows as h1, h2 and h3."""
    with loopback_hosts(3, path=_path(), has_own_disks=can_have_own_disks()) as hosts:
        settings = user_settings(isolated_mngr.host_dir)
        assert settings is not None
        before = settings.read_text() if settings.exists() else ""
        settings.write_text(f"{before}\n{mngr_settings(hosts)}")
        yield hosts
        settings.write_text(before)


def _path() -> str:
    return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@pytest.fixture
def program(isolated_mngr: IsolatedMngr, tmp_path: Path) -> Iterator[Program]:
    project = sample_repository(tmp_path / "project")
    program = Program(project, {**isolated_mngr.environment, "SWARM_MNGR": isolated_mngr.settings.path})
    yield program
    if list_sweeps(project):
        kill_engine(program.newest())


def sweep_words(*more: str) -> tuple[str, ...]:
    words = ("run", "--headless", "--agent", "offline", "--records", str(RECORDS), "--answers-itself", "--no-preflight")
    return (*words, "--ignore-load", "--python", sys.executable, "--speed", "30", *more, "--", *TESTS)


def on_hosts(*hosts: LoopbackHost) -> tuple[str, ...]:
    return tuple(word for host in hosts for word in ("--host", host.access.name))


def results_of(opened: OpenedSweep) -> dict[str, str]:
    return {record.test: record.mark for record in opened.state.tests()}


def tree_of(opened: OpenedSweep) -> str:
    repository = Repository.open(Path(opened.spec.repository))
    branch = opened.state.integration.branch
    assert branch is not None, opened.state.integration
    return repository.run("rev-parse", f"{branch}^{{tree}}").text


def left_on(host: LoopbackHost) -> str:
    """Return what of any sweep is on a host: records, copies, our folder, sessions, lines in its settings of git."""
    folder = host.access.host_dir
    script = f"ls {folder}/agents {folder}/copies {folder}/swarm; tmux ls; cat ~/.gitconfig | grep directory"
    return host.run(f"({script}) 2>/dev/null | grep -v ':$' | grep .")


def test_a_sweep_over_three_hosts_ends_as_one_here_though_a_host_and_the_engine_die(
    program: Program, hosts: list[LoopbackHost]
) -> None:
    foreign = hosts[0].run("tmux new-session -d -s mine 'sleep 1000'; echo begun")
    assert "begun" in foreign
    running = program.start(*sweep_words("--per-host", "2", *on_hosts(*hosts)))
    until(lambda: list_sweeps(program.folder), "the sweep")
    until(lambda: _is_any(program, "h2"), "an agent on h2", describe=lambda: _log(program))
    hosts[1].stop()
    until(lambda: _is_lost(program, "h2"), "the loss of h2", describe=lambda: _log(program))
    kill_engine(program.newest())
    running.wait(PATIENCE)
    hosts[1].start()
    resumed = program.call("resume", "--headless")
    assert resumed.returncode in (0, 1), resumed.stderr
    opened = program.opened()
    assert opened.state.ended_why == "finished", _log(program)
    assert {record.host for record in opened.state.tests()} == {"h1", "h2", "h3"}
    over_hosts = results_of(opened), tree_of(opened)
    cleaned = program.call("clean", "--yes")
    assert cleaned.returncode == 0, cleaned.stderr
    assert [left_on(host) for host in hosts] == [left_on(hosts[0]), "", ""]
    assert left_on(hosts[0]).split(":")[0] == "mine"
    hosts[0].run("tmux kill-session -t mine")

    here = program.call(*sweep_words("--slots", "4"))
    assert here.returncode in (0, 1), here.stderr
    assert (results_of(program.opened()), tree_of(program.opened())) == over_hosts


def test_a_host_on_which_the_set_up_fails_says_why(program: Program, hosts: list[LoopbackHost]) -> None:
    setup = "echo no compiler for this project >&2; exit 4"
    done = program.call(*sweep_words("--integrator", "none", "--setup", setup, *on_hosts(hosts[0])))
    assert done.returncode == 1, done.stderr
    assert "on h1 the set-up command failed with code 4" in done.stderr
    assert "no compiler for this project" in done.stderr


def _is_any(program: Program, host: str) -> bool:
    return any(record.host == host and record.agent_id for record in program.opened().state.tests())


def _is_lost(program: Program, name: str) -> bool:
    host = program.opened().state.hosts.get(name)
    return host is not None and host.lost_since is not None


def _log(program: Program) -> str:
    return "\n".join(line.text for line in program.opened().state.log)
