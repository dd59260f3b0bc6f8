"""Drawing of screen 3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from swarm_tui.journal.record import TestRecord
from swarm_tui.model.commits import Diff, DiffFile
from swarm_tui.model.formatting import Progress, age, counted, duration
from swarm_tui.model.report import IntegratorReport, LeftOut
from swarm_tui.model.test_strength import TestStrength
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.money.forecast import cost_words
from swarm_tui.review.changes import IntegratedBranch
from swarm_tui.room.draw.glyphs import TRY_SIGNS
from swarm_tui.room.draw.spans import (
    Line,
    Span,
    align_right,
    cut_line,
    cut_middle,
    cut_text,
    pad_text,
    spread,
    width_of,
    wrap_text,
)
from swarm_tui.room.draw.transcript import draw_progress, progress_parts

_MISSED_SHOWN = 5


def draw_strength(found: Sequence[TestStrength], width: int) -> list[Line]:
    """Return lines about changed tests; empty if their strength has not changed."""
    lines: list[Line] = []
    for strength in found:
        if not strength.words:
            continue
        glyph, role, label = (
            ("○", "warning", "detects nothing") if strength.detects_nothing else ("✓", "good", "as strong")
        )
        if strength.is_weaker:
            glyph, role, label = "▼", "unresolved", "weaker"
        elif strength.is_renamed:
            glyph, role, label = "!", "warning", "renamed"
        is_clear = strength.is_measured or strength.is_weaker or strength.is_renamed
        word = label if is_clear else "W measures its strength"
        lines.append([Span(f"{glyph} ", role), Span(cut_middle(plain(strength.test, 500), max(10, width - 2)))])
        lines.append(cut_line([Span("  "), Span(word, role), Span(f" · {plain(strength.words, 300)}", "dim")], width))
        if not strength.is_weaker and strength.is_renamed:
            lines += [
                [Span("    + "), Span(cut_middle(plain(s.after, 500), max(10, width - 6)))] for s in strength.signs
            ]
        if not strength.is_weaker:
            continue
        for change in strength.signs:
            was = [Span("    - "), Span(plain(change.before, 200), "removed")]
            now = [Span("    + "), Span(plain(change.after, 200), "added")]
            lines += [cut_line(line, width) for line, text in ((was, change.before), (now, change.after)) if text]
        for fault in strength.missed[:_MISSED_SHOWN]:
            lines.append(cut_line([Span("    no longer detected: ", "dim"), Span(plain(fault, 300))], width))
        if len(strength.missed) > _MISSED_SHOWN:
            lines.append([Span(f"    and {len(strength.missed) - _MISSED_SHOWN} more", "dim")])
    return [[Span("test strength", "heading")], *lines] if lines else []


TRIES_SHOWN: Final = 12
VERDICT_WORDS: Final = {
    "keep": ("keep", "good"),
    "revert": ("REVERT", "removed bold"),
    "later": ("later", "warning"),
    "partly": ("partly", "removed"),
}
WAY_BACK_WORDS: Final = {"sent": ("sent", "running"), "back": ("back", "warning"), "new": ("new", "accent")}
"""Label and role of a fix that was sent back to its agent."""


@dataclass(frozen=True, slots=True)
class FixView:
    """Data of a row of the list."""

    rank: int
    title: str
    verdict: str
    """keep, revert, partly, later, or "" for none; sent, back or new for a fix that was sent back."""
    added: int
    removed: int
    greens: int | None
    """Number of tests that this fix turns green; None if not measured."""
    reds: int
    """Number of tests that this fix breaks."""
    agents: int
    is_conflicting: bool
    """Whether its revert is in the plan and conflicts."""
    is_stuck: bool
    """Whether it cannot be reverted alone."""
    is_part: bool = False
    """Whether it is a test change of row 0, which is left out instead of reverted."""
    without_lines: str = ""
    """Changes other than lines: binary, mode or moved."""
    weaker: int = 0
    """Number of tests that it makes weaker."""
    renamed: int = 0
    """Number of tests that it renames or removes."""
    is_risky: bool = False
    """Whether it has files that run automatically, or a link to outside of the tree."""
    is_left_out: bool = False
    """Whether it is not on the branch. The plan can include it."""
    hunks_reverted: int = 0
    """Number of its hunks that the plan reverts."""
    origin: str = ""
    """Origin of a fix that is not an unchanged commit of an agent, such as "by the integrator"."""


@dataclass(frozen=True, slots=True)
class PlanView:
    """Data of the line about the plan."""

    total: int
    kept: int
    reverted: int
    is_known: bool
    """False while the preview is being computed."""
    conflicts: tuple[str, ...]
    """Such as "#3 with #5"."""
    commits: int
    applied: str = ""
    """The branch that was created from this plan, or ""."""
    running: Progress | None = None
    """The background task of this room, such as the tests without #3."""
    elsewhere: Progress | None = None
    """The background task of another process. It does not hide parts of the plan."""
    tests: str = ""
    """Results of the tests of the whole plan, if they were run."""
    doubt: str = ""
    cost: str = ""
    """Such as "$4.13 a kept fix"."""
    parts: str = ""
    """Such as "2 test changes out"."""
    has_tests: bool = False
    """Whether one of the commits is row 0 (tests and docs), which is not a fix."""
    partly: int = 0
    """Number of fixes with some hunks reverted."""
    problem: str = ""
    """Problem of the branch, such as "2 tests fail"; "" if the tests of this plan were run later."""


