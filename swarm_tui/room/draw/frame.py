"""Bar of states, line of screens, next steps, footer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from swarm_tui.model.formatting import counted
from swarm_tui.room.actions import Action, KeyMap, key_name
from swarm_tui.room.draw.glyphs import PILLS, mark_of_pill
from swarm_tui.room.draw.spans import Line, Span, cut_line, spread, whole_entries, width_of


def draw_bar(counts: Mapping[str, int], width: int) -> list[Span]:
    """Return a bar of exactly `width` cells, split by state. Each state gets at least one cell if there are enough."""
    numbers = {pill: sum(counts.get(mark, 0) for mark in marks) for pill, marks in PILLS.items()}
    total = sum(numbers.values())
    if not total or width <= 0:
        return [Span("─" * width, "faint")]
    present = [pill for pill, number in numbers.items() if number]
    cells = {pill: max(1, numbers[pill] * width // total) for pill in present}
    while (extra := sum(cells.values()) - width) != 0:
        # Change the widest state, because one cell makes the least difference there.
        widest = max(present, key=lambda pill: cells[pill])
        if extra > 0 and cells[widest] <= 1:
            present.remove(widest)
            del cells[widest]
            continue
        cells[widest] -= 1 if extra > 0 else extra
    return [
        Span(("░" if pill in ("queued", "launching") else "█") * cells[pill], mark_of_pill(pill).role, f"pill:{pill}")
        for pill in cells
    ]


def draw_footer(actions: Sequence[Action], keys: KeyMap, width: int) -> Line:
    """Return the footer. Entries are whole or left out, `?` is always there, and unavailable actions are dim."""
    entries: list[list[Span]] = []
    last: list[Span] = []
    for action in actions:
        key = keys.first_key(action)
        if not action.label or not key:
            continue
        is_impossible = bool(action.why_not())
        if is_impossible and action.is_hidden:
            continue
        role, label_role = ("faint", "faint") if is_impossible else ("key", "dim")
        entry = [Span(key_name(key), role, f"do:{action.id}"), Span(f" {action.label}", label_role, f"do:{action.id}")]
        if action.id == "room.help":
            last = entry
        else:
            entries.append(entry)
    right = [*last, Span(" ")]
    left = whole_entries(entries, max(0, width - width_of(right) - 3))
    return spread([Span(" "), *left], right, width)


def draw_message(text: str, level: str, width: int) -> Line:
    role = {"error": "error", "warning": "warning", "good": "good"}.get(level, "")
    return cut_line([Span(" "), Span(text, role)], width)


LOW: Final = 16
"""Below this height a screen shows only its list, without the line of screens and without a second panel."""
SHORT_TITLE: Final = 2
"""Letters of a screen's name that are shown on a narrow terminal."""


class ScreenFacts(NamedTuple):
    """One screen in the line."""

    key: str
    name: str
    title: str
    open: int
    """Number of open items; 0 is not shown."""
    is_here: bool = False


class NextFacts(NamedTuple):
    """Next steps after a sweep."""

    fixes: int
    """Number of fixes without a verdict."""
    decided: int
    applied: str
    """The branch that the plan was applied to; "" if it was not applied, or has changed since."""
    """Number of fixes with a verdict."""
    questions: int
    others: int
    """Number of other items in the inbox."""
    can_resume: bool
    is_integration_failed: bool


def draw_screen_line(screens: Sequence[ScreenFacts], width: int) -> Line:
    """Return the line with whole names if they fit, else with first letters, else with keys and numbers only."""
    for letters in (100, SHORT_TITLE, 0):
        entries = [_entry(screen, letters) for screen in screens]
        gap = 2 if letters > SHORT_TITLE else 1
        line = [Span(" "), *whole_entries(entries, 10_000, gap)]
        if width_of(line) <= width:
            return line
    return cut_line(line, width)


def _entry(screen: ScreenFacts, letters: int) -> Line:
    spot = f"screen:{screen.name}"
    role = "here" if screen.is_here else "dim"
    title = screen.title[:letters]
    is_whole = letters > SHORT_TITLE
    parts = [Span(screen.key, "here" if screen.is_here else "key", spot)]
    if title:
        parts.append(Span(f" {title}", role, spot))
    if screen.open:
        parts.append(Span(f"{' ' if is_whole else '·'}{screen.open:,}", "number_open", spot))
    return parts


def draw_next(facts: NextFacts, width: int) -> Line:
    """Return the next steps after a sweep, each with its key."""
    steps: list[Line] = []
    if facts.fixes:
        steps.append(_step(f"{counted(facts.fixes, 'fix is', 'fixes are')} ready", "3", "good"))
    elif facts.applied:
        steps.append(_step(f"applied on {facts.applied}", "3", "good"))
    elif facts.decided:
        steps.append(_step("every fix has a verdict, A applies them", "3", "good"))
    elif facts.is_integration_failed:
        steps.append(_step("integration failed", "3", "error"))
    if facts.questions:
        steps.append(_step(counted(facts.questions, "question"), "5", "waiting"))
    if facts.others:
        more = "more need" if steps else "need"
        more = more.replace("need", "needs") if facts.others == 1 else more
        steps.append(_step(f"{facts.others:,} {more} you", "5", "warning"))
    if facts.can_resume:
        steps.append(_step("resume the sweep", "R", ""))
    if not steps:
        return cut_line([Span(" Nothing left to do here", "dim")], width)
    line: list[Span] = [Span(" "), Span("Next ", "dim")]
    for number, step in enumerate(steps):
        line += [Span(" · ", "faint")] if number else []
        line += step
    return cut_line(line, width)


def _step(words: str, key: str, role: str) -> Line:
    spot = {"3": "screen:fixes", "5": "screen:inbox"}.get(key, "do:sweep.resume")
    return [Span(f"{words}: ", role, spot), Span(key, "key", spot)]


FIRST_LINES: Final = (
    (("Enter", "open {noun}"), ("w", "go to the next that needs you"), ("a", "attach to its terminal")),
    (("1", "to"), ("7", "switch screens"), ("?", "list all keys")),
    (("q", "leave; the agents keep running"), ("Esc", "go back, and close this help")),
)
"""Introduction that is shown at the first start."""


def draw_first_lines(width: int, noun: str = "a test") -> list[Line]:
    lines: list[Line] = []
    for entries in FIRST_LINES:
        line: list[Span] = [Span(" ")]
        for key, words in entries:
            words = words.replace("{noun}", noun)
            line += [Span(key, "key"), Span(f" {words}{' ' if words == 'to' else '   '}", "")]
        lines.append(cut_line(line, width))
    return lines
