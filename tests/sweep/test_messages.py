"""A message reaches an agent that lives, and never what an agent has left in its terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_tui.hosts.protocol import AgentStatuses, HostUnreachable
from swarm_tui.hosts.registry import Hosts
from swarm_tui.journal.events import MessageSent
from swarm_tui.journal.recover import recover_journal
from swarm_tui.sweep.job import TestJob
from swarm_tui.sweep.launch import launch
from swarm_tui.sweep.messages import AgentMessages
from tests.hosts.fake_host import FakeHost
from tests.sweep.scripted_sweep import QuickMngr, Watches, scripted_sweep


class Unreachable(FakeHost):
    """A host that does not answer."""

    async def statuses(self, *, follow: bool = False) -> AgentStatuses:
        raise HostUnreachable("ps is not installed")


@pytest.mark.parametrize(
    ("seen", "problem"),
    [
        ({}, ""),
        ({"state": "RUNNING"}, ""),
        ({"state": "DONE"}, "is no longer running"),
        ({"state": "STOPPED"}, "is no longer running"),
        ({"state": "REPLACED"}, "is no longer running"),
        ({"is_at_prompt": True}, "is no longer running"),
        (None, "its state is unknown: ps is not installed"),
    ],
)
async def test_a_text_is_typed_only_where_an_agent_reads_it(
    tmp_path: Path, seen: dict[str, object] | None, problem: str
) -> None:
    mngr, live = QuickMngr(tmp_path / "mngr"), Watches()
    context = scripted_sweep(tmp_path, 1, mngr)
    test = next(context.state.tests()).test
    await launch(context, TestJob(test, context.spec), 1)
    record = context.state.records[test]
    live.follow(context, test)
    context.hosts = Hosts([Unreachable(mngr) if seen is None else FakeHost(mngr)])
    for name, value in (seen or {}).items():
        setattr(mngr.agents[record.agent], name, value)
    problems = await AgentMessages(context, live).send([test], "rm -rf build", by="ada")
    assert mngr.agents[record.agent].received == ([] if problem else ["rm -rf build"])
    *_, told = recover_journal(context.folder.events).events
    assert isinstance(told, MessageSent)
    assert problem in told.error
    assert bool(problems) is bool(told.error) is bool(problem)