def draw_plan(view: PlanView, width: int) -> Line:
    """Return the line about the plan. It always has the problem of the branch, the state and the applied branch.

    On a narrow terminal the details are left out first, then some of the counts.
    """
    still_open = view.total - view.kept - view.partly - view.reverted
    fixes = [Span(" "), Span(f"{view.total} {'fix' if view.total == 1 else 'fixes'}", "strong")]
    problem = [Span("branch: ", "error"), Span(view.problem, "error")] if view.problem else []
    fixes += [Span(" · ", "faint"), *problem] if problem else []
    open_count = _count(still_open, "open", "accent" if still_open else "dim")
    counts = _count(view.kept, "keep", "good") + (_count(view.partly, "partly", "removed") if view.partly else [])
    counts += [*_count(view.reverted, "revert", "removed"), *open_count]
    parts = [Span(" · ", "faint"), Span(view.parts, "removed" if view.parts.endswith("out") else "dim")]
    lefts = [[*fixes, *counts, *(parts if view.parts else [])], [*fixes, *counts], [*fixes, *open_count], fixes]
    lefts += [[Span(" "), *problem]] if problem else []
    detailed, least = _beside_counts(view)
    tries = [(lefts[0], right) for right in detailed]
    tries += [(left, right) for right in least for left in lefts]
    for left, right in tries:
        if width_of(left) + width_of(right) + 2 <= width:
            return spread(left, [*right, Span(" ")], width)
    return cut_line([Span(" "), *least[-1]], width)


def _beside_counts(view: PlanView) -> tuple[list[Line], list[Line]]:
    """Return texts to the right of the counts, most detailed first: for all counts, and for some of them."""
    if not view.is_known:
        state = [Span("plan ", "dim"), Span("…", "dim")]
    elif view.conflicts:
        state = [Span("plan ", "dim"), Span(f"conflict {', '.join(view.conflicts)}", "error")]
    else:
        state = [Span("plan ", "dim"), Span("clean", "good")]
    is_clean = view.is_known and not view.conflicts
    plan = [*state, Span(f", {view.commits} commits", "dim")] if is_clean else state
    if view.tests:
        news = [Span(" · ", "faint"), Span(view.tests, "warning" if "red" in view.tests else "good")]
        state, plan = [*state, *news], [*plan, *news]
    if view.applied:
        applied = [Span("  applied on ", "dim"), Span(view.applied, "good")]
        state, plan = [*state, *applied], [*plan, *applied]
    running = view.running or view.elsewhere
    if running is not None:
        forms: list[Line] = [
            progress_parts(running),
            [Span(running.words, "running")],
            [Span(_short_progress(running), "running")],
        ]
        of_plan: list[Line] = [[*plan, Span("  "), *form] for form in forms]
        of_state: list[Line] = [[*state, Span("  "), *form] for form in forms]
        if view.running is None:
            return [*of_plan, of_state[2]], [of_state[2], state]
        # The user started what this room runs, so its progress has priority.
        return [of_plan[0], of_state[0]], [*of_state[1:], state]
    explained = [Span(" (one with tests and docs)", "dim")] if view.has_tests and is_clean and not view.tests else []
    cost = [Span(view.cost, "dim"), Span("   ")] if view.cost else []
    end = [Span("  "), Span(view.doubt, "warning")] if view.doubt else [Span("  not applied", "dim")]
    end = [] if view.applied else end
    return [[*cost, *plan, *explained, *end], [*cost, *plan, *end], [*plan, *end], plan], [state]


