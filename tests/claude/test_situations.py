"""Sweeps with the real Claude Code: every situation of an agent, with and without a user."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from swarm_tui.agents.types.claude.session_log import dollars_of
from swarm_tui.journal.recover import recover_journal
from swarm_tui.limits.events import ApiError, ApiErrorKind, LoginLost
from swarm_tui.model.results import Result, State
from swarm_tui.review.open import review_sweep, revised_changes
from tests.claude.lab import claude_lab, lost_messages
from tests.claude.scripted_model import Refusal
from tests.claude.sweep import LONGEST, Sweep
from tests.isolation import IsolatedMngr, isolate_mngr
from tests.sweep.sweeping import Program
from tests.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def mngr(mngr_path: str) -> Iterator[IsolatedMngr]:
    with isolate_mngr(mngr_path) as isolated:
        yield isolated


TOKEN = "sk-ant-oat01-" + "0" * 60


def limit_headers(reset: int) -> dict[str, str]:
    """Return the response headers that tell when a subscription's limit ends."""
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
            # mngr splits some of its arguments at a colon.
            lab = stack.enter_context(claude_lab(mngr, claude, tmp_path / "a:b" / "shop", tests, variables))
            return stack.enter_context(contextlib.closing(Sweep(lab, *words)))

        yield begin


def test_a_sweep_needs_no_flags(sweep: Callable[..., Sweep]) -> None:
    tests = ["total_clean", "vat_revised", "discount_garbage", "currency_limited", "stock_subagent", "receipt_compact"]
    running = sweep(tests, "--slots", "6", CLAUDE_CODE_AUTO_COMPACT_WINDOW="150000")
    assert running.wait_until_seen("currency_limited", "API error 429, retrying (").state is State.RUNNING
    assert running.wait_until_seen("receipt_compact", "compacting its conversation").state is State.RUNNING
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
        # The complete transcript: the submission is its last call, and its last message is the model's last message.
        transcript = (folder.agent(record.agent) / "transcript.jsonl").read_text()
        assert '"The work is submitted."' in transcript, record.test
    assert lost_messages(running.lab) == []
    assert running.state().integrator is not None
    send_back(running.lab.program, "Take today's VAT", "No floats, please.", running.story)


def send_back(program: Program, title: str, comment: str, story: Callable[[], str]) -> None:
    """Send a fix back to its agent, and wait until the revision has replaced it."""
    with review_sweep(program.newest()) as review:
        titles = [fix.title for fix in review.fixes]
    rank = titles.index(title) + 1
    sent = program.call("fixes", "--send-back", str(rank), "--why", comment)
    assert sent.returncode == 0, sent.stderr

    def came_back() -> bool:
        with review_sweep(program.newest()) as review:
            return bool(revised_changes(review.outcome))

    until(came_back, "the fix that came back", seconds=LONGEST, describe=story)
    with review_sweep(program.newest()) as review:
        made = review.fixes[rank - 1]
        assert made.title == f"{title}: {comment}"
        assert revised_changes(review.outcome)[made.id].comment == comment
        assert any("price * 119 / 100" in line for line in review.net_diff().lines)


