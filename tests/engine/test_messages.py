"""A message reaches an agent that lives, and never what an agent has left in its terminal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from swarm_tui.adapters.probe import AgentState, Probed, ProbeFailure
from swarm_tui.engine.launch import launch
from swarm_tui.engine.live_agents import LiveAgents
from swarm_tui.engine.messages import MessageSender
from swarm_tui.journal.recover import recover_journal
from swarm_tui.model.events import MessageSent
from tests.engine.rehearsal import QuickMngr, StillProbe, rehearse


@dataclass
class OneLook:
    """Sees of all agents what a test wants it to see."""

    mngr: QuickMngr
    state: AgentState = "WAITING"
    is_at_prompt: bool = False
    failure: str = ""

    async def probe(self) -> Probed | ProbeFailure:
        if self.failure:
            return ProbeFailure(self.failure, "")
        seen = (await StillProbe(self.mngr).probe()).agents
        return Probed(
            {name: replace(one, state=self.state, is_at_prompt=self.is_at_prompt) for name, one in seen.items()}
        )


@pytest.mark.parametrize(
    ("seen", "problem"),
    [
        ({}, ""),
        ({"state": "RUNNING"}, ""),
        ({"state": "DONE"}, "does not run any more"),
        ({"state": "STOPPED"}, "does not run any more"),
        ({"state": "REPLACED"}, "does not run any more"),
        ({"is_at_prompt": True}, "does not run any more"),
        ({"failure": "ps is not installed"}, "cannot be seen: ps is not installed"),
    ],
)
async def test_a_text_is_typed_only_where_an_agent_reads_it(
    tmp_path: Path, seen: dict[str, object], problem: str
) -> None:
    mngr, fleet = QuickMngr(tmp_path / "mngr"), LiveAgents()
    context = rehearse(tmp_path, 1, mngr)
    test = next(context.state.tests()).test
    await launch(context, test, 1)
    record = context.state.records[test]
    fleet.join(context.spec, record, is_adopted=False)
    probe = OneLook(mngr, **seen)  # type: ignore[arg-type]
    problems = await MessageSender(context, fleet, probe).send([test], "rm -rf build", by="ada")
    assert mngr.agents[record.agent].received == ([] if problem else ["rm -rf build"])
    *_, told = recover_journal(context.folder.events).events
    assert isinstance(told, MessageSent)
    assert problem in told.error
    assert bool(problems) is bool(told.error) is bool(problem)