def _short_progress(progress: Progress) -> str:
    counts = f"{progress.done} of {progress.total}" if progress.total else "…"
    return f"{progress.doing.partition(':')[0]} {counts}"


def _count(number: int, word: str, role: str) -> list[Span]:
    return [Span(" · ", "faint"), Span(str(number), role if number else "dim"), Span(f" {word}", "dim")]


def draw_fix(view: FixView, width: int) -> Line:
    word, role = (VERDICT_WORDS | WAY_BACK_WORDS).get(view.verdict, ("·", "faint"))
    word = "OUT" if view.is_part and view.verdict == "revert" else word
    if view.is_left_out:
        word, role = ("IN", "good") if view.verdict in ("keep", "partly") else ("out", "dim")
    if view.is_conflicting:
        role = "error"
    impact = "" if view.greens is None else f"{view.greens}▲" + (f"{view.reds}▼" if view.reds else "")
    size = view.without_lines or (f"+{view.added}-{view.removed}" if view.removed else f"+{view.added}")
    tail = [
        Span(f" {counted(view.hunks_reverted, 'hunk')} out" if view.hunks_reverted and width >= 34 else "", "dim"),
        Span(f" {view.weaker} weaker ▼" if view.weaker and width >= 34 else "", "unresolved"),
        Span(f" {view.renamed} renamed" if view.renamed and width >= 34 else "", "warning"),
        Span(f" {view.origin}" if width >= 50 else " §" if view.origin else "", "warning"),
        Span(" !" if view.is_risky else "", "error"),
        Span(" ⚠" if view.is_stuck else "", "warning"),
        Span(f" {view.agents}×" if view.agents > 1 and width >= 40 else "", "dim"),
        Span(align_right(impact, 5) if width >= 34 else "", "unresolved" if view.reds else "fixed"),
        Span(align_right(size, 8) if width >= 60 else "", "dim"),
        Span(" "),
    ]
    head = [
        Span(align_right(str(view.rank), 2 if view.rank < 100 else 3), "dim"),
        Span(" "),
        Span(pad_text(word, 7), role),
        Span(view.title, "dim" if view.verdict == "keep" else ""),
    ]
    return spread(head, tail, width)


@dataclass(frozen=True, slots=True)
class EffectView:
    """Effect of reverting the fix under the cursor, as far as it is computed."""

    is_reverted: bool
    is_known: bool
    is_part: bool = False
    """Whether it is row 0 or one of its test changes, which is left out instead of reverted."""
    conflict_with: tuple[str, ...] = ()
    conflict_paths: tuple[str, ...] = ()
    is_unchanging: bool = False
    tests_red: int | None = None
    tests_run: int = 0
    why_rank: str = ""
    is_left_out: bool = False
    """Whether it is not on the branch. The plan can include it."""


