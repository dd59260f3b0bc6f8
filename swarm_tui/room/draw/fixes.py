"""The merge view as lines: the ranked fixes, the plan on top, what a revert would do, and the evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from swarm_tui.insight.costs import cost_words
from swarm_tui.model.diff import Diff, DiffFile
from swarm_tui.model.fixes import IntegratedBranch
from swarm_tui.model.formatting import age, counted
from swarm_tui.model.outcome import IntegratorOutcome, LeftOut
from swarm_tui.model.progress import Progress
from swarm_tui.model.state import TestRecord
from swarm_tui.model.teeth import TestTeeth
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.room.draw.glyphs import TRY_SIGNS
from swarm_tui.room.draw.parts import (
    Line,
    Part,
    align_right,
    cut_line,
    cut_middle,
    cut_text,
    pad_text,
    spread,
    width_of,
    wrap_text,
)
from swarm_tui.room.draw.progress import draw_progress, progress_parts
from swarm_tui.room.draw.teeth import draw_teeth

TRIES_SHOWN: Final = 12
VERDICT_WORDS: Final = {
    "keep": ("keep", "good"),
    "revert": ("REVERT", "removed bold"),
    "later": ("later", "warning"),
    "partly": ("partly", "removed"),
}
WAY_BACK_WORDS: Final = {"sent": ("sent", "running"), "back": ("back", "warning"), "new": ("new", "accent")}
"""Where a fix is that was sent back to its author."""


@dataclass(frozen=True, slots=True)
class FixFacts:
    """What the row of a fix shows."""

    rank: int
    title: str
    verdict: str
    """keep, revert, partly, later, or "" while there is none; sent, back or new of a fix that was sent back."""
    added: int
    removed: int
    greens: int | None
    """Tests that this fix turns green; None when that was not measured."""
    reds: int
    """Tests that it breaks."""
    agents: int
    is_conflicting: bool
    """Its revert is in the plan and does not go."""
    is_stuck: bool
    """It could not be reverted alone."""
    is_part: bool = False
    """It is a part of row 0, which is left out and not reverted."""
    without_lines: str = ""
    """What it changes where that is no line: binary, mode or moved."""
    weaker: int = 0
    """Tests that it makes weaker."""
    is_risky: bool = False
    """It has files that act by themselves, or a link that leads out of the tree."""
    is_left_out: bool = False
    """It is not on the branch; the plan may take it in."""
    hunks_reverted: int = 0
    """Hunks of it that the plan reverts."""


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What the line about the plan shows."""

    total: int
    kept: int
    reverted: int
    later: int
    is_known: bool
    """False while the preview is being computed."""
    conflicts: tuple[str, ...]
    """Such as "#3 with #5"."""
    commits: int
    branch: str
    applied: str = ""
    """The branch that was made of this very plan, or ""."""
    running: Progress | None = None
    """What this room runs in the background: the tests without #3."""
    elsewhere: Progress | None = None
    """What another process runs, which hides nothing of the plan."""
    tests: str = ""
    """How the tests of the whole plan went, when they were run."""
    doubt: str = ""
    cost: str = ""
    """Such as "$4.13 a kept fix"."""
    parts: str = ""
    """Such as "2 parts out"."""
    has_tests: bool = False
    """Whether one of the commits is that of all test and doc fixes, which is no fix."""
    partly: int = 0
    """Fixes of which some hunks are kept and the others are reverted."""


