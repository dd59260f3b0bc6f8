"""The contract of all agent types: one sweep for each type, with one test for each situation."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from swarm_tui.journal.events import AgentStateChanged
from swarm_tui.journal.record import TestRecord
from swarm_tui.limits.events import ApiErrorKind
from swarm_tui.model.results import Result, State
from swarm_tui.money.events import ModelTokens
from swarm_tui.money.prices import dollars_for
from tests.claude.scripted_model import Refusal, Request, ScriptedModel
from tests.claude.sweep import AgentSweep
from tests.contract.lab import AgentLab, agent_lab
from tests.isolation import isolate_mngr
from tests.openai.installed import mngr_with_plugins
from tests.openai.scripted_model import OpenAIModel

pytestmark = pytest.mark.slow

WITH_MODEL: Final = ("clean", "fixed", "permission", "question", "limited")
SITUATIONS: Final = {
    "claude": WITH_MODEL,
    "codex": (*WITH_MODEL, "cost"),
    "opencode": (*WITH_MODEL, "cost"),
    "offline": ("clean", "fixed", "question"),
}
TEST_OF: Final = {
    "clean": "total_clean",
    "fixed": "vat_fixed",
    "permission": "receipt_permission",
    "question": "stock_question",
    "limited": "currency_limited",
}
REFUSALS: Final = 8
"""More than Codex and opencode repeat a request before they give a turn up."""


def having(situation: str) -> pytest.MarkDecorator:
    """Run a test with the sweep of each agent type that has a situation."""
    types = [name for name, situations in SITUATIONS.items() if situation in situations]
    return pytest.mark.parametrize("finished", types, indirect=True, scope="module")


@dataclass
class LimitedAgent:
    """Refuses the first requests of one agent after it has read its task."""

    refused: int = 0

    def __call__(self, request: Request) -> Refusal | None:
        is_concerned = any("::test_currency_limited" in result for result in request.tool_results)
        if not is_concerned or request.turns_taken != 2 or self.refused >= REFUSALS:
            return None
        self.refused += 1
        return Refusal(429, "This request would exceed your rate limit", {"retry-after": "1"})


@dataclass(frozen=True)
class FinishedSweep:
    """A sweep in which every agent has submitted its work."""

    lab: AgentLab
    sweep: AgentSweep
    permission: TestRecord | None
    """The agent that asked for permission, while it waited."""
    question: TestRecord

    def record(self, situation: str) -> TestRecord:
        return self.sweep.record(TEST_OF[situation])

    @property
    def heard(self) -> str:
        """Everything that the programs sent to the model."""
        requests = self.lab.model.requests if self.lab.model is not None else []
        return "\n".join(text for each in requests for text in (*each.tool_results, *each.user_texts))


@pytest.fixture(scope="module")
def finished(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FinishedSweep]:
    agent_type: str = request.param
    situations = SITUATIONS[agent_type]
    with contextlib.ExitStack() as stack:
        mngr = stack.enter_context(isolate_mngr(mngr_with_plugins()))
        root = tmp_path_factory.mktemp(agent_type) / "shop"
        lab = stack.enter_context(
            agent_lab(agent_type, mngr, root, [TEST_OF[name] for name in situations if name in TEST_OF])
        )
        if lab.model is not None:
            lab.model.guard = LimitedAgent()
        words = ("--slots", "2" if agent_type == "opencode" else "3", "--integrator", "none", *lab.words)
        sweep = stack.enter_context(contextlib.closing(AgentSweep(lab.program, agent_type, *words)))
        permission = None
        if "permission" in situations:
            permission = sweep.wait_for("receipt_permission", lambda record: record.state is State.WAITING)
            sweep.answer("receipt_permission", "no, there is no network")
        question = sweep.wait_for("stock_question", lambda record: record.state is State.WAITING and record.question)
        sweep.answer("stock_question", "No, never.")
        assert sweep.end() == 0, sweep.story()
        yield FinishedSweep(lab, sweep, permission, question)


def totals(rows: Iterable[tuple[int, int, int]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*rows, strict=True)))


@having("clean")
def test_good_test_is_clean(finished: FinishedSweep) -> None:
    assert finished.record("clean").result is Result.CLEAN


@having("fixed")
def test_fix_is_committed_and_submitted(finished: FinishedSweep) -> None:
    record = finished.record("fixed")
    assert (record.result, record.commits) == (Result.IMPL_FIX, 1)
    assert [each.passed for each in record.tries] == [False, True]


@having("permission")
def test_permission_is_asked_in_inbox_and_denied_with_words(finished: FinishedSweep) -> None:
    asked = finished.permission
    assert asked is not None
    assert (asked.source, asked.options) == ("hook", ("yes", "no"))
    assert asked.question.startswith("it asks to use ")
    assert "there is no network" in finished.heard
    assert finished.record("permission").result is Result.IMPL_FIX


@having("question")
def test_question_has_its_words_and_gets_an_answer(finished: FinishedSweep) -> None:
    assert finished.question.question == "May stock be negative on purpose, for orders that are late?"
    assert finished.record("question").result is Result.IMPL_FIX


@having("limited")
def test_limited_agent_is_shown_and_continues(finished: FinishedSweep) -> None:
    events = finished.lab.program.newest_events()
    seen = [
        each for each in events if isinstance(each, AgentStateChanged) and each.test.endswith("::test_currency_limited")
    ]
    assert ApiErrorKind.LIMITED in {each.api_error.kind for each in seen if each.api_error is not None}
    assert finished.record("limited").result is Result.IMPL_FIX


@having("clean")
def test_tokens_equal_those_of_the_model(finished: FinishedSweep) -> None:
    records = finished.sweep.state().tests()
    models = [each for record in records for each in record.models]
    match finished.lab.model:
        case None:
            assert models == []
        case ScriptedModel() as claude:
            assert sum(each.output for each in models) == sum(usage["output_tokens"] for _, usage in claude.served)
        case openai:
            used = [(each.input, each.output, each.cache_read) for each in models]
            served = [(each.input, each.output, each.cache_read) for each in openai.served]
            assert totals(used) == totals(served)


@having("cost")
def test_cost_equals_that_of_the_model(finished: FinishedSweep) -> None:
    assert isinstance(finished.lab.model, OpenAIModel)
    served = [ModelTokens(each.model, each.input, each.output, each.cache_read) for each in finished.lab.model.served]
    shown = [record.dollars for record in finished.sweep.state().tests()]
    assert sum(filter(None, shown)) == pytest.approx(dollars_for(finished.lab.prices, served), rel=1e-6)


@having("clean")
def test_transcript_has_the_last_message(finished: FinishedSweep) -> None:
    folder = finished.lab.program.newest()
    for record in finished.sweep.state().tests():
        transcript: Path = folder.agent(record.agent) / "transcript.jsonl"
        assert transcript.read_text().strip(), record.test
