"""Sweeps by the real Claude Code: every situation an agent gets into, without anybody there and with somebody."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from swarm_tui.agents.claude.session_log import dollars_of
from swarm_tui.journal.recover import recover_journal
from swarm_tui.model.events import LoginLost
from swarm_tui.model.states import Result, State
from swarm_tui.model.trouble import Trouble, TroubleKind
from swarm_tui.triage.revisions import returned_fixes
from swarm_tui.triage.sweep_review import review_sweep
from tests.claude.lab import claude_lab, lost_messages
from tests.claude.scripted_model import Refusal
from tests.claude.sweep import Sweep
from tests.engine.sweeping import Program
from tests.isolation import IsolatedMngr, isolate_mngr
from tests.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def mngr(mngr_path: str) -> Iterator[IsolatedMngr]:
    with isolate_mngr(mngr_path) as isolated:
        yield isolated


TOKEN = "sk-ant-oat01-" + "0" * 60


def limit_headers(reset: int) -> dict[str, str]:
    """Return the headers by which the server says when a subscription's limit is over."""
    unified = "anthropic-ratelimit-unified"
    return {
        "retry-after": "3600",
        f"{unified}-status": "rejected",
        f"{unified}-reset": str(reset),
        f"{unified}-representative-claim": "five_hour",
        f"{unified}-5h-status": "rejected",
        f"{unified}-5h-reset": str(reset),
        f"{unified}-5h-utilization": "1.0",
    }


@pytest.fixture
def sweep(mngr: IsolatedMngr, claude: Path, tmp_path: Path) -> Iterator[Callable[..., Sweep]]:
    with contextlib.ExitStack() as stack:

        def begin(tests: list[str], *words: str, **variables: str) -> Sweep:
            lab = stack.enter_context(claude_lab(mngr, claude, tmp_path / "shop", tests, variables))
            return stack.enter_context(contextlib.closing(Sweep(lab, *words)))

        yield begin


def test_a_sweep_needs_no_flags(sweep: Callable[..., Sweep]) -> None:
    tests = ["total_clean", "vat_revised", "discount_garbage", "currency_limited", "stock_subagent", "receipt_compact"]
    running = sweep(tests, "--slots", "6", CLAUDE_CODE_AUTO_COMPACT_WINDOW="150000")
    limited = running.wait_for("currency_limited", lambda record: record.condition)
    assert limited.state is State.RUNNING
    assert limited.condition.startswith("API error 429, tries again (")
    compacting = running.wait_for("receipt_compact", lambda record: record.condition)
    assert (compacting.state, compacting.condition) == (State.RUNNING, "it compacts its conversation")
    assert running.end() == 0, running.story()
    state = running.state()
    results = {record.test.partition("::test_")[2]: record.result for record in state.tests()}
    assert results == {
        "total_clean": Result.CLEAN,
        "vat_revised": Result.IMPL_FIX,
        "discount_garbage": Result.IMPL_FIX,
        "currency_limited": Result.IMPL_FIX,
        "stock_subagent": Result.IMPL_FIX,
        "receipt_compact": Result.IMPL_FIX,
    }
    assert (state.integration.state, state.integration.fixes) == ("done", 5)
    folder = running.lab.program.newest()
    for record in state.tests():
        assert record.dollars is not None
        assert record.dollars > 0
        # The whole transcript: the hand-in is its last call, and its words are the last that the model says.
        transcript = (folder.agent(record.agent) / "transcript.jsonl").read_text()
        assert '"All is handed in."' in transcript, record.test
    assert lost_messages(running.lab) == []
    assert running.state().integrator is not None
    send_back(running.lab.program, "Take today's VAT", "No floats, please.", running.story)


def send_back(program: Program, title: str, comment: str, story: Callable[[], str]) -> None:
    """Send a fix back to its agent, and wait until what came of it has taken its place."""
    with review_sweep(program.newest()) as review:
        titles = [fix.title for fix in review.fixes]
    rank = titles.index(title) + 1
    sent = program.call("fixes", "--send-back", str(rank), "--why", comment)
    assert sent.returncode == 0, sent.stderr

    def came_back() -> bool:
        with review_sweep(program.newest()) as review:
            return bool(returned_fixes(review.outcome))

    until(came_back, "the fix that came back", seconds=400.0, describe=story)
    with review_sweep(program.newest()) as review:
        made = review.fixes[rank - 1]
        assert made.title == f"{title}: {comment}"
        assert returned_fixes(review.outcome)[made.id].comment == comment
        assert any("price * 119 / 100" in line for line in review.net_diff().lines)