def draw_plan(facts: PlanFacts, width: int) -> Line:
    still_open = facts.total - facts.kept - facts.partly - facts.reverted
    left = [Part(" "), Part(f"{facts.total} {'fix' if facts.total == 1 else 'fixes'}", "strong")]
    left += _count(facts.kept, "keep", "good")
    left += _count(facts.partly, "partly", "removed") if facts.partly else []
    left += _count(facts.reverted, "revert", "removed")
    left += _count(still_open, "open", "accent" if still_open else "dim")
    if facts.parts:
        left += [Part(" · ", "faint"), Part(facts.parts, "removed" if facts.parts.endswith("out") else "dim")]
    plan = [Part("plan ", "dim")]
    if not facts.is_known:
        plan.append(Part("…", "dim"))
    elif facts.conflicts:
        plan.append(Part(f"conflict {', '.join(facts.conflicts)}", "error"))
    else:
        plan += [Part("clean", "good"), Part(f", {facts.commits} commits", "dim")]
    cost = [Part(facts.cost, "dim"), Part("   ")] if facts.cost else []
    end: list[Part] = []
    if facts.tests:
        plan += [Part(" · ", "faint"), Part(facts.tests, "warning" if "red" in facts.tests else "good")]
    if facts.running is not None:
        end = [Part("  "), *progress_parts(facts.running)]
    elif facts.applied:
        end = [Part("  applied on ", "dim"), Part(facts.applied, "good")]
    elif facts.doubt:
        end = [Part("  "), Part(facts.doubt, "warning")]
    else:
        end = [Part("  not applied", "dim")]
    # Parts that do not fit beside the counts are left out, the least important first: what runs, or has run, is news.
    news = [Part(facts.running.words, "running")] if facts.running else plan[-1:] if facts.tests else []
    explained = [Part(" (one of tests and docs)", "dim")] if facts.has_tests and len(plan) == 3 else []
    choices = [[*cost, *plan, *explained, *end, Part(" ")], [*cost, *plan, *end, Part(" ")], [*plan, *end, Part(" ")]]
    choices += [[*end, Part(" ")]] if facts.running else []
    choices += [[*news, Part(" ")]] if news else []
    choices += [] if facts.running else [[*plan, Part(" ")], plan[:2]]
    beside: list[Line] = []
    if facts.elsewhere is not None and facts.running is None:
        beside = _beside_what_runs_elsewhere(plan, facts.elsewhere, has_conflict=bool(facts.conflicts))
    for right in (*beside, *choices):
        if width_of(left) + width_of(right) + 2 <= width:
            return spread(left, right, width)
    return draw_progress(facts.running, width) if facts.running else cut_line(left, width)


def _beside_what_runs_elsewhere(plan: Line, progress: Progress, *, has_conflict: bool) -> list[Line]:
    counts = f"{progress.done} of {progress.total}" if progress.total else "…"
    short = [Part(f"{progress.doing.partition(':')[0]} {counts}", "running")]
    forms = (progress_parts(progress), [Part(progress.words, "running")], short)
    lines: list[Line] = [[*plan, Part("  "), *form, Part(" ")] for form in forms]
    return lines if has_conflict else [*lines, [*short, Part(" ")]]


def _count(number: int, word: str, role: str) -> list[Part]:
    return [Part(" · ", "faint"), Part(str(number), role if number else "dim"), Part(f" {word}", "dim")]


def draw_fix(facts: FixFacts, width: int) -> Line:
    word, role = (VERDICT_WORDS | WAY_BACK_WORDS).get(facts.verdict, ("·", "faint"))
    word = "OUT" if facts.is_part and facts.verdict == "revert" else word
    if facts.is_left_out:
        word, role = ("IN", "good") if facts.verdict in ("keep", "partly") else ("out", "dim")
    if facts.is_conflicting:
        role = "error"
    impact = "" if facts.greens is None else f"{facts.greens}▲" + (f"{facts.reds}▼" if facts.reds else "")
    size = facts.without_lines or (f"+{facts.added}-{facts.removed}" if facts.removed else f"+{facts.added}")
    tail = [
        Part(f" {counted(facts.hunks_reverted, 'hunk')} out" if facts.hunks_reverted and width >= 34 else "", "dim"),
        Part(f" {facts.weaker} weaker ▼" if facts.weaker and width >= 34 else "", "unresolved"),
        Part(" !" if facts.is_risky else "", "error"),
        Part(" ⚠" if facts.is_stuck else "", "warning"),
        Part(f" {facts.agents}×" if facts.agents > 1 and width >= 40 else "", "dim"),
        Part(align_right(impact, 5) if width >= 34 else "", "unresolved" if facts.reds else "fixed"),
        Part(align_right(size, 8) if width >= 60 else "", "dim"),
        Part(" "),
    ]
    head = [
        Part(align_right(str(facts.rank), 2 if facts.rank < 100 else 3), "dim"),
        Part(" "),
        Part(pad_text(word, 7), role),
        Part(facts.title, "dim" if facts.verdict == "keep" else ""),
    ]
    return spread(head, tail, width)


@dataclass(frozen=True, slots=True)
class EffectFacts:
    """What reverting the fix under the cursor would do, as far as it is known by now."""

    is_reverted: bool
    is_known: bool
    is_part: bool = False
    """It is row 0 or a part of it, which is left out and not reverted."""
    conflict_with: tuple[str, ...] = ()
    conflict_paths: tuple[str, ...] = ()
    is_unchanging: bool = False
    tests_red: int | None = None
    tests_run: int = 0
    why_rank: str = ""
    is_left_out: bool = False
    """It is not on the branch: the plan may take it in."""


