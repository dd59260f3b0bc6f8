"""`swarm-tui record-connect`, as mngr calls it when a person connects to a real agent."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from pathlib import Path

import pexpect
import pytest

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.cli.main import run_command_line
from swarm_tui.cli.record_connect import connect_command, recording_path
from swarm_tui.errors import SwarmError
from tests.isolation import IsolatedMngr
from tests.report.sweeps import SWEEP, make_sweep
from tests.waiting import PATIENCE

BACK = "\x02d"


def press_until(child: pexpect.spawn[str], keys: str, shown: str) -> None:
    """Press keys until they were taken: while a terminal is being set up, or faster than a person, they may not be."""
    deadline = time.monotonic() + PATIENCE
    child.send(keys)
    while child.expect([shown, pexpect.TIMEOUT], timeout=2):
        assert time.monotonic() < deadline, f"{keys!r} never gave {shown!r}"
        child.send(keys)


@pytest.mark.slow
def test_connecting_through_mngr_records_what_is_seen_into_the_agents_folder(isolated_mngr: IsolatedMngr) -> None:
    made = make_sweep(isolated_mngr.root / "recorded", 1)
    agent = made.tests[0].agent
    request = CreateRequest(
        name=agent, source=isolated_mngr.repository, command=(str(isolated_mngr.agent),), transfer="none"
    )
    asyncio.run(isolated_mngr.adapter.create(request))
    words = ["connect", agent, "--connect-command", f"{sys.executable} -m swarm_tui record-connect"]
    child = pexpect.spawn(
        isolated_mngr.settings.path,
        words,
        cwd=str(made.project.root),
        env=isolated_mngr.environment | {"TERM": "xterm-256color", "PYTHONPATH": str(Path(__file__).parents[2])},
        dimensions=(24, 90),
        encoding="utf-8",
        timeout=PATIENCE,
    )
    child.delaybeforesend = None
    child.expect(r"agent\*")
    press_until(child, "hello recorder\r", "heard: hello recorder")
    press_until(child, BACK, "recorded: ")
    child.expect(pexpect.EOF)
    casts = list((made.folder.agent(agent) / "recordings").glob("connect-*.cast"))
    recorded = [cast.read_text() for cast in casts]
    asyncio.run(isolated_mngr.adapter.destroy([agent]))
    shutil.rmtree(made.project.root)
    assert child.wait() == 0
    assert len(recorded) == 1
    assert "heard: hello recorder" in recorded[0]


def test_a_recording_goes_to_its_agent_in_its_sweep_or_to_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = make_sweep(tmp_path / "project", 2)
    agent = made.tests[1].agent
    inside = tmp_path / "project" / "e2e"
    inside.mkdir()
    recordings = made.folder.agent(agent) / "recordings"
    assert recording_path(agent, None, inside).parent == recordings
    assert recording_path(agent, SWEEP[:8], inside).parent == recordings
    assert recording_path(f"swarm-{SWEEP}-not-pulled-yet", None, inside).parent.parent.parent == recordings.parents[1]
    elsewhere = recording_path("somebody", None, tmp_path)
    assert elsewhere.parent == tmp_path / "state" / "swarm-tui" / "recordings" / "somebody"
    with pytest.raises(SwarmError, match="invalid agent name"):
        recording_path("../../evil", SWEEP, inside)


def test_a_local_agent_is_reached_by_tmux_and_a_remote_one_by_mngr() -> None:
    told = {"MNGR_HOST_IS_LOCAL": "true", "MNGR_SESSION_NAME": "mngr-a"}
    assert connect_command("a", told) == ["tmux", "attach-session", "-t", "=mngr-a"]
    assert connect_command("a", told | {"MNGR_HOST_IS_LOCAL": "false"}) == ["mngr", "connect", "a"]


def test_called_by_hand_it_says_who_calls_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("MNGR_AGENT_NAME", raising=False)
    assert run_command_line(["record-connect"]) == 2
    assert "--connect-command 'swarm-tui record-connect'" in capsys.readouterr().err