def test_a_person_is_needed_and_answers_without_a_terminal(sweep: Callable[..., Sweep]) -> None:
    tests = ["receipt_permission", "stock_question", "vat_options", "discount_beside"]
    running = sweep(tests, "--slots", "4", "--integrator", "none")
    asked = running.wait_for("receipt_permission", lambda record: record.state is State.WAITING)
    assert (asked.question, asked.options) == (
        "it wants to use Bash: curl -s http://127.0.0.1:9/prices",
        ("yes", "no"),
    )
    running.answer("receipt_permission", "no, there is no network")
    beside = running.wait_for("discount_beside", lambda record: record.state is State.WAITING)
    assert beside.source == "hook"
    running.answer("discount_beside", "yes")
    options = running.wait_for("vat_options", lambda record: record.state is State.WAITING)
    assert (options.question, options.options) == ("Which rate is right?", ("19 percent", "16 percent"))
    running.answer("vat_options", "1")
    question = running.wait_for("stock_question", lambda record: record.state is State.WAITING)
    assert question.question == "May stock be negative on purpose, for orders that are late?"
    running.answer("stock_question", "No, never.")
    assert running.end() == 0, running.story()
    heard = [text for request in running.lab.model.requests for text in (*request.tool_results, *request.user_texts)]
    assert any("there is no network" in text for text in heard)
    assert any('"Which rate is right?"="19 percent"' in text for text in heard)
    assert any("No, never." in text for text in heard)


def test_with_ask_everything_is_asked(sweep: Callable[..., Sweep]) -> None:
    running = sweep(["vat_fixed"], "--permissions", "ask", "--integrator", "none")
    asked = running.wait_for("vat_fixed", lambda record: record.state is State.WAITING)
    assert asked.question.startswith("it wants to use Bash: ")
    assert running.lab.program.call("stop").returncode == 0
    running.end()


def test_a_lost_login_holds_the_queue_and_one_request_goes_on(sweep: Callable[..., Sweep]) -> None:
    running = sweep(["vat_fixed", "total_clean"], "--integrator", "none", "--slots", "1")
    lost = Refusal(403, "Your account has no access any more")
    running.lab.model.guard = lambda request: lost
    refused = running.wait_for("vat_fixed", lambda record: record.trouble)
    assert refused.trouble is not None
    assert (refused.mark, refused.trouble.kind) == ("hindered", TroubleKind.LOGIN_LOST)
    assert running.state().access.lost
    assert running.record("total_clean").state is State.QUEUED
    assert "login lost" in running.lab.program.call("status").stdout
    running.lab.model.guard = lambda request: None
    done = running.lab.program.call("request", "release")
    assert done.returncode == 0, done.stderr
    assert running.end() == 0, running.story()
    state = running.state()
    assert [record.result for record in state.tests()] == [Result.IMPL_FIX, Result.CLEAN]
    events = recover_journal(running.lab.program.newest().events).events
    assert sum(isinstance(event, LoginLost) for event in events) == 1


def test_the_end_of_a_subscriptions_limit_is_known_and_a_person_may_say_that_it_is_over(
    sweep: Callable[..., Sweep],
) -> None:
    words = ["--integrator", "none", "--slots", "1"]
    running = sweep(["vat_fixed"], *words, ANTHROPIC_API_KEY="", CLAUDE_CODE_OAUTH_TOKEN=TOKEN)
    reset = int(time.time()) + 3_600
    limit = Refusal(429, "This request would exceed your account's rate limit", limit_headers(reset))
    running.lab.model.guard = lambda request: limit
    limited = running.wait_for("vat_fixed", lambda record: record.trouble)
    assert limited.trouble == Trouble(kind=TroubleKind.LIMITED, until=reset, has_given_up=True)
    assert running.state().access.dial.until == reset
    running.lab.model.guard = lambda request: None
    done = running.lab.program.call("request", "release")
    assert done.returncode == 0, done.stderr
    assert running.end() == 0, running.story()
    assert running.record("vat_fixed").result is Result.IMPL_FIX