def draw_effect(view: EffectView, width: int) -> Line:
    """Return the line below the panels: the effect of a revert, and the reason for the rank."""
    action = "swapped in" if view.is_left_out else "left out" if view.is_part else "reverted"
    left = [Span(" "), Span(f"{action}: " if view.is_reverted else f"if {action}: ", "dim")]
    if not view.is_known:
        left.append(Span("…", "dim"))
    elif view.conflict_with or view.conflict_paths:
        against = f"conflicts with {', '.join(view.conflict_with)}" if view.conflict_with else "conflicts"
        left += [Span(against, "error"), Span(f" in {', '.join(view.conflict_paths[:2])}", "dim")]
        left.append(Span("  s: swap in" if view.is_left_out else "  c: resolve", "key"))
    elif view.is_unchanging:
        left.append(Span("changes nothing", "warning"))
    else:
        left.append(Span("clean", "good"))
    if view.tests_red is not None:
        word = "test goes" if view.tests_red == 1 else "tests go"
        outcome = f"{view.tests_red} {word} red" if view.tests_red else f"all {view.tests_run} tests stay green"
        left += [Span(" · ", "faint"), Span(outcome, "unresolved" if view.tests_red else "good")]
    why = [Span("  "), Span(view.why_rank, "dim"), Span(" ")] if view.why_rank else []
    # The hint about a conflict is more important than the reason for the rank.
    return spread(left, why, width) if width_of(left) + width_of(why) <= width else cut_line(left, width)


@dataclass(frozen=True, slots=True)
class FixEvidence:
    """Evidence for and against a fix."""

    message: str
    author: str
    verdict: str = ""
    verdict_by: str = ""
    verdict_age: float | None = None
    verdict_why: str = ""
    turned_green: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    source: str = ""
    """`measured`, or why it was not."""
    agents: tuple[TestRecord, ...] = ()
    """The tests whose agents wrote it."""
    runs: tuple[tuple[str, bool | None, str], ...] = ()
    """Tests that were run without this fix: node id, passed, failure line."""
    strength: tuple[TestStrength, ...] = ()
    """The tests that it changes."""
    sent_back: tuple[str, str] = ("", "")
    """Who sent the fix back and with what result; the comment."""
    risks: tuple[str, ...] = ()
    """Risks of its files."""
    hunks_reverted: tuple[str, ...] = ()
    """The reverted hunks, each with its number."""
    origin: str = ""
    """Origin of a fix that is not an unchanged commit of an agent, as a sentence."""


def draw_evidence(evidence: FixEvidence, width: int) -> list[Line]:
    lines: list[Line] = []
    if evidence.verdict:
        who = f" by {plain(evidence.verdict_by, 40)}" if evidence.verdict_by else ""
        when = f", {age(evidence.verdict_age)}" if evidence.verdict_age is not None else ""
        word, role = VERDICT_WORDS.get(evidence.verdict, (evidence.verdict, "dim"))
        lines += [[Span(word, role), Span(f"{who}{when}", "dim")]]
        lines += _wrapped(evidence.verdict_why, width)
    lines += [cut_line([Span("without ", "removed"), Span(hunk)], width) for hunk in evidence.hunks_reverted]
    if evidence.sent_back[0]:
        lines += _wrapped(evidence.sent_back[0], width, "accent")
        lines += _wrapped(evidence.sent_back[1], width)
    lines += _wrapped(evidence.origin, width, "warning")
    for risk in evidence.risks:
        lines += [
            [Span("! " if number == 0 else "  ", "error"), Span(row, "error")]
            for number, row in enumerate(wrap_text(risk, max(10, width - 2), 3))
        ]
    lines += _wrapped(evidence.message, width)
    author = [Span(plain(evidence.author, 100), "dim")]
    cost = cost_words(evidence.agents)
    lines.append([*author, Span(f" · {cost}", "dim")] if cost else author)
    lines += _impact(evidence, width)
    strength = draw_strength(evidence.strength, width)
    lines += (
        [*strength, [Span("measured with all hunks of this fix", "dim")]]
        if strength and evidence.hunks_reverted
        else strength
    )
    for number, agent in enumerate(evidence.agents):
        lines += ([], *_agent_lines(agent, width)) if number or lines else _agent_lines(agent, width)
    if evidence.runs:
        lines += [[], [Span("without this fix", "heading")]]
        for test, passed, failure in evidence.runs:
            glyph, role = ("…", "dim") if passed is None else ("✓", "good") if passed else ("✗", "unresolved")
            lines.append(
                cut_line([Span(f"{glyph} ", role), Span(plain(test)), Span(f"  {plain(failure)}", "dim")], width)
            )
    return lines


