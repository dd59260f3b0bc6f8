"""`swarm-tui status`: print the state of each test of a sweep, as text or JSON."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from swarm_tui.cli.progress import integration_lines, is_open, moment_in, opened_sweep
from swarm_tui.cli.sweeps import add_moment_option, chosen_sweep
from swarm_tui.errors import UsageError
from swarm_tui.failures.alerts import alert_lines, still_held
from swarm_tui.failures.events import Alert
from swarm_tui.failures.patterns import Pattern, find_patterns
from swarm_tui.hosts.lines import free_slots_reason, host_lines, is_on_hosts, text_of_host
from swarm_tui.journal.open import OpenedSweep
from swarm_tui.journal.progress_file import integration_progress
from swarm_tui.journal.record import TestRecord
from swarm_tui.limits.events import throttle_text
from swarm_tui.model.pulled import Escalation
from swarm_tui.model.results import BASELINE_WORDS, MARKS
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.money.budget import cost_text
from swarm_tui.money.events import BUDGET_CANNOT_HOLD, ModelTokens
from swarm_tui.money.forecast import cost_of_each, spending_of

if TYPE_CHECKING:
    from swarm_tui.model.shapes import (
        AlertJson,
        ApiErrorJson,
        CostJson,
        HostJson,
        PatternJson,
        SweepJson,
        TestJson,
        ThrottleJson,
        TokensJson,
    )

_TRY_MARKS = {"runs": ".", "passed": "✓", "skipped": "⊘", "failed": "✗"}
DESCRIPTION = """Print the state of each test of a sweep. This does not change the sweep or contact agents."""
EXAMPLES = """\
  swarm-tui status                         the newest sweep of this repository
  swarm-tui status 20261118 --json         print JSON for a script
  swarm-tui status --only blocked,error    only tests that are blocked or in an error
  swarm-tui status --at -10m               the state ten minutes ago
  vim -q <(swarm-tui status --format=vim)  edit the unsolved tests"""

_TEXTS = frozenset(
    {
        *("alerts", "api_error", "changes", "claim", "end", "foreign_imports", "held_for", "integration"),
        *("login_lost", "options", "patterns", "question", "reason", "status_detail", "stuck", "title"),
        *("unfinished_blocks", "usability_reports"),
    }
)
"""Keys with text that agents write, or that quotes it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", nargs="?", metavar="SWEEP", help="an id, the beginning of one, or a sweep folder")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--no-text", action="store_true", help="with --json: leave out all text written by agents")
    parser.add_argument(
        "--format",
        choices=("vim",),
        help="vim: print unsolved tests as lines `FILE:LINE: REASON` for the quickfix list",
    )
    parser.add_argument("--only", metavar="STATE,...", help="only tests in these states or with these results")
    add_moment_option(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.at is not None:
        history, at = moment_in(chosen_sweep(arguments.sweep, Path.cwd()), arguments.at)
        opened = history.opened_at(at)
    else:
        opened = opened_sweep(arguments.sweep, Path.cwd())
    selected = set(arguments.only.replace("-", "_").split(",")) if arguments.only else set(MARKS)
    if not selected <= set(MARKS):
        raise UsageError(
            f"invalid value for --only: {plain(arguments.only, 80)}", f"use one or more of {', '.join(MARKS)}"
        )
    records = [record for record in opened.state.tests() if record.mark in selected]
    if arguments.no_text and not arguments.json:
        raise UsageError("--no-text requires --json", "add --json")
    if arguments.format == "vim":
        print("".join(f"{line}\n" for line in _quickfix_lines(records)), end="")
    elif arguments.json:
        described: Mapping[str, object] = describe_sweep(opened, records)
        print(json.dumps(_without_text(described) if arguments.no_text else described, indent=1))
    else:
        print("\n".join(_table(opened, records)))
    return 0


def _without_text(described: Mapping[str, object]) -> dict[str, object]:
    """Return the description of a sweep without what agents wrote."""
    left = {key: value for key, value in described.items() if key not in _TEXTS}
    tests = cast("list[Mapping[str, object]]", left.get("tests", []))
    return left | {"tests": [{key: test[key] for key in test if key not in _TEXTS} for test in tests]}


def _quickfix_lines(records: Iterable[TestRecord]) -> Iterable[str]:
    """Yield a line for each unsolved test, with its file relative to the top of the repository."""
    for record in filter(is_open, records):
        if record.file:
            reason = plain(record.reason, 300) or "no reason"
            yield f"{plain(record.file)}:{record.line}: {MARKS[record.mark].word}: {reason}"


def describe_sweep(opened: OpenedSweep, records: Iterable[TestRecord] | None = None) -> SweepJson:
    """Return a sweep as data for JSON."""
    state, spec = opened.state, opened.spec
    tests = list(state.tests() if records is None else records)
    return {
        "sweep": opened.folder.name,
        "state": sweep_state(opened),
        "source": spec.source,
        "repository": spec.repository,
        "base": spec.base,
        "integrated": state.integration.branch if state.integration.state == "done" else None,
        "integration": {
            "state": state.integration.state,
            "by": state.integration.by,
            "fixes": state.integration.fixes,
            "left_out": state.integration.left_out,
            "refused": state.integration.refused,
            "problems": list(state.integration.problems),
        },
        "applied": _kept_fixes(opened)[1] or None,
        "title": spec.title,
        "agent": spec.agent_type,
        "slots": state.slots or spec.slots,
        "open_slots": state.open_slots or spec.slots,
        "throttle": cast("ThrottleJson", asdict(state.access.throttle)),
        "login_lost": state.access.lost_reason if state.access.lost else None,
        **cost_of(opened),
        "started": state.started_at,
        "ended": state.ended_at,
        "reason": state.ended_reason,
        "counts": {mark: count for mark, count in state.counts.items() if count},
        "alerts": [_describe_alert(alert, state.records) for alert in state.alerts.values()],
        "patterns": [_describe_pattern(pattern, opened) for pattern in find_patterns(state.tests())],
        "usability_reports": [
            {"test": test, "title": each.title, "detail": each.detail_markdown}
            for test, each in escalations_of(opened, "HARD_TO_USE")
        ],
        "unfinished_blocks": [
            {"test": test, "title": each.title, "detail": each.detail_markdown}
            for test, each in escalations_of(opened, "UNFINISHED_BLOCK")
        ],
        "hosts": describe_hosts(opened),
        "left_out": list(spec.left_out),
        "integrity_warnings": list(opened.integrity_warnings),
        "checkout_changes": list(state.checkout_changes),
        "is_verified": not spec.why_not_verified,
        "tests": [describe_test(record) for record in tests],
    }


def describe_hosts(opened: OpenedSweep) -> list[HostJson]:
    """Return the hosts of a sweep as data for JSON, those with problems first."""
    return [
        {
            "host": line.name,
            "state": line.word,
            "reason": line.reason,
            "slots": line.slots,
            "running": line.running,
            "waiting": line.waiting,
            "finished": line.finished,
            "unsolved": line.unsolved,
            "load": line.load,
            "processors": line.processors or None,
            "last_poll": line.heard_at,
            "silent_since": line.lost_since,
        }
        for line in host_lines(opened.spec, opened.state.hosts, opened.state.tests())
    ]


def _describe_pattern(pattern: Pattern, opened: OpenedSweep) -> PatternJson:
    spent = spending_of(opened.state.records[test] for test in pattern.tests)
    return {
        "cause": pattern.cause,
        "kind": pattern.kind,
        "tests": list(pattern.tests),
        "shared": list(pattern.shared),
        "dollars": rounded(spent.known_dollars),
    }


def cost_of(opened: OpenedSweep) -> CostJson:
    """Return the cost of all agents of a sweep, including the integrator; None for figures that no agent reports."""
    spent, budget = opened.state.spending, opened.state.budget
    kept, _ = _kept_fixes(opened)
    return {
        "dollars": rounded(spent.known_dollars),
        "tokens": spent.tokens if spent.is_known else None,
        "models": _describe_tokens(spent.models),
        "unpriced_agents": spent.unpriced,
        "estimated_dollars": [rounded(dollars) for dollars in opened.spec.estimated_cost or ()] or None,
        "kept_fixes": kept,
        "dollars_per_kept_fix": rounded(spent.dollars / kept) if kept and spent.priced else None,
        "is_cost_imputed": opened.spec.is_cost_imputed,
        "budget": budget.total or None,
        "budget_each": budget.each or None,
        "is_budget_spent": budget.is_used_up,
    }


def _kept_fixes(opened: OpenedSweep) -> tuple[int, str]:
    """Return the number of kept fixes and the branch of the applied plan."""
    # Imports pydantic, which `swarm-tui status --help` does not need.
    from swarm_tui.review.verdicts import applied_branch_of, count_kept, review_of_sweep

    review = review_of_sweep(opened.folder.root)
    return count_kept(review), applied_branch_of(review)


def _describe_tokens(models: Iterable[ModelTokens]) -> list[TokensJson]:
    return [cast("TokensJson", tokens._asdict()) for tokens in models]


def rounded(dollars: float | None) -> float | None:
    """Return dollars without floating-point noise."""
    return None if dollars is None else round(dollars, 6)


def _describe_alert(alert: Alert, records: Mapping[str, TestRecord]) -> AlertJson:
    held = [record.test for record in still_held(alert, records)]
    return {
        "cause": alert.cause,
        "at": alert.at,
        "tests": list(alert.tests),
        "shared": alert.shared,
        "held": held,
        "why_held": alert.why_held,
        "is_released": alert.is_released,
    }


def escalations_of(opened: OpenedSweep, kind: str) -> list[tuple[str, Escalation]]:
    """Return the tests and their escalations of one kind."""
    return [
        (record.test, each)
        for record in opened.state.tests()
        for each in record.pulled.escalations
        if each.kind == kind
    ]


def open_block_lines(opened: OpenedSweep) -> list[str]:
    """Return lines about open blocks of a tutorial: those reported as hard to use, and unfinished ones."""
    lines: list[str] = []
    for kind, heading in (("HARD_TO_USE", "hard to use here"), ("UNFINISHED_BLOCK", "unfinished blocks")):
        found = escalations_of(opened, kind)
        lines += [f"{heading}: {len(found)}"] if found else []
        for _, each in found:
            first, *more = plain_lines(each.detail_markdown).split("\n")
            lines.append(f"  {plain(each.title, 200)}")
            lines += [f"      {plain(line, 300)}" for line in (first, *more[:6]) if line.strip()]
    return lines


def describe_test(record: TestRecord) -> TestJson:
    """Return a test as data for JSON."""
    check = record.pulled.check
    return {
        "test": record.test,
        "agent": record.agent,
        "host": record.host or None,
        "state": record.state.value,
        "result": record.result.value if record.result else None,
        "tries": [
            {
                "passed": made.passed,
                "outcome": made.outcome,
                "seconds": made.seconds,
                "at": made.at,
                "failure": made.failure,
            }
            for made in record.tries
        ],
        "changes": {
            change.kind: {"status": change.status, "summary": change.summary, "commit": change.commit}
            for change in record.pulled.changes
        },
        "baseline": record.baseline.value or None,
        "group": record.group or None,
        "reason": record.reason,
        "claim": check.claim if check is not None else None,
        "check": check.verdict if check is not None else None,
        "check_runs": list(check.runs) if check is not None else [],
        "since": record.since,
        "dollars": rounded(record.spending.known_dollars),
        "tokens": record.spending.tokens if record.spending.is_known else None,
        "models": _describe_tokens(record.spending.models),
        "is_over_budget": record.over_budget_at is not None,
        "options": list(record.options),
        "status_detail": record.status_detail,
        "stuck": record.stuck,
        "commits": record.commits,
        "api_error": cast("ApiErrorJson", msgspec.to_builtins(record.api_error)) if record.api_error else None,
        "question": record.question,
        "branch": record.branch,
        "tip": record.pulled.tip,
        "end": record.pulled.end,
        "has_uncommitted": record.pulled.has_uncommitted,
        "foreign_imports": list(record.foreign_imports),
        "held_for": record.held_for,
        "is_stale": record.stale_since is not None,
    }


def sweep_state(opened: OpenedSweep) -> str:
    """Return the state of a sweep: begun, running, integrating, finished, stopped, failed or lost."""
    state = opened.state
    # An engine releases its lock shortly after its last event.
    if opened.has_running_engine and not state.is_over:
        return "integrating" if state.integration.state == "integrating" else "running"
    if state.started_at is None:
        return "begun"
    # An engine that exited without an event was killed.
    return state.ended_why or "lost"


def _host_table(opened: OpenedSweep) -> Iterable[str]:
    """Yield a line for each host, if agents run on other machines."""
    if not is_on_hosts(opened.spec):
        return
    state, now = opened.state, opened.state.last_at
    lines = host_lines(opened.spec, state.hosts, state.tests())
    why = free_slots_reason(lines, state.slots, state.counts["queued"], now)
    if why and sweep_state(opened) == "running":
        yield why
    for line in lines:
        yield plain(text_of_host(line, now), 300)


def _model_lines(opened: OpenedSweep) -> Iterable[str]:
    """Yield lines about API errors and lost logins."""
    state = opened.state
    if opened.has_running_engine and state.access.lost:
        reason = plain(state.access.lost_reason, 200)
        yield f"{state.access.lost_words}: {reason} (fix the login, then run `swarm-tui request release`)"
    throttle = throttle_text(state.access.throttle, state.slots, time.time())
    if opened.has_running_engine and throttle:
        yield f"slots {throttle}"


def _table(opened: OpenedSweep, records: list[TestRecord]) -> Iterable[str]:
    state = opened.state
    counts = " · ".join(f"{count} {MARKS[mark].word}" for mark, count in sorted(state.counts.items()) if count)
    kept, applied = _kept_fixes(opened)
    cost = cost_text(state, is_imputed=opened.spec.is_cost_imputed)
    cost = "  ".join(filter(None, (cost, cost_of_each(state.spending, kept, state.integration.fixes))))
    yield "  ".join(word for word in (opened.folder.name, sweep_state(opened), counts, cost) if word)
    if state.budget.is_used_up and opened.has_running_engine:
        more = f"swarm-tui request budget {2 * state.budget.total:g}"
        yield f"budget reached: no more agents are launched (to raise it: `{more}`)"
    if state.budget.is_blind:
        yield BUDGET_CANNOT_HOLD
    integrating = integration_progress(opened.folder, state.integration, time.time())
    if integrating is not None and sweep_state(opened) == "integrating":
        yield f"integrating: {integrating.words}"
    if state.integration.branch:
        yield f"integrated on {state.integration.branch}: {state.integration.fixes} fixes"
    if applied:
        yield f"plan applied on {applied}"
    yield from integration_lines(state.integration, opened.folder.name)
    yield from (f"changed in your repository: {change}" for change in state.checkout_changes)
    if sweep_state(opened) in ("lost", "stopped", "failed"):
        reason = f" ({plain(state.ended_reason, 200)})" if state.ended_reason else ""
        yield f"no engine is running{reason}; to resume: `swarm-tui resume {opened.folder.name}`"
    yield from _host_table(opened)
    yield from filter(None, [opened.why_engine_is_silent])
    yield from _model_lines(opened)
    yield from opened.integrity_warnings
    if state.stale_reason:
        yield f"states are stale: {plain(state.stale_reason, 200)}"
    yield from (plain(line, 400) for line in alert_lines(state.alerts, state.records))
    for sentence in opened.spec.left_out:
        yield f"left out: {plain(sentence, 500)}"
    for record in records:
        detail = record.status_detail if record.has_api_error else record.stuck and f"stuck: {record.stuck}"
        tries = "".join(_TRY_MARKS[made.word] for made in record.tries[-8:])
        reason = record.question if record.state.value == "waiting" else detail or record.reason
        reason = f"held: {record.held_for}" if record.held_for else reason
        known = f" ({BASELINE_WORDS[record.baseline]})" if record.baseline in BASELINE_WORDS else ""
        yield f"  {MARKS[record.mark].word:12} {tries:8} {plain(record.test, 200)}{known}" + (
            f"  {plain(reason, 300)}" if reason else ""
        )
    yield from open_block_lines(opened)
