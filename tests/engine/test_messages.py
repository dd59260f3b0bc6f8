"""A message reaches an agent that lives, and never what an agent has left in its terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_tui.engine.launch import launch
from swarm_tui.engine.live_agents import LiveAgents
from swarm_tui.engine.messages import MessageSender
from swarm_tui.engine.one_test_task import OneTestTask
from swarm_tui.journal.recover import recover_journal
from swarm_tui.model.events import MessageSent
from swarm_tui.places.place import AgentStatuses, PlaceUnreachable
from tests.engine.rehearsal import QuickMngr, rehearse
from tests.places.fake_place import FakePlace


class Unreachable(FakePlace):
    """A place that does not answer."""

    async def agent_statuses(self) -> AgentStatuses:
        raise PlaceUnreachable("ps is not installed")


@pytest.mark.parametrize(
    ("seen", "problem"),
    [
        ({}, ""),
        ({"state": "RUNNING"}, ""),
        ({"state": "DONE"}, "does not run any more"),
        ({"state": "STOPPED"}, "does not run any more"),
        ({"state": "REPLACED"}, "does not run any more"),
        ({"is_at_prompt": True}, "does not run any more"),
        (None, "cannot be seen: ps is not installed"),
    ],
)
async def test_a_text_is_typed_only_where_an_agent_reads_it(
    tmp_path: Path, seen: dict[str, object] | None, problem: str
) -> None:
    mngr, live_agents = QuickMngr(tmp_path / "mngr"), LiveAgents()
    context = rehearse(tmp_path, 1, mngr)
    test = next(context.state.tests()).test
    task = OneTestTask(test, context.spec)
    await launch(context, task, 1)
    record = context.state.records[test]
    live_agents.watch_agent(context.spec, task, record, is_adopted=False)
    context.place = Unreachable(mngr) if seen is None else FakePlace(mngr)
    for name, value in (seen or {}).items():
        setattr(mngr.agents[record.agent], name, value)
    problems = await MessageSender(context, live_agents).send([test], "rm -rf build", by="ada")
    assert mngr.agents[record.agent].received == ([] if problem else ["rm -rf build"])
    *_, told = recover_journal(context.folder.events).events
    assert isinstance(told, MessageSent)
    assert problem in told.error
    assert bool(problems) is bool(told.error) is bool(problem)