def draw_effect(facts: EffectFacts, width: int) -> Line:
    """Return the line under the panels: the consequence of a revert, and why the fix ranks where it does."""
    deed = "taken in" if facts.is_left_out else "left out" if facts.is_part else "reverted"
    left = [Part(" "), Part(f"{deed}: " if facts.is_reverted else f"if {deed}: ", "dim")]
    if not facts.is_known:
        left.append(Part("…", "dim"))
    elif facts.conflict_with or facts.conflict_paths:
        against = f"conflicts with {', '.join(facts.conflict_with)}" if facts.conflict_with else "conflicts"
        left += [Part(against, "error"), Part(f" in {', '.join(facts.conflict_paths[:2])}", "dim")]
        left.append(Part("  s: swap it in" if facts.is_left_out else "  c: what can be done", "key"))
    elif facts.is_unchanging:
        left.append(Part("changes nothing", "warning"))
    else:
        left.append(Part("clean", "good"))
    if facts.tests_red is not None:
        word = "test goes" if facts.tests_red == 1 else "tests go"
        outcome = f"{facts.tests_red} {word} red" if facts.tests_red else f"all {facts.tests_run} tests stay green"
        left += [Part(" · ", "faint"), Part(outcome, "unresolved" if facts.tests_red else "good")]
    why = [Part("  "), Part(facts.why_rank, "dim"), Part(" ")] if facts.why_rank else []
    # The hint about a conflict is more important than the reason for the rank.
    return spread(left, why, width) if width_of(left) + width_of(why) <= width else cut_line(left, width)


@dataclass(frozen=True, slots=True)
class FixEvidence:
    """Everything that speaks for or against a fix."""

    message: str
    author: str
    verdict: str = ""
    verdict_by: str = ""
    verdict_age: float | None = None
    verdict_why: str = ""
    turned_green: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    is_measured: bool = False
    """Whether the integrator ran these tests; else it is what its agents report."""
    agents: tuple[TestRecord, ...] = ()
    """The tests whose agents made it."""
    runs: tuple[tuple[str, bool | None, str], ...] = ()
    """Tests that were run without this fix: node id, passed, failure line."""
    teeth: tuple[TestTeeth, ...] = ()
    """The tests that it changes."""
    sent_back: tuple[str, str] = ("", "")
    """Who sent it back to its author and what became of that, and what was said."""
    risks: tuple[str, ...] = ()
    """What is risky about its files."""
    hunks_reverted: tuple[str, ...] = ()
    """The hunks of it that are reverted, each with its number."""


def draw_evidence(evidence: FixEvidence, width: int) -> list[Line]:
    lines: list[Line] = []
    if evidence.verdict:
        who = f" by {plain(evidence.verdict_by, 40)}" if evidence.verdict_by else ""
        when = f", {age(evidence.verdict_age)}" if evidence.verdict_age is not None else ""
        word, role = VERDICT_WORDS.get(evidence.verdict, (evidence.verdict, "dim"))
        lines += [[Part(word, role), Part(f"{who}{when}", "dim")]]
        lines += _wrapped(evidence.verdict_why, width)
    lines += [cut_line([Part("without ", "removed"), Part(hunk)], width) for hunk in evidence.hunks_reverted]
    if evidence.sent_back[0]:
        lines += _wrapped(evidence.sent_back[0], width, "accent")
        lines += _wrapped(evidence.sent_back[1], width)
    for risk in evidence.risks:
        lines += [
            [Part("! " if number == 0 else "  ", "error"), Part(row, "error")]
            for number, row in enumerate(wrap_text(risk, max(10, width - 2), 3))
        ]
    lines += _wrapped(evidence.message, width)
    author = [Part(plain(evidence.author, 100), "dim")]
    cost = cost_words(evidence.agents)
    lines.append([*author, Part(f" · {cost}", "dim")] if cost else author)
    lines += _impact(evidence, width)
    teeth = draw_teeth(evidence.teeth, width)
    lines += [*teeth, [Part("measured with all of this fix", "dim")]] if teeth and evidence.hunks_reverted else teeth
    for number, agent in enumerate(evidence.agents):
        lines += ([], *_agent_lines(agent, width)) if number or lines else _agent_lines(agent, width)
    if evidence.runs:
        lines += [[], [Part("without it", "heading")]]
        for test, passed, failure in evidence.runs:
            glyph, role = ("…", "dim") if passed is None else ("✓", "good") if passed else ("✗", "unresolved")
            lines.append(
                cut_line([Part(f"{glyph} ", role), Part(plain(test)), Part(f"  {plain(failure)}", "dim")], width)
            )
    return lines


