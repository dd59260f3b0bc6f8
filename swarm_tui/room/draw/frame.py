"""The frame of every screen: on top the sweep in numbers and the bar of states, below the keys or a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from swarm_tui.model.formatting import clock
from swarm_tui.room.actions import Action, KeyMap, key_name
from swarm_tui.room.draw.glyphs import PILLS, mark_of_pill
from swarm_tui.room.draw.parts import Line, Part, cut_line, spread, whole_entries, width_of


@dataclass(frozen=True, slots=True)
class HeaderFacts:
    """What the header shows."""

    sweep: str
    title: str
    place: str
    """`main@3f1764b`"""
    elapsed: float | None
    left: float | None
    """Seconds to the end; None without a forecast."""
    slots: int
    dial: str
    """`6 of 24: limited until 18:22`; empty when as many agents may work as there are slots."""
    wanted_slots: int
    active: int
    cost: str
    """`$3.42/20`, `$3.42 imputed`; empty when nothing is known."""
    cost_role: str
    counts: Mapping[str, int]
    shown_pills: frozenset[str]
    """The pills that filter; empty when all states are shown."""
    status: str = ""
    """`held`, `engine gone`, `over` ..., with the role in which it is shown."""
    status_role: str = ""
    status_more: str = ""
    """What goes with the status where there is room."""
    screen: str = ""
    has_slots: bool = True


def draw_header(facts: HeaderFacts, width: int, height: int = 2) -> list[Line]:
    return [_facts_line(facts, width), _bar_line(facts, width)][: max(1, height)]


def _facts_line(facts: HeaderFacts, width: int) -> Line:
    left = [Part(" "), Part(facts.sweep, "strong")]
    if facts.screen:
        left += [Part(" · ", "faint"), Part(facts.screen, "accent")]
    about = " · ".join(word for word in (facts.title, facts.place) if word)
    entries: list[list[Part]] = []
    if facts.status:
        entries.append([Part(facts.status, facts.status_role)])
    if facts.status_more:
        entries.append([Part(facts.status_more, facts.status_role)])
    if facts.elapsed is not None:
        entries.append([Part(clock(facts.elapsed))])
    if facts.left is not None:
        entries.append([Part(f"~{clock(facts.left)} left", "dim")])
    slots = [
        Part("slots ", "dim"),
        Part(facts.dial or f"{facts.active}/{facts.slots}", "warning" if facts.dial else ""),
    ]
    if facts.wanted_slots != facts.slots:
        slots.append(Part(f"→{facts.wanted_slots}", "pending"))
    # Why fewer agents work than were asked for comes before the time on a narrow terminal.
    if facts.has_slots:
        entries.insert(len(entries) if not facts.dial else bool(facts.status), slots)
    if facts.cost:
        # A budget that is nearly spent comes before the time, too.
        entries.insert(bool(facts.status) if facts.cost_role else len(entries), [Part(facts.cost, facts.cost_role)])
    right = [*whole_entries(entries, max(0, width - width_of(left) - 3), 3), Part(" ")]
    if about and width_of(left) + len(about) + width_of(right) + 4 <= width:
        left += [Part("  "), Part(about, "dim")]
    return spread(left, right, width)


def _bar_line(facts: HeaderFacts, width: int) -> Line:
    total = sum(facts.counts.values())
    pills = _pills(facts)
    pills_line = whole_entries([*pills, [Part(f"{total:,}", "dim")]], max(10, width - 2), 1)
    room = width - width_of(pills_line) - 4
    if room < 12 or not total:
        return cut_line([Part(" "), *pills_line], width)
    return [Part(" "), *draw_bar(facts.counts, room), Part("  "), *pills_line, Part(" ")]


def _pills(facts: HeaderFacts) -> list[list[Part]]:
    pills = []
    for pill, marks in PILLS.items():
        number = sum(facts.counts.get(mark, 0) for mark in marks)
        if not number and pill not in facts.shown_pills:
            continue
        mark = mark_of_pill(pill)
        role = mark.role if not facts.shown_pills or pill in facts.shown_pills else "faint"
        role += " underline" if pill in facts.shown_pills else ""
        pills.append([Part(f"{mark.glyph}{number:,}", role, f"pill:{pill}")])
    return pills


def draw_bar(counts: Mapping[str, int], width: int) -> list[Part]:
    """Return a bar of exactly `width` cells, split by state; every state present gets a cell if there are enough."""
    numbers = {pill: sum(counts.get(mark, 0) for mark in marks) for pill, marks in PILLS.items()}
    total = sum(numbers.values())
    if not total or width <= 0:
        return [Part("─" * width, "faint")]
    present = [pill for pill, number in numbers.items() if number]
    cells = {pill: max(1, numbers[pill] * width // total) for pill in present}
    while (extra := sum(cells.values()) - width) != 0:
        # The widest state is changed, where one cell makes the least difference.
        widest = max(present, key=lambda pill: cells[pill])
        if extra > 0 and cells[widest] <= 1:
            present.remove(widest)
            del cells[widest]
            continue
        cells[widest] -= 1 if extra > 0 else extra
    return [
        Part(("░" if pill in ("queued", "launching") else "█") * cells[pill], mark_of_pill(pill).role, f"pill:{pill}")
        for pill in cells
    ]


def draw_footer(actions: Sequence[Action], keys: KeyMap, width: int) -> Line:
    """Return the footer: whole entries only, what is not possible now dimmed, the key of the help always there."""
    entries: list[list[Part]] = []
    last: list[Part] = []
    for action in actions:
        key = keys.first_key(action)
        if not action.label or not key:
            continue
        role, label_role = ("faint", "faint") if action.why_not() else ("key", "dim")
        entry = [Part(key_name(key), role, f"do:{action.id}"), Part(f" {action.label}", label_role, f"do:{action.id}")]
        if action.id == "room.help":
            last = entry
        else:
            entries.append(entry)
    right = [*last, Part(" ")]
    left = whole_entries(entries, max(0, width - width_of(right) - 3))
    return spread([Part(" "), *left], right, width)


def draw_message(text: str, level: str, width: int) -> Line:
    role = {"error": "error", "warning": "warning", "good": "good"}.get(level, "")
    return cut_line([Part(" "), Part(text, role)], width)