def _impact(evidence: FixEvidence, width: int) -> list[Line]:
    lines: list[Line] = []
    for tests, glyph, role, word in (
        (evidence.turned_green, "▲ ", "fixed", "turns green"),
        (evidence.broken, "▼ ", "unresolved", "breaks"),
    ):
        if tests:
            lines.append(cut_line([Span(word, role), Span(f", {plain(evidence.source, 300)}", "dim")], width))
            lines += [[Span(glyph, role), Span(cut_middle(plain(test, 500), max(1, width - 2)))] for test in tests]
    return lines


def draw_report(
    outcome: IntegratorReport, branch: IntegratedBranch, maker_of: Callable[[LeftOut], str], width: int
) -> list[Line]:
    """Return the integrator's report without its fixes as lines; empty if there is nothing else."""
    lines: list[Line] = []
    for heading, role, entries in (
        ("check these commits", "error", [("", risk) for risk in branch.risk_lines]),
        ("about this branch", "warning", [("", doubt) for doubt in branch.doubts]),
        ("needs you", "blocked", [(each.title, each.detail_markdown) for each in outcome.escalations]),
        ("left out", "unresolved", [(maker_of(left), left.reason) for left in outcome.failed]),
        ("normalized", "dim", [("", entry.summary_markdown) for entry in outcome.normalizations]),
    ):
        if not entries:
            continue
        lines += [[], [Span(f"{heading} {len(entries)}", "heading")]] if lines else [[Span(heading, "heading")]]
        for title, detail in entries:
            if title:
                lines.append(cut_line([Span("• ", role), Span(plain(title, 300))], width))
            first = "  " if title else "• "
            for number, row in enumerate(wrap_text(plain_lines(detail).strip(), width - 2, 40) if detail else ()):
                lines.append([Span(first if number == 0 else "  ", role), Span(row, "dim" if title else "")])
    return lines


def _agent_lines(record: TestRecord, width: int) -> list[Line]:
    pulled = record.pulled
    results = [try_.word for try_ in record.tries[-TRIES_SHOWN:]]
    if not results and pulled.passing_before is not None and pulled.passing_after is not None:
        results = [
            "passed" if was_passing else "failed" for was_passing in (pulled.passing_before, pulled.passing_after)
        ]
    tries = [Span(f" {glyph}", role) for glyph, role in (TRY_SIGNS[word] for word in results)]
    title = cut_text(plain(record.test), max(10, width - 2 * len(tries) - 1))
    lines: list[Line] = [[Span(title, "strong"), *tries]]
    if record.block:
        lines.append(cut_line([Span("tutorial ", "dim"), Span(plain(record.block), "dim")], width))
    return [*lines, *_wrapped(pulled.summary, width)]


def _wrapped(text: str, width: int, role: str = "") -> list[Line]:
    clean = plain_lines(text).strip()
    return [[Span(row, role)] for row in wrap_text(clean, width, 200)] if clean else []


def draw_file_heading(file: DiffFile, width: int) -> Line:
    """Return the line above a file's hunks. It replaces the five header lines of git."""
    name = file.path if file.old_path in ("", file.path) else f"{file.old_path} → {file.path}"
    kinds = [word for word in (file.mode_change and f"mode {file.mode_change}", file.is_binary and "binary") if word]
    line = [Span("── ", "faint"), Span(name, "strong"), Span(" ")]
    line += [Span(" ".join(kinds), "warning"), Span(" ")] if kinds else []
    line += [Span(f"+{file.added}", "added"), Span(f" -{file.removed} ", "removed")] if not file.is_binary else []
    rest = width - width_of(line)
    return cut_line([*line, Span("─" * max(0, rest), "faint")], width)


