"""Writes a pull request's title and text: each fix with its evidence, what was left out, what needs somebody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from swarm_tui.model.fixes import Fix, Preview
from swarm_tui.model.formatting import counted
from swarm_tui.model.masking import mask_secrets
from swarm_tui.model.outcome import IntegratorOutcome
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.model.verdicts import Verdict, VerdictLine
from swarm_tui.triage.leaving_out import hunks_left_out
from swarm_tui.triage.measurements import MeasuredEffect, read_measured_effects
from swarm_tui.triage.review import Review

_TESTS_NAMED = 5
_LINES_LIMIT = 40


@dataclass(frozen=True, slots=True)
class PullRequest:
    """What a pull request says; nothing in it that agents wrote acts as markup, mention or link."""

    title: str
    body: str


def pull_request(review: Review, preview: Preview, verdicts: Mapping[str, Verdict], sweep: str = "") -> PullRequest:
    """Return the pull request for the plan with that preview."""
    outcome, branch = review.outcome, review.branch
    measured = read_measured_effects(outcome)
    reverted = set(preview.reverted)
    kept = [fix for fix in branch.fixes if fix.id not in reverted]
    parts = [part for part in review.known_parts if part.id not in preview.left_out]
    lines = {fix.id: line for fix in (*review.fixes, *review.known_parts) if (line := review.verdict_line(fix))}
    unread = [fix for fix in kept if verdicts.get(fix.id) not in (Verdict.KEEP, Verdict.PARTLY)]
    sections = [
        _opening(review, kept, parts, unread, sweep),
        _section(
            "Fixes",
            [
                _fix(
                    fix,
                    measured.get(fix.id),
                    lines.get(fix.id),
                    fix in unread,
                    hunks_left_out(review, preview, fix.commit),
                )
                for fix in kept
            ],
        ),
        _section("Tests and docs", [_part(part) for part in parts]),
        _section("Reverted", [_dropped(fix, lines) for fix in branch.fixes if fix.id in reverted]),
        _section("Left out", [_dropped(part, lines) for part in review.known_parts if part.id in preview.left_out]),
        *_from_the_integrator(outcome),
        _section("Look at these files", map(_as_code, review.branch.risk_lines)),
    ]
    body = "\n".join(section for section in sections if section).rstrip() + "\n"
    return PullRequest(mask_secrets(_title(kept, parts)), mask_secrets(body))


def _title(kept: Sequence[Fix], parts: Sequence[Fix]) -> str:
    if len(kept) == 1 and not parts:
        return plain(kept[0].title, 100)
    words = [counted(len(kept), "fix", "fixes")] if kept else []
    words += [f"{len(parts)} better {'test' if len(parts) == 1 else 'tests and docs'}"] if parts else []
    return " and ".join(words) or "Nothing but what is there"


def _opening(review: Review, kept: Sequence[Fix], parts: Sequence[Fix], unread: Sequence[Fix], sweep: str) -> str:
    made = f"Made by agents, a test each{f', in sweep {_as_code(sweep)}' if sweep else ''}"
    counts = [counted(len(kept), "fix", "fixes")]
    counts += [f"{counted(len(parts), 'part')} of tests and docs"] if parts else []
    final = (review.outcome.model_extra or {}).get("final_run")
    passed, failed = (final.get("passed"), final.get("failed")) if isinstance(final, dict) else (None, None)
    tests = ""
    if isinstance(passed, int) and isinstance(failed, list) and not review.reverted:
        tests = f" With all of it {passed} of {counted(passed + len(failed), 'test')} of the sweep pass."
    some = "any fix" if len(unread) == len(kept) else f"{len(unread)} of the fixes"
    seen = f" Nobody has looked at {some} yet." if unread else " A person has looked at each fix."
    return f"{made}: {', '.join(counts)}.{seen if kept else ''}{tests}\n"


def _fix(
    fix: Fix,
    effect: MeasuredEffect | None,
    line: VerdictLine | None,
    is_unread: bool,
    hunks_out: tuple[Sequence[Fix], int],
) -> str:
    """Return one fix: what it does, and what speaks for and against it."""
    out, total = hunks_out
    facts = [f"`{fix.id[:12]}`", f"+{fix.added} −{fix.removed}"]
    facts += [f"without {len(out)} of its {total} hunks"] if out else []
    if effect is not None:
        how = "measured" if effect.is_measured else "as its agents report"
        facts += [f"turns {counted(len(effect.turned_green), 'test')} green ({how})"] if effect.turned_green else []
        facts += [f"**breaks {counted(len(effect.broken), 'test')}**"] if effect.broken else []
    facts += [f"found by {len(fix.agents)} agents"] if len(fix.agents) > 1 else []
    facts += ["not looked at yet"] if is_unread else [f"kept by {plain(line.by, 60)}"] if line and line.by else []
    rows = [f"**{_as_text(fix.title)}** ({', '.join(facts)})"]
    rows += [f"  - without {_as_code(hunk.title)}" for hunk in out]
    rows += [f"  - ▲ {_as_code(test)}" for test in (effect.turned_green[:_TESTS_NAMED] if effect else ())]
    rows += [f"  - ▼ {_as_code(test)}" for test in (effect.broken[:_TESTS_NAMED] if effect else ())]
    rows += [f"  - {_as_code(line.why)}"] if line and line.why and not is_unread else []
    return "\n".join(rows)


def _part(part: Fix) -> str:
    return f"{_as_text(part.title)}" + (f" ({_as_code(part.tests[0])})" if part.tests else "")


def _dropped(fix: Fix, lines: Mapping[str, VerdictLine]) -> str:
    line = lines.get(fix.id)
    return f"{_as_text(fix.title)}" + (f": {_as_code(line.why)}" if line and line.why else "")


def _from_the_integrator(outcome: IntegratorOutcome) -> list[str]:
    return [
        _section("Made uniform", [_as_code(item.summary_markdown) for item in outcome.normalizations]),
        _section("Not integrated", [f"{_as_code(item.branch)}: {_as_code(item.reason)}" for item in outcome.failed]),
        _section(
            "Needs someone",
            [f"{_as_text(item.title)}\n{_quoted(item.detail_markdown)}".rstrip() for item in outcome.escalations],
        ),
    ]


def _quoted(text: str) -> str:
    rows = plain_lines(text).strip().split("\n")[:_LINES_LIMIT]
    return "\n".join(f"  {_as_code(row)}  " for row in rows if row.strip())


def _section(title: str, items: Iterable[str]) -> str:
    lines = [f"- {item}" for item in items]
    return "\n".join([f"## {title}", "", *lines, ""]) if lines else ""


def _as_text(text: str) -> str:
    """Return an agent's title as code too, for the same reason."""
    return _as_code(text)


def _as_code(text: str) -> str:
    """Return an agent's words as code: no mention, no issue reference, no link, no markup of theirs works."""
    return f"`{plain(text, 300).replace('`', chr(0x2019))}`"
