"""Reads records, the work that the offline agent replays: one TOML file for each test."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from swarm_tui.files import read_regular

KINDS: Final = ("IMPROVE_TEST", "FIX_TEST", "FIX_TUTORIAL", "FIX_IMPL")
ESCALATIONS: Final = (
    *("UNCAUGHT_BUG", "FIX_DIRECTION_AMBIGUOUS", "HARNESS_DEFECT", "SUITE_DUPLICATION", "HARD_TO_USE"),
    *("BLOCKER", "SHARED_PATTERN"),  # older names
)
BREAKAGES: Final = ("outcome", "archive", "bundle", "missing", "huge", "path")

# The key of each step, the type of its value, and its optional keys.
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
    """An invalid record; the message is the reason."""


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One step: the action (`name`), its first argument (`value`), and the others by name."""

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
    """The steps to replay each time that the work is sent back."""


def parse_record(text: str) -> Record:
    """Return the record in a text. Raise BadRecord with the number of the invalid step."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadRecord(f"invalid TOML: {error}") from error
    unknown = content.keys() - {"test", "summary", "step", "revise"}
    if unknown:
        raise BadRecord(f"unknown keys: {', '.join(sorted(unknown))}")
    test, summary, steps = content.get("test"), content.get("summary", ""), content.get("step", [])
    if not isinstance(test, str) or not test:
        raise BadRecord("`test` is missing: give the node id of the test")
    if not isinstance(summary, str) or not isinstance(steps, list):
        raise BadRecord("`summary` must be a text, and every step must begin with [[step]]")
    revisions = content.get("revise", [])
    if not isinstance(revisions, list) or not all(_is_revision(entry) for entry in revisions):
        raise BadRecord("work that is sent back must begin with [[revise]], and its steps with [[revise.step]]")
    return Record(test, summary, _parse_steps(steps), tuple(_parse_steps(entry["step"]) for entry in revisions))


def _is_revision(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.keys() == {"step"} and isinstance(entry["step"], list)


def _parse_steps(steps: list[Any]) -> tuple[RecordedStep, ...]:
    return tuple(_parse_step(number, step) for number, step in enumerate(steps, 1))


def _parse_step(number: int, content: Any) -> RecordedStep:
    names = [name for name in content if name in _STEPS] if isinstance(content, dict) else []
    if len(names) != 1:
        raise BadRecord(f"step {number} must have exactly one of {', '.join(_STEPS)}")
    name = names[0]
    kind, optional = _STEPS[name]
    value: Any = content[name]
    if not isinstance(value, kind):
        raise BadRecord(f"step {number}: invalid value for `{name}`: {value!r}")
    if name in _CHOICES and value not in _CHOICES[name]:
        raise BadRecord(f"step {number}: `{name}` must be one of {', '.join(_CHOICES[name])}")
    if name in _PATHS and _leads_out(str(value)):
        raise BadRecord(f"step {number}: {value!r} is outside of the checkout")
    more = {key: text for key, text in content.items() if key != name}
    if more.keys() - optional or not all(isinstance(text, str) for text in more.values()):
        raise BadRecord(f"step {number}: other keys of `{name}` must be texts: {', '.join(sorted(optional)) or 'none'}")
    return RecordedStep(name, value, more)


def _leads_out(path: str) -> bool:
    return path.startswith("/") or ".." in Path(path).parts


def find_record(folder: Path, test: str) -> Record | None:
    """Return the record of a test, or None. Raise BadRecord if it is invalid."""
    broken = ""
    for path in sorted(folder.rglob("*.toml")):
        text = read_regular(path).decode(errors="replace")
        try:
            record = parse_record(text)
        except BadRecord as error:
            # An invalid file matters only if it mentions this test.
            broken = broken or (f"{path.name}: {error}" if test in text else "")
            continue
        if record.test == test:
            return record
    if broken:
        raise BadRecord(broken)
    return None