def test_without_a_login_nothing_is_begun(mngr: IsolatedMngr, claude: Path, tmp_path: Path) -> None:
    with claude_lab(mngr, claude, tmp_path / "shop", ["total_clean"], {"ANTHROPIC_API_KEY": ""}) as lab:
        del lab.program.environment["ANTHROPIC_API_KEY"]
        done = lab.program.call("run", "--headless")
        assert (done.returncode, done.stderr.count("\n")) == (2, done.stderr.count("\n"))
        assert "Claude is not logged in here" in done.stderr
        assert not (lab.project.root / ".swarm").exists()
        assert asyncio.run(mngr.adapter.list_agents()).agents == ()


def test_the_sum_is_what_the_model_served(sweep: Callable[..., Sweep]) -> None:
    tests = ["total_priced", "stock_subagent", "receipt_compact"]
    running = sweep(tests, "--integrator", "none", CLAUDE_CODE_AUTO_COMPACT_WINDOW="150000")
    assert running.end() == 0, running.story()
    served = sum(dollars_of(model, usage) or 0 for model, usage in running.lab.model.served)
    assert sum(record.dollars or 0 for record in running.state().tests()) == pytest.approx(served, abs=0.005)


def test_an_agent_over_its_budget_hands_in_and_nothing_further_is_launched(sweep: Callable[..., Sweep]) -> None:
    words = ["--slots", "1", "--budget", "1", "--budget-each", "1", "--integrator", "none"]
    running = sweep(["total_costly", "total_clean"], *words)
    running.wait_for("total_costly", lambda record: record.over_budget_at is not None)
    costly = running.wait_for("total_costly", lambda record: record.state is State.DONE)
    assert (costly.result, costly.harvest.end) == (Result.CLEAN, "archive")
    assert running.state().budget.is_used_up
    assert running.record("total_clean").state is State.QUEUED
    raised = running.lab.program.call("request", "budget", "5")
    assert raised.returncode == 0, raised.stderr
    assert running.end() == 0, running.story()
    served = sum(dollars_of(model, usage) or 0 for model, usage in running.lab.model.served)
    assert running.state().spending.dollars == pytest.approx(served, abs=0.005)


def test_a_tutorial_is_filled(mngr: IsolatedMngr, claude: Path, tmp_path: Path) -> None:
    with claude_lab(mngr, claude, tmp_path / "shop", ["total_clean"]) as lab:
        text = "#!/bin/bash\n# The tutorial of git\n\n# see what git says\ngit --version\n\n# make a folder for notes\n"
        lab.project.commit("A tutorial", {"tutorial.sh": text})
        done = lab.program.call("tutorial", "fill", "tutorial.sh", "--headless", "--agent", "claude")
        assert done.returncode == 0, done.stderr
        (record,) = lab.program.opened().state.tests()
        assert record.result is Result.TUTORIAL_FIX
        filled = lab.project.git("show", f"{lab.program.opened().state.integration.branch}:tutorial.sh")
        assert filled.endswith("# make a folder for notes\ngit init notes")


def test_a_tutorial_gets_its_tests(mngr: IsolatedMngr, claude: Path, tmp_path: Path) -> None:
    with claude_lab(mngr, claude, tmp_path / "shop", ["total_clean"]) as lab:
        block = "# see what git says\ngit --version"
        lab.project.commit("A tutorial", {"tutorial.sh": f"#!/bin/bash\n# The tutorial of git\n\n{block}\n"})
        done = lab.program.call("tutorial", "sync", "tutorial.sh", "tests", "--headless", "--python", sys.executable)
        assert done.returncode == 0, done.stderr
        state = lab.program.opened().state
        (record,) = state.tests()
        assert record.result is Result.BETTER
        branch = str(state.integration.branch)
        assert "see what git says" in lab.project.git("grep", "-h", "see what git says", branch, "--", "tests")
