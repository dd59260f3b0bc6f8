"""Deliver answers of users and rules to agents: each to exactly the question that it answers, once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from swarm_tui.agents.observer import AnswerFile
from swarm_tui.errors import SwarmError
from swarm_tui.hosts.protocol import AgentFile
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.formatting import counted
from swarm_tui.model.questions import OpenQuestion, answer_problem, rule_for
from swarm_tui.model.text import plain
from swarm_tui.questions.events import QuestionAnswered
from swarm_tui.questions.groups import GONE, find_wait
from swarm_tui.sweep.agent_context import AgentContext, AgentWatches
from swarm_tui.sweep.messages import AgentMessages

TAKEN_WITHIN: Final = 6.0
_POLL: Final = 0.05


class AnswerFailed(SwarmError):
    """An answer did not reach its question."""


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """The result of answering some items."""

    answered: int
    wanted: int
    problems: tuple[str, ...] = ()
    """Why items were not answered, one for each attempt."""

    @property
    def words(self) -> str:
        """The result as a sentence."""
        untried = self.wanted - self.answered - len(self.problems)
        several = [f"{self.answered} of {self.wanted} answered"] if self.wanted > 1 else []
        rest = [f"{counted(untried, 'other')} not tried, because the first one failed"] if untried else []
        return "; ".join((*several, *self.problems, *rest))


@dataclass(slots=True)
class AnswerDelivery:
    """Answers the questions of the agents of one sweep."""

    context: AgentContext
    agents: AgentWatches
    messages: AgentMessages
    _under_way: set[str] = field(default_factory=set)
    _tried_by_rule: set[str] = field(default_factory=set)

    def apply_rules(self, group: asyncio.TaskGroup) -> None:
        """Start answering the questions that match a rule."""
        if not self.context.state.rules:
            return
        for test in self.agents.watches:
            record = self.context.state.record_of(test)
            for open_question in record.open_questions:
                is_open = (
                    open_question.answered_at is None
                    and open_question.item not in self._under_way | self._tried_by_rule
                )
                rule = rule_for(self.context.state.rules, open_question, record.own_places) if is_open else None
                if rule is not None:
                    self._tried_by_rule.add(open_question.item)
                    group.create_task(self.answer([open_question.item], rule.answer, by=rule.by, rule=rule.id))

    async def answer(self, items: Sequence[str], text: str, *, by: str, rule: str = "") -> AnswerResult:
        """Answer the first of these items, and the others if that succeeds."""
        problems: list[str] = []
        wanted = list(dict.fromkeys(items))
        waiting = deque(wanted)
        while waiting:
            problem, is_over = await self._try_to_answer(waiting.popleft(), text, by, rule)
            if not problem:
                others = await asyncio.gather(*(self._try_to_answer(item, text, by, rule) for item in waiting))
                problems += [problem for problem, _ in others if problem]
                return AnswerResult(len(wanted) - len(problems), len(wanted), tuple(problems))
            problems.append(problem)
            if not is_over:
                break
        return AnswerResult(0, len(wanted), tuple(problems))

    async def _try_to_answer(self, item: str, text: str, by: str, rule: str) -> tuple[str, bool]:
        """Answer one item. Return the problem, and whether the question was already closed, so that others may work."""
        wait = find_wait(self._records(), item)
        if wait is None:
            return GONE, True
        record, open_question = wait
        name = record.agent or plain(record.test, 200)
        if open_question is not None and open_question.answered_at is not None:
            return f"{name}: already answered by {open_question.answered_by or 'someone'}", True
        if item in self._under_way:
            return f"{name}: already being answered", True
        self._under_way.add(item)
        try:
            if open_question is None:
                problems = await self.messages.send([record.test], text, by=by)
                return "; ".join(problems), False
            await self._answer_question(record, open_question, text, by, rule)
        except AnswerFailed as error:
            self.context.note(f"the answer of {by} was not given: {error.message}", level="warning", test=record.test)
            return f"{name}: {error.message}", False
        finally:
            self._under_way.discard(item)
        return "", False

    def _records(self) -> list[TestRecord]:
        return [self.context.state.record_of(test) for test in self.agents.watches]

    async def _answer_question(
        self, record: TestRecord, open_question: OpenQuestion, text: str, by: str, rule: str
    ) -> None:
        problem = answer_problem(open_question.question, text)
        watch = self.agents.watches.get(record.test)
        if watch is None or watch.observer is None:
            problem = "its agent is no longer running"
        if problem or watch is None or watch.observer is None:
            raise AnswerFailed(problem)
        file = watch.observer.answer(open_question.question, text, by)
        await self._write(AgentFile(watch.address, file.path), file)
        self.context.record(
            QuestionAnswered(test=record.test, question=open_question.question.id, text=text, by=by, rule=rule)
        )
        why = await self._how_it_ended(record.test, open_question)
        if why is None:
            raise AnswerFailed("the agent has not taken the answer yet: answer in its terminal")
        if why != "answered":
            raise AnswerFailed(f"it was closed first ({why or 'its hook has exited'}): the answer was not used")

    async def _write(self, file: AgentFile, answer: AnswerFile) -> None:
        try:
            await self.context.hosts[file.agent.host].write_file(file.full_path, answer.content, is_new=True)
        except FileExistsError:
            raise AnswerFailed("it has been answered already") from None
        except (OSError, SwarmError) as error:
            raise AnswerFailed(f"the answer could not be written: {error}") from error

    async def _how_it_ended(self, test: str, open_question: OpenQuestion) -> str | None:
        """Wait for the hook to take an answer. Return how the question was closed, or None if it is still open."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + TAKEN_WITHIN
        while loop.time() < deadline:
            watch = self.agents.watches.get(test)
            ended = watch.observer.closed_questions if watch is not None and watch.observer is not None else {}
            if open_question.question.id in ended:
                return ended[open_question.question.id].why
            if watch is None:
                return "its agent is no longer running"
            await asyncio.sleep(_POLL)
        return None
