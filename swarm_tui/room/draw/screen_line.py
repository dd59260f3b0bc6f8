"""Draws the line of screens below the header, with what is open on each, and the line that says what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from swarm_tui.model.formatting import counted
from swarm_tui.room.draw.parts import Line, Part, cut_line, whole_entries, width_of

LOW: Final = 16
"""Below this height a screen is its list alone, without the line of screens and without a second panel."""
SHORT_TITLE: Final = 2
"""So many letters of a screen's name are left where the line is narrow."""


class ScreenFacts(NamedTuple):
    """One screen in the line."""

    key: str
    name: str
    title: str
    open: int
    """How much there waits for somebody; 0 is not shown."""
    is_here: bool = False


class NextFacts(NamedTuple):
    """What a sweep that has ended leaves to be done."""

    fixes: int
    """Fixes without a verdict."""
    decided: int
    """Fixes with one."""
    questions: int
    others: int
    """What else is in the inbox."""
    can_resume: bool
    is_integration_failed: bool


def draw_screen_line(screens: Sequence[ScreenFacts], width: int) -> Line:
    """Return the line with whole names, else with their first letters, else with keys and numbers only."""
    for letters in (100, SHORT_TITLE, 0):
        entries = [_entry(screen, letters) for screen in screens]
        gap = 2 if letters > SHORT_TITLE else 1
        line = [Part(" "), *whole_entries(entries, 10_000, gap)]
        if width_of(line) <= width:
            return line
    return cut_line(line, width)


def _entry(screen: ScreenFacts, letters: int) -> Line:
    spot = f"screen:{screen.name}"
    role = "here" if screen.is_here else "dim"
    title = screen.title[:letters]
    is_whole = letters > SHORT_TITLE
    parts = [Part(screen.key, "here" if screen.is_here else "key", spot)]
    if title:
        parts.append(Part(f" {title}", role, spot))
    if screen.open:
        parts.append(Part(f"{' ' if is_whole else '·'}{screen.open:,}", "number_open", spot))
    return parts


def draw_next(facts: NextFacts, width: int) -> Line:
    """Return what comes next after a sweep that has ended, each thing with the key that leads there."""
    steps: list[Line] = []
    if facts.fixes:
        steps.append(_step(f"{counted(facts.fixes, 'fix is', 'fixes are')} ready", "3", "good"))
    elif facts.decided:
        steps.append(_step("every fix has its verdict, A applies them", "3", "good"))
    elif facts.is_integration_failed:
        steps.append(_step("the work could not be integrated", "3", "error"))
    if facts.questions:
        steps.append(_step(counted(facts.questions, "question"), "5", "waiting"))
    if facts.others:
        more = "more need" if steps else "need"
        more = more.replace("need", "needs") if facts.others == 1 else more
        steps.append(_step(f"{facts.others:,} {more} you", "5", "warning"))
    if facts.can_resume:
        steps.append(_step("go on with it", "R", ""))
    if not steps:
        return cut_line([Part(" Nothing is left to do here", "dim")], width)
    line: list[Part] = [Part(" "), Part("Next ", "dim")]
    for number, step in enumerate(steps):
        line += [Part(" · ", "faint")] if number else []
        line += step
    return cut_line(line, width)


def _step(words: str, key: str, role: str) -> Line:
    spot = {"3": "screen:fixes", "5": "screen:inbox"}.get(key, "do:sweep.resume")
    return [Part(f"{words}: ", role, spot), Part(key, "key", spot)]


FIRST_LINES: Final = (
    (("Enter", "opens {noun}"), ("w", "goes to who wants you"), ("a", "attaches to its terminal")),
    (("1", "to"), ("7", "are the screens above"), ("?", "lists every key")),
    (("q", "leaves; the agents go on"), ("Esc", "goes back, and puts these lines away")),
)
"""What is taught at the very first start, once."""


def draw_first_lines(width: int, noun: str = "a test") -> list[Line]:
    lines: list[Line] = []
    for entries in FIRST_LINES:
        line: list[Part] = [Part(" ")]
        for key, words in entries:
            words = words.replace("{noun}", noun)
            line += [Part(key, "key"), Part(f" {words}{' ' if words == 'to' else '   '}", "")]
        lines.append(cut_line(line, width))
    return lines
