"""Reads records: the work that the offline agent plays, one readable TOML file for each test."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from swarm_tui.regular_file import read_regular

KINDS: Final = ("IMPROVE_TEST", "FIX_TEST", "FIX_TUTORIAL", "FIX_IMPL")
ESCALATIONS: Final = (
    *("UNCAUGHT_BUG", "FIX_DIRECTION_AMBIGUOUS", "HARNESS_DEFECT", "SUITE_DUPLICATION", "HARD_TO_USE"),
    *("BLOCKER", "SHARED_PATTERN"),  # older words
)
BREAKAGES: Final = ("outcome", "archive", "bundle", "missing", "huge", "path")

# The key that names a step, the type of its value, and the other keys that the step may have.
_STEPS: Final[Mapping[str, tuple[type | tuple[type, ...], frozenset[str]]]] = {
    "say": (str, frozenset()),
    "run": (str, frozenset()),
    "edit": (str, frozenset({"old", "new"})),
    "write": (str, frozenset({"text"})),
    "uncommitted": (str, frozenset({"text"})),
    "commit": (str, frozenset({"message", "summary"})),
    "fail": (str, frozenset({"summary"})),
    "ask": (str, frozenset({"answer"})),
    "escalate": (str, frozenset({"title", "detail"})),
    "sleep": ((int, float), frozenset()),
    "claim": (dict, frozenset()),
    "crash": (int, frozenset()),
    "hang": (bool, frozenset()),
    "break": (str, frozenset()),
}
_CHOICES: Final = {"commit": KINDS, "fail": KINDS, "escalate": ESCALATIONS, "break": BREAKAGES}
_PATHS: Final = frozenset({"edit", "write", "uncommitted"})


class BadRecord(ValueError):
    """A record that cannot be played; its text says why."""


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One step: what to do (`name`), its first argument (`value`), and the others by name."""

    name: str
    value: Any
    more: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Record:
    """The recorded work on one test."""

    test: str
    summary: str = ""
    steps: tuple[RecordedStep, ...] = ()
    revisions: tuple[tuple[RecordedStep, ...], ...] = ()
    """What is played when the work is sent back: the first time, the second time ..."""


def parse_record(text: str) -> Record:
    """Return the record in a text; raise BadRecord with the step that is wrong."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadRecord(f"it is no TOML: {error}") from error
    unknown = content.keys() - {"test", "summary", "step", "revise"}
    if unknown:
        raise BadRecord(f"unknown keys: {', '.join(sorted(unknown))}")
    test, summary, steps = content.get("test"), content.get("summary", ""), content.get("step", [])
    if not isinstance(test, str) or not test:
        raise BadRecord("`test` is missing: the node id that it is for")
    if not isinstance(summary, str) or not isinstance(steps, list):
        raise BadRecord("`summary` is a text and every step begins with [[step]]")
    revisions = content.get("revise", [])
    if not isinstance(revisions, list) or not all(_is_revision(entry) for entry in revisions):
        raise BadRecord(
            "what is done when the work is sent back begins with [[revise]], its steps with [[revise.step]]"
        )
    return Record(test, summary, _parse_steps(steps), tuple(_parse_steps(entry["step"]) for entry in revisions))


def _is_revision(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.keys() == {"step"} and isinstance(entry["step"], list)


def _parse_steps(steps: list[Any]) -> tuple[RecordedStep, ...]:
    return tuple(_parse_step(number, step) for number, step in enumerate(steps, 1))


def _parse_step(number: int, content: Any) -> RecordedStep:
    names = [name for name in content if name in _STEPS] if isinstance(content, dict) else []
    if len(names) != 1:
        raise BadRecord(f"step {number} has to have exactly one of {', '.join(_STEPS)}")
    name = names[0]
    kind, beside = _STEPS[name]
    value: Any = content[name]
    if not isinstance(value, kind):
        raise BadRecord(f"step {number}: {value!r} is no value for `{name}`")
    if name in _CHOICES and value not in _CHOICES[name]:
        raise BadRecord(f"step {number}: `{name}` is one of {', '.join(_CHOICES[name])}")
    if name in _PATHS and _leads_out(str(value)):
        raise BadRecord(f"step {number}: {value!r} leads out of the checkout")
    more = {key: text for key, text in content.items() if key != name}
    if more.keys() - beside or not all(isinstance(text, str) for text in more.values()):
        raise BadRecord(f"step {number}: beside `{name}` stand only texts for {', '.join(sorted(beside)) or 'nothing'}")
    return RecordedStep(name, value, more)


def _leads_out(path: str) -> bool:
    return path.startswith("/") or ".." in Path(path).parts


def find_record(folder: Path, test: str) -> Record | None:
    """Return the record for a test, or None; raise BadRecord for one that is broken."""
    broken = ""
    for path in sorted(folder.rglob("*.toml")):
        text = read_regular(path).decode(errors="replace")
        try:
            record = parse_record(text)
        except BadRecord as error:
            # Only a file that speaks of this test concerns this test.
            broken = broken or (f"{path.name}: {error}" if test in text else "")
            continue
        if record.test == test:
            return record
    if broken:
        raise BadRecord(broken)
    return None