def test_questions_are_answered_without_terminal(sweep: Callable[..., Sweep]) -> None:
    tests = ["receipt_permission", "stock_question", "vat_options", "discount_beside"]
    running = sweep(tests, "--slots", "4", "--integrator", "none")
    asked = running.wait_for("receipt_permission", lambda record: record.state is State.WAITING)
    assert (asked.question, asked.options) == (
        "it asks to use Bash: curl -s http://127.0.0.1:9/prices",
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


def test_permission_ask_asks_for_everything(sweep: Callable[..., Sweep]) -> None:
    running = sweep(["vat_fixed"], "--permissions", "ask", "--integrator", "none")
    asked = running.wait_for("vat_fixed", lambda record: record.state is State.WAITING)
    assert asked.question.startswith("it asks to use Bash: ")
    assert running.lab.program.call("stop").returncode == 0
    running.end()


def test_lost_login_holds_queue_until_it_returns(sweep: Callable[..., Sweep]) -> None:
    running = sweep(["vat_fixed", "total_clean"], "--integrator", "none", "--slots", "1")
    lost = Refusal(403, "Your account has no access any more")
    running.lab.model.guard = lambda request: lost
    refused = running.wait_for("vat_fixed", lambda record: record.api_error)
    assert refused.api_error is not None
    assert (refused.mark, refused.api_error.kind) == ("api_error", ApiErrorKind.LOGIN_LOST)
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


def test_subscription_limit_ends_at_time_or_by_user(
    sweep: Callable[..., Sweep],
) -> None:
    words = ["--integrator", "none", "--slots", "1"]
    running = sweep(["vat_fixed"], *words, ANTHROPIC_API_KEY="", CLAUDE_CODE_OAUTH_TOKEN=TOKEN)
    reset = int(time.time()) + 3_600
    limit = Refusal(429, "This request would exceed your account's rate limit", limit_headers(reset))
    running.lab.model.guard = lambda request: limit
    limited = running.wait_for("vat_fixed", lambda record: record.api_error)
    assert limited.api_error == ApiError(kind=ApiErrorKind.LIMITED, until=reset, has_given_up=True)
    assert running.state().access.throttle.until == reset
    running.lab.model.guard = lambda request: None
    done = running.lab.program.call("request", "release")
    assert done.returncode == 0, done.stderr
    assert running.end() == 0, running.story()
    assert running.record("vat_fixed").result is Result.IMPL_FIX


def test_missing_login_prevents_the_sweep(mngr: IsolatedMngr, claude: Path, tmp_path: Path) -> None:
    with claude_lab(mngr, claude, tmp_path / "shop", ["total_clean"], {"ANTHROPIC_API_KEY": ""}) as lab:
        del lab.program.environment["ANTHROPIC_API_KEY"]
        done = lab.program.call("run", "--headless")
        assert (done.returncode, done.stderr.count("\n")) == (2, done.stderr.count("\n"))
        assert "Claude is not logged in on this machine" in done.stderr
        assert not (lab.project.root / ".swarm").exists()
        assert asyncio.run(mngr.adapter.list_agents()).agents == ()


def test_cost_equals_usage_of_model(sweep: Callable[..., Sweep]) -> None:
    tests = ["total_priced", "stock_subagent", "receipt_compact"]
    running = sweep(tests, "--integrator", "none", CLAUDE_CODE_AUTO_COMPACT_WINDOW="150000")
    assert running.end() == 0, running.story()
    served = sum(dollars_of(model, usage) or 0 for model, usage in running.lab.model.served)
    assert sum(record.dollars or 0 for record in running.state().tests()) == pytest.approx(served, abs=0.005)


def test_clean_removes_copies_from_config_in_home(sweep: Callable[..., Sweep]) -> None:
    running = sweep(["total_priced"], "--integrator", "none")
    assert running.end() == 0, running.story()
    home = Path(running.lab.program.environment["HOME"])
    config = home / ".claude.json"
    (copy,) = [record.work_dir for record in running.state().tests()]
    assert copy in json.loads(config.read_text())["projects"]
    cleaned = running.lab.program.call("clean", "--yes")
    assert cleaned.returncode == 0, cleaned.stderr
    assert f"1 entry in {config}" in cleaned.stderr
    assert f"keeps {home}/.claude/keybindings.json (mngr added the key meta+q)" in cleaned.stderr
    assert copy not in config.read_text()
    preserved = home / ".mngr/preserved"
    assert f"keeps {preserved} (mngr copies transcripts" in cleaned.stderr
    found = [path for path in home.rglob("*") if path.name.endswith(Path(copy).name)]
    assert [path for path in found if not path.is_relative_to(preserved)] == []


def test_agent_over_budget_submits_and_launching_stops(sweep: Callable[..., Sweep]) -> None:
    words = ["--slots", "1", "--budget", "1", "--budget-each", "1", "--integrator", "none"]
    running = sweep(["total_costly", "total_clean"], *words)
    running.wait_for("total_costly", lambda record: record.over_budget_at is not None)
    costly = running.wait_for("total_costly", lambda record: record.result not in (None, Result.CLAIMED))
    assert (costly.state, costly.result, costly.pulled.end) == (State.DONE, Result.CLEAN, "archive")
    assert running.state().budget.is_used_up
    assert running.record("total_clean").state is State.QUEUED
    raised = running.lab.program.call("request", "budget", "5")
    assert raised.returncode == 0, raised.stderr
    assert running.end() == 0, running.story()
    served = sum(dollars_of(model, usage) or 0 for model, usage in running.lab.model.served)
    assert running.state().spending.dollars == pytest.approx(served, abs=0.005)


def test_tutorial_commands_are_filled_in(mngr: IsolatedMngr, claude: Path, tmp_path: Path) -> None:
    with claude_lab(mngr, claude, tmp_path / "shop", ["total_clean"]) as lab:
        text = "#!/bin/bash\n# The tutorial of git\n\n# see what git says\ngit --version\n\n# make a folder for notes\n"
        lab.project.commit("A tutorial", {"tutorial.sh": text})
        done = lab.program.call("tutorial", "fill", "tutorial.sh", "--headless", "--agent", "claude")
        assert done.returncode == 0, done.stderr
        (record,) = lab.program.opened().state.tests()
        assert record.result is Result.TUTORIAL_FIX
        filled = lab.project.git("show", f"{lab.program.opened().state.integration.branch}:tutorial.sh")
        assert filled.endswith("# make a folder for notes\ngit init notes")


def test_tutorial_gets_tests(mngr: IsolatedMngr, claude: Path, tmp_path: Path) -> None:
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
