"""Measure how well causes are distinguished, with failures whose cause is known."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from swarm_tui.failures.causes import cause_of_failure
from swarm_tui.failures.events import FailureDetail, parse_failure

FAILURES: Final = Path(__file__).with_name("failures.jsonl")


class LabelledFailure(NamedTuple):
    """One failure with its known cause."""

    cause: str
    test: str
    failure: str
    detail: FailureDetail | None
    is_held_out: bool


def labelled_failures() -> list[LabelledFailure]:
    """Return the recorded failures."""
    lines = map(json.loads, FAILURES.read_text().splitlines())
    return [
        LabelledFailure(
            f"{'fleet' if line['is_held_out'] else 'shop'}: {line['cause']}", line["test"], line["failure"],
            parse_failure(line["detail"]), line["is_held_out"],
        )
        for line in lines
    ]  # fmt: skip


class Agreement(NamedTuple):
    """Precision and recall over all pairs of failures: grouped pairs that belong together, and the reverse."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        return 2 * self.precision * self.recall / (self.precision + self.recall)


def agreement(found: Sequence[str], true: Sequence[str]) -> Agreement:
    """Return the agreement of two groupings of the same failures, pair by pair."""
    right, together, alike = (_pairs(Counter(each)) for each in (zip(found, true, strict=True), found, true))
    return Agreement(right / together, right / alike)


def _pairs(sizes: Counter[object]) -> int:
    return sum(size * (size - 1) // 2 for size in sizes.values())


def measured(failures: Sequence[LabelledFailure], *, is_by_line: bool = False) -> Agreement:
    """Return the agreement of derived and known causes. With `is_by_line`, only the one-line text is used."""
    found = [cause_of_failure(each.failure, None if is_by_line else each.detail) for each in failures]
    return agreement(found, [each.cause for each in failures])
