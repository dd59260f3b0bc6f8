"""Agents that get stuck are recorded with the reason, nudged once at most, and commits are counted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from swarm_tui.hosts.protocol import AgentAddress, FileSlice
from swarm_tui.journal.events import MessageSent
from swarm_tui.journal.recover import recover_journal
from swarm_tui.journal.requests import RequestKind, append_request
from swarm_tui.journal.work_events import CommitsCounted
from swarm_tui.limits.events import AgentStuck
from swarm_tui.sweep.agent_files import COMMIT_LOG, INTERVAL, CommitLog
from swarm_tui.sweep.guards import StuckAgents
from swarm_tui.sweep.requests import RequestHandler
from swarm_tui.sweep.run import RunningSweep
from tests.git_project import GitProject
from tests.sweep.scripted_sweep import IdleMngr, scripted_sweep
from tests.waiting import PATIENCE, eventually


@pytest.mark.parametrize("is_nudging", [True, False])
async def test_a_stuck_agent_is_recorded_and_nudged_once(tmp_path: Path, is_nudging: bool) -> None:
    context = scripted_sweep(tmp_path, 1, IdleMngr(tmp_path / "mngr"), is_nudging=is_nudging)
    runner = RunningSweep(context, tick=0.01)
    working = asyncio.ensure_future(runner.run(RequestHandler(context, runner)))
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        await eventually(lambda: bool(runner.watches), "the agent")
        (watch,) = runner.watches.values()
        stuck = StuckAgents(context, runner, runner.messages)
        record = next(context.state.tests())
        # It loops, gets on, and loops again.
        for number in range(1, 4):
            for _ in range(5):
                watch.repeats.add("Bash", {"command": f"loop {number}"})
            stuck.work(group, record.since + number * 100.0)
            assert next(context.state.tests()).stuck.endswith(f"Bash loop {number}")
            watch.repeats.add("Bash", {"command": f"new {number}"})
            stuck.work(group, record.since + number * 100.0 + 50.0)
            assert next(context.state.tests()).stuck == ""
        await eventually(lambda: not is_nudging or _sent(context.folder.events), "the message")
        append_request(context.folder, RequestKind.STOP_SWEEP)
        append_request(context.folder, RequestKind.STOP, tests=[record.test])
        await working
    assert len(_sent(context.folder.events)) == is_nudging
    events = [event for event in recover_journal(context.folder.events).events if isinstance(event, AgentStuck)]
    assert [bool(event.reason) for event in events] == [True, False] * 3
    assert [event.is_nudged for event in events] == [is_nudging, *[False] * 5]


def _sent(journal: Path) -> list[MessageSent]:
    return [event for event in recover_journal(journal).events if isinstance(event, MessageSent)]


def test_commits_are_counted_in_gits_own_log(tmp_path: Path) -> None:
    project = GitProject(tmp_path)
    project.commit("one", {"a": "1"})
    log = CommitLog("t", AgentAddress("a", "a-1", "s", str(tmp_path), str(tmp_path)))

    def read(now: float) -> list[CommitsCounted]:
        content = (tmp_path / COMMIT_LOG).read_bytes()
        offset = log.request.offset
        return log.read(FileSlice(len(content), offset, content[offset:]), now)

    assert read(0.0) == [CommitsCounted(test="t", commits=1)]
    project.git("checkout", "-q", "-b", "other")
    assert read(10.0) == []
    project.commit("two", {"a": "2"})
    project.git("commit", "-q", "--amend", "-m", "more")
    assert read(INTERVAL - 1) == []
    assert read(INTERVAL + 1) == [CommitsCounted(test="t", commits=3)]
    assert log.read(None, 100.0) == []
