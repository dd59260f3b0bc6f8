"""Which tests the grid shows, in which groups and in which order."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from swarm_tui.insight.attention import attention_order
from swarm_tui.insight.patterns import cause_of
from swarm_tui.model.node_ids import name_of_test
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import MARKS
from swarm_tui.model.text import plain
from swarm_tui.room.draw.glyphs import PILLS, word_of


class Zoom(StrEnum):
    """How large a test is drawn; of thousands only the numbers are, by file or folder."""

    FOLDERS = "folders"
    DOTS = "dots"
    CHIPS = "chips"
    ROWS = "rows"


GROUPINGS: Final = ("file", "state", "result", "cause", "host", "none")
SORTINGS: Final = ("file", "state", "need", "duration", "cost", "name")
WATCH_GROUPINGS: Final = ("project", "host", "type", "state", "none")
"""Of agents that are no sweep's; each of their labels groups them too."""
WATCH_SORTINGS: Final = ("name", "state", "need", "duration", "cost")
LABELS_OFFERED: Final = 12
_LABEL: Final = "label "
_LASTING_GROUPINGS: Final = ("file", "none", "project", "host", "type")


@dataclass(frozen=True, slots=True)
class GridOptions:
    """How a person wants to see the tests."""

    zoom: Zoom = Zoom.DOTS
    group: str = "file"
    sort: str = "file"
    pills: frozenset[str] = frozenset()
    """Only tests with these pills; all, when empty."""
    words: str = ""
    """What is typed behind `/`."""
    only: frozenset[str] | None = None
    """Only these tests: a pattern, for example."""
    only_name: str = ""

    @property
    def is_filtering(self) -> bool:
        return bool(self.pills or self.words or self.only is not None)

    @property
    def moves_by_state(self) -> bool:
        """Whether a change of a test can move it in the grid, or hide it."""
        is_lasting = self.group in _LASTING_GROUPINGS or self.group.startswith(_LABEL)
        return bool(self.pills or self.words or not is_lasting or self.sort not in ("file", "name"))


class Group(NamedTuple):
    """Some tests under one label, in their order."""

    label: str
    tests: tuple[str, ...]


def arrange(records: Mapping[str, TestRecord], choice: GridOptions, now: float) -> list[Group]:
    shown = [record for record in _in_scope(records, choice) if _fits(choice, record)]
    key = _sort_key(choice.sort, now)
    if key is not None:
        shown.sort(key=key)
    if choice.group == "none":
        return [Group("", tuple(record.test for record in shown))] if shown else []
    groups: dict[str, list[str]] = {}
    label_of = _label_function(choice.group)
    for record in shown:
        groups.setdefault(label_of(record), []).append(record.test)
    names = short_file_names(groups) if choice.group == "file" else {}
    ordered = sorted(groups.items(), key=_group_order(choice.group))
    return [Group(names.get(label) or plain(label, 300), tuple(tests)) for label, tests in ordered]


def _in_scope(records: Mapping[str, TestRecord], choice: GridOptions) -> Iterable[TestRecord]:
    if choice.only is None:
        return records.values()
    return (record for test, record in records.items() if test in choice.only)


def _fits(choice: GridOptions, record: TestRecord) -> bool:
    if choice.pills and not any(record.mark in PILLS[pill] for pill in choice.pills):
        return False
    return not choice.words or fits_words(choice.words, searched_text(record))


def fits_words(words: str, text: str) -> bool:
    """Whether a text has all these words; `!word` asks for its absence. Case does not matter."""
    lowered = text.casefold()
    for word in words.casefold().split():
        if word.startswith("!"):
            if len(word) > 1 and word[1:] in lowered:
                return False
        elif word not in lowered:
            return False
    return True


def searched_text(record: TestRecord) -> str:
    """Return everything of a test that a filter searches."""
    known = f"{record.baseline} {record.group} {record.host}"
    return f"{record.test} {word_of(record)} {record.block} {known} {record.reason} {record.question}"