def draw_diff_summary(diff: Diff, width: int) -> list[Line]:
    """Return the files of a diff with the number of added and removed lines, as `git diff --stat` does."""
    lines: list[Line] = []
    widest = max((len(file.path) for file in diff.files), default=0)
    most = max((file.added + file.removed for file in diff.files), default=0)
    bar_width = max(4, min(20, width - min(widest, width // 2) - 12))
    for file in diff.files:
        number = file.added + file.removed
        cells = min(bar_width, number) if most <= bar_width else -(-number * bar_width // most)
        plus = round(cells * file.added / number) if number else 0
        name = file.path if file.old_path in ("", file.path) else f"{file.old_path} → {file.path}"
        size = "binary" if file.is_binary else file.mode_change if not number and file.mode_change else str(number)
        line = [Span(f"{cut_text(name, width // 2):{min(widest, width // 2)}} "), Span(f"{size:>5} ", "dim")]
        lines.append(cut_line([*line, Span("+" * plus, "added"), Span("-" * (cells - plus), "removed")], width))
    return lines


@dataclass(frozen=True, slots=True)
class NoFixesView:
    """Progress of a sweep towards its fixes."""

    sweep: str
    integration: str
    """none, integrating, done or failed"""
    detail: str
    progress: Progress | None
    """Progress of the running integrator."""
    integrating_for: float
    done: int
    total: int
    working: int
    waiting: int
    queued: int
    is_living: bool
    """Whether an engine is running."""
    has_integrator: bool
    is_simulated: bool
    coming: tuple[tuple[str, str], ...] = ()
    """Tests whose agents changed the program, and their summaries."""


def no_fixes_message(view: NoFixesView) -> tuple[str, str, str]:
    """Return the title, one or two sentences, and their role."""
    done = f"{view.done:,} of {counted(view.total, 'test')} {'is' if view.done == 1 else 'are'} done"
    detail = f": {plain(view.detail, 500)}" if view.detail else ""
    by_hand = f"run `swarm-tui integrate {view.sweep}`"
    if view.is_simulated and view.integration in ("integrating", "done"):
        return "No fixes", "This sweep is simulated and has no commits. `swarm-tui demo` creates real ones.", "dim"
    if view.integration == "integrating":
        span = duration(view.integrating_for)
        return (
            "Integrating",
            f"The changes of all agents are being integrated into one branch, for {span} now.",
            "",
        )
    if view.integration == "failed":
        again = f"To try again: `swarm-tui integrate {view.sweep}`"
        return "Not integrated", f"Integration failed{detail}. {again}", "error"
    if view.integration == "done":
        return "No fixes", f"The sweep is integrated and has no fixes to review{detail}.", ""
    if not view.has_integrator:
        return "Not integrated", f"{done}. Integration is off for this sweep. To integrate: {by_hand}.", ""
    if view.is_living and view.done < view.total:
        return "Not integrated yet", f"{done}. Fixes appear after the last test, when the changes are integrated.", ""
    if view.is_living:
        return "Not integrated yet", f"{done}. Integration starts next. Fixes appear after it.", ""
    if view.done < view.total:
        resumed = f"To continue and integrate: `swarm-tui resume {view.sweep}`"
        return "Not integrated", f"{done}, and the engine is not running. {resumed}", "warning"
    return "Not integrated", f"{done}. The changes are not integrated. To integrate: {by_hand}.", "warning"


def draw_no_fixes(view: NoFixesView, text: str, role: str, width: int) -> list[Line]:
    """Return the lines of the panel: the message, the number of running agents, and the coming fixes."""
    lines: list[Line] = [[Span(row, role)] for row in wrap_text(text, width, 12)]
    if view.integration == "none" and view.is_living:
        still = [
            (view.working, "running", f"{counted(view.working, 'agent')} running"),
            (view.waiting, "waiting", f"{view.waiting:,} waiting for your answer: press 1, then w"),
            (view.queued, "queued", f"{counted(view.queued, 'test')} queued"),
        ]
        counts: list[Line] = [[Span("· ", "faint"), Span(words, kind)] for number, kind, words in still if number]
        lines += [(), *counts] if counts else []
    if view.integration == "integrating" and view.progress is not None:
        progress = view.progress
        lines += [(), [Span(progress.doing, "running")]]
        lines += [draw_progress(replace(progress, doing=""), width)] if progress.part is not None else []
    if view.coming and view.integration in ("none", "integrating"):
        number = len(view.coming)
        lines += [
            (),
            [Span(f"Program changed by {counted(number, 'agent')} so far:")],
        ]
        for name, summary in view.coming:
            lines.append([Span("◆ ", "impl_fix"), Span(name), Span(f"  {summary}", "dim")])
    return [cut_line(line, width) for line in lines]