def _impact(evidence: FixEvidence, width: int) -> list[Line]:
    source = "measured" if evidence.is_measured else "as its agents report"
    lines: list[Line] = []
    for tests, glyph, role, word in (
        (evidence.turned_green, "▲ ", "fixed", "turns green"),
        (evidence.broken, "▼ ", "unresolved", "breaks"),
    ):
        if tests:
            lines.append(cut_line([Part(word, role), Part(f", {source}", "dim")], width))
            lines += [[Part(glyph, role), Part(cut_middle(plain(test, 500), max(1, width - 2)))] for test in tests]
    return lines


def draw_report(
    outcome: IntegratorOutcome, branch: IntegratedBranch, maker_of: Callable[[LeftOut], str], width: int
) -> list[Line]:
    """Return what the integrator reported besides its fixes as lines; none when there is nothing to read."""
    lines: list[Line] = []
    for heading, role, entries in (
        ("look at these files", "error", [("", risk) for risk in branch.risk_lines]),
        ("does not fit", "warning", [("", doubt) for doubt in branch.doubts]),
        ("needs somebody", "blocked", [(each.title, each.detail_markdown) for each in outcome.escalations]),
        ("left out", "unresolved", [(maker_of(left), left.reason) for left in outcome.failed]),
        ("made uniform", "dim", [("", made.summary_markdown) for made in outcome.normalizations]),
    ):
        if not entries:
            continue
        lines += [[], [Part(f"{heading} {len(entries)}", "heading")]] if lines else [[Part(heading, "heading")]]
        for title, detail in entries:
            if title:
                lines.append(cut_line([Part("• ", role), Part(plain(title, 300))], width))
            first = "  " if title else "• "
            for number, row in enumerate(wrap_text(plain_lines(detail).strip(), width - 2, 40) if detail else ()):
                lines.append([Part(first if number == 0 else "  ", role), Part(row, "dim" if title else "")])
    return lines


def _agent_lines(record: TestRecord, width: int) -> list[Line]:
    harvest = record.harvest
    results = [made.word for made in record.tries[-TRIES_SHOWN:]]
    if not results and harvest.passing_before is not None and harvest.passing_after is not None:
        results = [
            "passed" if was_passing else "failed" for was_passing in (harvest.passing_before, harvest.passing_after)
        ]
    tries = [Part(f" {glyph}", role) for glyph, role in (TRY_SIGNS[word] for word in results)]
    title = cut_text(plain(record.test), max(10, width - 2 * len(tries) - 1))
    lines: list[Line] = [[Part(title, "strong"), *tries]]
    if record.block:
        lines.append(cut_line([Part("tutorial ", "dim"), Part(plain(record.block), "dim")], width))
    return [*lines, *_wrapped(harvest.summary, width)]


def _wrapped(text: str, width: int, role: str = "") -> list[Line]:
    clean = plain_lines(text).strip()
    return [[Part(row, role)] for row in wrap_text(clean, width, 200)] if clean else []


def draw_file_heading(file: DiffFile, width: int) -> Line:
    """Return the line above a file's hunks, in place of git's own header of five."""
    name = file.path if file.old_path in ("", file.path) else f"{file.old_path} → {file.path}"
    kinds = [word for word in (file.mode_change and f"mode {file.mode_change}", file.is_binary and "binary") if word]
    line = [Part("── ", "faint"), Part(name, "strong"), Part(" ")]
    line += [Part(" ".join(kinds), "warning"), Part(" ")] if kinds else []
    line += [Part(f"+{file.added}", "added"), Part(f" -{file.removed} ", "removed")] if not file.is_binary else []
    rest = width - width_of(line)
    return cut_line([*line, Part("─" * max(0, rest), "faint")], width)


def draw_diff_summary(diff: Diff, width: int) -> list[Line]:
    """Return the files of a diff with what was added and removed, as `git diff --stat` does, above the diff itself."""
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
        line = [Part(f"{cut_text(name, width // 2):{min(widest, width // 2)}} "), Part(f"{size:>5} ", "dim")]
        lines.append(cut_line([*line, Part("+" * plus, "added"), Part("-" * (cells - plus), "removed")], width))
    return lines
