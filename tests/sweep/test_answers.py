"""An answer reaches what it is meant for, once, or nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from swarm_tui.agents.hook import ANSWERS_FOLDER, EVENTS_PATH
from swarm_tui.journal.append import encode_event
from swarm_tui.journal.decode import parse_event
from swarm_tui.journal.events import AgentStateChanged
from swarm_tui.journal.recover import recover_journal
from swarm_tui.model.questions import AnswerRule
from swarm_tui.model.results import State
from swarm_tui.questions.events import BY_TYPING, QuestionAnswered, QuestionClosed, RuleAdded
from swarm_tui.questions.groups import GONE, item_of_turn
from swarm_tui.sweep import answers
from swarm_tui.sweep.answers import AnswerDelivery
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.job import TestJob
from swarm_tui.sweep.launch import launch
from swarm_tui.sweep.messages import AgentMessages
from swarm_tui.sweep.watch import read_new_events
from tests.sweep.scripted_sweep import QuickMngr, Watches, scripted_sweep
from tests.waiting import eventually

WAITS = 0.5
"""How long a hook of these tests may take, in place of several seconds."""


class Asking:
    """Agents that ask through a hook, and an engine that reads what they ask."""

    def __init__(self, context: SweepContext, mngr: QuickMngr) -> None:
        self.context, self.mngr = context, mngr
        self.agents = Watches()
        self.messages = AgentMessages(context, self.agents)
        self.answerer = AnswerDelivery(context, self.agents, self.messages)
        self.tests = [record.test for record in context.state.tests()]
        self.why = "answered"
        self.taken: list[dict[str, Any]] = []
        self.is_alive = True

    def state_dir(self, test: str) -> Path:
        return self.mngr.agents[self.context.state.records[test].agent].state_dir

    def write(self, test: str, **event: object) -> None:
        path = self.state_dir(test) / EVENTS_PATH
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(json.dumps({"at": time.time(), **event}) + "\n")

    def ask(self, number: int, identity: str = "1", command: str = "curl x", **more: object) -> None:
        event = {"event": "asked", "id": identity, "kind": "PermissionRequest", "tool": "Bash"}
        self.write(self.tests[number], **event, **{"input": {"command": command}} | more)

    def items(self) -> list[str]:
        return [asked.item for record in self.context.state.tests() for asked in record.open_questions]

    async def read(self) -> None:
        watches = list(self.agents.watches.values())
        for event in await read_new_events(self.context.hosts, watches, time.monotonic()):
            self.context.record(event)

    def hear(self) -> None:
        """Take the answers that lie ready, as the hooks do."""
        for test in self.tests:
            for path in (self.state_dir(test) / ANSWERS_FOLDER).glob("*.json"):
                answer = json.loads(path.read_text())
                if answer not in self.taken and self.is_alive:
                    self.taken.append({"test": test, **answer})
                    self.write(test, event="closed", id=path.stem, why=self.why)
                    path.rename(path.with_suffix(".taken"))

    async def live(self) -> None:
        while True:
            self.hear()
            await self.read()
            await asyncio.sleep(0.01)

    async def answer(self, *items: str, text: str = "yes", by: str = "ann") -> str:
        return (await self.answerer.answer(items, text, by=by)).words


@pytest.fixture
def begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[int], contextlib.AbstractAsyncContextManager[Asking]]:
    monkeypatch.setattr(answers, "TAKEN_WITHIN", WAITS)
    monkeypatch.setattr("swarm_tui.sweep.watch.SEARCH_INTERVAL", 0.0)

    @contextlib.asynccontextmanager
    async def asking(number: int) -> AsyncIterator[Asking]:
        mngr = QuickMngr(tmp_path / "mngr")
        context = scripted_sweep(tmp_path, number, mngr, agent_type="claude")
        agents = Asking(context, mngr)
        for test in agents.tests:
            await launch(context, TestJob(test, context.spec), 1)
            agents.agents.follow(context, test)
        life = asyncio.create_task(agents.live())
        try:
            yield agents
        finally:
            life.cancel()

    return asking


Begin = Callable[[int], contextlib.AbstractAsyncContextManager[Asking]]


async def until_asked(agents: Asking, number: int) -> list[str]:
    await eventually(lambda: len(agents.items()) == number, f"{number} asks")
    return agents.items()


async def test_an_answer_reaches_that_ask_and_no_other(begin: Begin) -> None:
    async with begin(2) as agents:
        agents.ask(0, "1", "curl x")
        agents.ask(0, "2", "curl y", subagent="Explore")
        agents.ask(1, "1", "curl x")
        items = await until_asked(agents, 3)
        assert await agents.answer(items[1], text="no, use the cache") == ""
        assert agents.taken == [{"test": agents.tests[0], "verdict": "deny", "text": "use the cache", "by": "ann"}]
        await eventually(lambda: agents.items() == [items[0], items[2]], "the other two")


async def test_nothing_is_answered_twice(begin: Begin) -> None:
    async with begin(1) as agents:
        agents.ask(0)
        (item,) = await until_asked(agents, 1)
        both = await asyncio.gather(agents.answer(item), agents.answer(item, by="bob", text="no"))
        assert both[0] == ""
        assert "already answered by ann" in both[1]
        assert await agents.answer(item, by="bob") == GONE
        assert [answer["by"] for answer in agents.taken] == ["ann"]


async def test_what_is_gone_or_was_never_asked_is_refused(begin: Begin) -> None:
    async with begin(1) as agents:
        agents.ask(0)
        (item,) = await until_asked(agents, 1)
        agents.write(agents.tests[0], event="closed", id="1", why="on the screen")
        await until_asked(agents, 0)
        assert await agents.answer(item) == GONE
        assert await agents.answer("nonsense") == GONE
        assert agents.taken == []


async def test_somebody_at_the_terminal_was_first(begin: Begin) -> None:
    async with begin(1) as agents:
        agents.why = "on the screen"
        agents.ask(0)
        (item,) = await until_asked(agents, 1)
        assert "it was closed first (on the screen): the answer was not used" in await agents.answer(item)


async def test_a_hook_that_has_died_is_said_and_its_ask_is_not_answered_again(begin: Begin) -> None:
    async with begin(2) as agents:
        agents.is_alive = False
        agents.ask(0)
        agents.ask(1)
        items = await until_asked(agents, 2)
        words = await agents.answer(*items)
        assert "the agent has not taken the answer yet: answer in its terminal" in words
        assert words.endswith("1 other not tried, because the first one failed")
        assert "already answered by ann" in await agents.answer(items[0], by="bob", text="no")


async def test_a_file_that_lies_there_already_is_an_answer(begin: Begin) -> None:
    async with begin(1) as agents:
        agents.is_alive = False
        agents.ask(0)
        (item,) = await until_asked(agents, 1)
        folder = agents.state_dir(agents.tests[0]) / ANSWERS_FOLDER
        folder.mkdir(parents=True)
        (folder / "1.json").write_text("mine")
        assert "it has been answered already" in await agents.answer(item)
        assert (folder / "1.json").read_text() == "mine"
        assert [path.name for path in folder.iterdir()] == ["1.json"]


async def test_a_folder_that_is_in_the_way_is_said(begin: Begin) -> None:
    async with begin(1) as agents:
        agents.ask(0)
        (item,) = await until_asked(agents, 1)
        (agents.state_dir(agents.tests[0]) / ANSWERS_FOLDER).write_text("a file")
        words = await agents.answer(item)
        assert "answered" in words
        assert agents.taken == []


async def test_a_group_is_answered_one_first_and_then_the_others(begin: Begin) -> None:
    async with begin(20) as agents:
        for number in range(20):
            agents.ask(number)
        items = await until_asked(agents, 20)
        agents.write(agents.tests[0], event="closed", id="1", why="on the screen")
        await until_asked(agents, 19)
        assert await agents.answer(*items) == f"19 of 20 answered; {GONE}"
        assert sorted(answer["test"] for answer in agents.taken) == sorted(agents.tests[1:])
        given = [event for event in agents.context.state.records.values() if event.open_questions]
        assert given == []


async def test_a_rule_answers_what_fits_it_and_says_so(begin: Begin) -> None:
    async with begin(2) as agents, asyncio.TaskGroup() as group:
        agents.ask(0, "1", "curl x")
        agents.ask(1, "1", "curl x; rm -rf /")
        items = await until_asked(agents, 2)
        rule = AnswerRule(id="r1", tool="Bash", way="begins", pattern="curl", by="ann")
        agents.context.record(RuleAdded(rule=rule))
        for _ in range(3):
            agents.answerer.apply_rules(group)
        await eventually(lambda: agents.items() == items[1:], "the one that does not fit")
        assert agents.taken == [{"test": agents.tests[0], "verdict": "allow", "by": "ann"}]
        assert agents.context.state.rule_uses == {"r1": 1}
        agents.ask(0, "2", "curl y")
        await eventually(lambda: len(agents.items()) == 2, "a further one")
        agents.answerer.apply_rules(group)
        await eventually(lambda: agents.items() == items[1:], "the one that does not fit")


async def test_words_answer_the_turn_that_was_shown_and_no_later_one(begin: Begin) -> None:
    async with begin(1) as agents:
        (test,) = agents.tests
        mngr_agent = agents.mngr.agents[agents.context.state.records[test].agent]
        agents.context.record(AgentStateChanged(test=test, state=State.WAITING, question="May stock be negative?"))
        item = item_of_turn(agents.context.state.records[test])
        agents.context.record(AgentStateChanged(test=test, state=State.RUNNING))
        assert await agents.answer(item, text="No, never.") == GONE
        agents.context.record(AgentStateChanged(test=test, state=State.WAITING, question="May stock be negative?"))
        assert await agents.answer(item, text="No, never.") == GONE
        again = item_of_turn(agents.context.state.records[test])
        assert await agents.answer(again, text="No, never.") == ""
        assert mngr_agent.received[1:] == ["No, never."]


async def test_a_message_is_no_answer(begin: Begin) -> None:
    async with begin(1) as agents:
        agents.ask(0)
        await until_asked(agents, 1)
        problems = await agents.messages.send(agents.tests, "yes", by="ann")
        assert "swarm-tui answer" in problems[0]
        assert len(agents.mngr.agents[agents.context.state.records[agents.tests[0]].agent].received) == 1


async def test_an_engine_that_takes_over_knows_what_is_asked(begin: Begin) -> None:
    async with begin(1) as agents:
        agents.ask(0, "1")
        agents.ask(0, "2", "curl y")
        items = await until_asked(agents, 2)
        agents.write(agents.tests[0], event="closed", id="1", why="on the screen")
        await until_asked(agents, 1)
        (test,) = agents.tests
        known = agents.context.state.last_seq
        agents.agents.watches.clear()
        agents.write(test, event="closed", id="2", why="on the screen")
        agents.ask(0, "3", "curl z")
        agents.agents.follow(agents.context, test, is_adopted=True)
        await eventually(lambda: agents.context.state.last_seq > known + 1, "what is new")
        events = recover_journal(agents.context.folder.events).events[known:]
        assert [(event.type, getattr(event, "question", None)) for event in events][:1] == [("question_closed", "2")]
        assert [asked.question.id for asked in agents.context.state.records[test].open_questions] == ["3"]
        assert items[1] not in agents.items()


async def test_a_dialog_that_a_typed_text_may_have_answered_says_so(begin: Begin) -> None:
    async with begin(1) as agents:
        (test,) = agents.tests
        launched_at = agents.context.state.records[test].launched_at or 0.0
        # Asked and answered before the launch was over, so that no engine has seen it open.
        agents.ask(0, "1", at=launched_at - 1)
        agents.write(test, event="closed", id="1", why="on the screen")
        agents.ask(0, "2", "curl y", at=launched_at + 1)
        await until_asked(agents, 1)
        agents.write(test, event="closed", id="2", why="on the screen")
        await until_asked(agents, 0)
        events = recover_journal(agents.context.folder.events).events
    closed = {event.question: event.why for event in events if isinstance(event, QuestionClosed)}
    assert closed == {"1": BY_TYPING, "2": "on the screen"}
    lines = [line for event in events if (line := event.log_line()) is not None and "question closed" in line.text]
    assert [line.level for line in lines] == ["warning", "info"]


def test_an_answer_is_in_the_journal_with_its_author_and_rule() -> None:
    event = QuestionAnswered(test="t", question="1", text="yes", by="ann", rule="r1")
    assert parse_event(encode_event(event)) == event