def _sort_key(sort: str, now: float) -> Callable[[TestRecord], Any] | None:
    match sort:
        case "file":
            return lambda record: (record.file or record.test, record.line)
        case "state":
            places = {mark: place for place, mark in enumerate(MARKS)}
            return lambda record: places[record.mark]
        case "need":
            return attention_order
        case "duration":
            return lambda record: -_duration(record, now)
        case "cost":
            return lambda record: -record.spending.dollars
        case "name":
            return lambda record: name_of_test(record.test)
        case _:
            return None


def _duration(record: TestRecord, now: float) -> float:
    return (record.ended_at or now) - record.launched_at if record.launched_at is not None else -1.0


def is_grouping(name: str, *, is_watch: bool) -> bool:
    """Return whether tests, or the agents of a watch, can be grouped so."""
    return name in WATCH_GROUPINGS or name.startswith(_LABEL) if is_watch else name in GROUPINGS


def watch_groupings(records: Iterable[TestRecord]) -> tuple[str, ...]:
    """Return how the agents of a watch can be grouped: also by each label that they have, the commonest first."""
    labels = Counter(
        trait.partition("=")[0] for record in records for trait in record.traits if trait.startswith(_LABEL)
    )
    return (*WATCH_GROUPINGS, *(name for name, _ in labels.most_common(LABELS_OFFERED)))


def _label_function(group: str) -> Callable[[TestRecord], str]:
    """Return what names the group of a record."""
    known = _GROUP_LABELS.get(group)
    if known is not None:
        return known
    is_label = group.startswith(_LABEL)
    beginning = f"{group}=" if is_label else f"{group} "
    shown_from = len(_LABEL) if is_label else len(beginning)
    none = f"no {group}"

    def label_of(record: TestRecord) -> str:
        return next((trait[shown_from:] for trait in record.traits if trait.startswith(beginning)), "") or none

    return label_of


_GROUP_LABELS: Final[dict[str, Callable[[TestRecord], str]]] = {
    "file": lambda record: record.file or record.test.split("::", 1)[0],
    "state": lambda record: record.state.value,
    "result": lambda record: word_of(record) if record.result is not None else "no result yet",
    "cause": lambda record: cause_of(record) or "nothing failed",
    "host": lambda record: record.host or "no host yet",
}
_STATES_IN_ORDER: Final = (
    "waiting", "running", "launching", "harvesting", "queued", "done", "stopped",
)  # fmt: skip


def _group_order(group: str) -> Callable[[tuple[str, list[str]]], Any]:
    match group:
        case "state":
            return lambda entry: _STATES_IN_ORDER.index(entry[0])
        case "result":
            words = [mark.word for mark in MARKS.values()]
            return lambda entry: words.index(entry[0]) if entry[0] in words else len(words)
        case "cause":
            return lambda entry: (entry[0] == "nothing failed", -len(entry[1]), entry[0])
        case _:
            return lambda entry: natural(entry[0])


_DIGITS: Final = re.compile(r"(\d+)")


def natural(text: str) -> list[tuple[int, int, str]]:
    return [(0, int(part), "") if part.isdecimal() and part.isascii() else (1, 0, part) for part in _DIGITS.split(text)]


def short_file_names(files: Iterable[str]) -> dict[str, str]:
    """Return a short name for each file, unlike all others: without folders where the names differ without them."""
    names = list(files)
    shared = posixpath.commonpath(names) if len(names) > 1 and not any(posixpath.isabs(name) for name in names) else ""
    for shorten in (_stem, lambda name: _with_folders(name, shared)):
        shortened = {name: plain(shorten(name), 300) or name for name in names}
        if len(set(shortened.values())) == len(names):
            return shortened
    return {name: plain(name, 300) or repr(name) for name in names}


def _stem(name: str) -> str:
    base = name.rpartition("/")[2].removesuffix(".py")
    return base.removeprefix("test_") or base


def _with_folders(name: str, shared: str) -> str:
    rest = name[len(shared) + 1 :] if shared and name.startswith(f"{shared}/") else name
    folder = rest.rpartition("/")[0]
    return f"{folder}/{_stem(rest)}" if folder else _stem(rest)
