"""A sweep with the real Claude Code on two hosts, with the login and the answers from this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.adapters.mngr_settings import user_settings
from swarm_tui.model.results import Result, State
from tests.claude.lab import KEY, claude_lab
from tests.claude.sweep import Sweep
from tests.isolation import isolate_mngr
from tests.loopback import LoopbackHost, can_have_own_disks, loopback_hosts, mngr_settings

pytestmark = [pytest.mark.slow, pytest.mark.needs("ssh", "sshd", "ssh-keygen", "rsync")]

SECRET = {"DEPLOY_TOKEN": "of-the-integrator-only"}


@pytest.fixture
def on_hosts(mngr_path: str, claude: Path, tmp_path: Path) -> Iterator[tuple[Sweep, list[LoopbackHost]]]:
    """Return a sweep that starts on two hosts, which have Claude Code and no login."""
    path = f"{claude}:{os.defpath}:/usr/local/bin"
    with isolate_mngr(mngr_path) as mngr, loopback_hosts(2, path=path, has_own_disks=can_have_own_disks()) as hosts:
        settings = user_settings(mngr.host_dir)
        assert settings is not None
        with settings.open("a") as file:
            file.write(mngr_settings(hosts))
        with claude_lab(mngr, claude, tmp_path / "shop", ["vat_fixed", "stock_question"], SECRET) as lab:
            words = ["--host", "h1", "--host", "h2", "--per-host", "1", "--integrator-env", "DEPLOY_TOKEN"]
            yield Sweep(lab, *words), hosts


def test_claude_works_on_hosts(on_hosts: tuple[Sweep, list[LoopbackHost]]) -> None:
    running, hosts = on_hosts
    question = running.wait_for("stock_question", lambda record: record.state is State.WAITING)
    assert question.question == "May stock be negative on purpose, for orders that are late?"
    host = next(host for host in hosts if host.access.name == question.host)
    given = host.run(f"cat {host.access.host_dir}/agents/*/env; tmux show-environment -g")
    assert KEY in given, "an agent logs in with what was exported here"
    assert "DEPLOY_TOKEN" not in given, "and gets nothing that only the integrator gets"
    running.answer("stock_question", "No, never.")
    assert running.end() == 0, running.story()
    state = running.state()
    assert [record.result for record in state.tests()] == [Result.IMPL_FIX, Result.IMPL_FIX]
    assert {record.host for record in state.tests()} == {"h1", "h2"}
    assert (state.integration.state, state.integration.fixes) == ("done", 2)
    folder = running.lab.program.newest()
    for record in state.tests():
        assert record.dollars
        assert '"The work is submitted."' in (folder.agent(record.agent) / "transcript.jsonl").read_text()
    cleaned = running.lab.program.call("clean", "--yes")
    assert cleaned.returncode == 0, cleaned.stderr
    left = [host.run(f"cd {host.access.host_dir}; ls agents copies swarm 2>/dev/null | grep -v ':$'") for host in hosts]
    assert [words.split() for words in left] == [[], []]
