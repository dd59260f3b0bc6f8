"""How well causes are told apart, measured on failures of which the cause is known."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from swarm_tui.insight.causes import cause_of_failure
from swarm_tui.model.failure import FailureDetail, parse_failure

FAILURES: Final = Path(__file__).with_name("failures.jsonl")


class LabelledFailure(NamedTuple):
    """One failure, and its cause as the broken project names it."""

    cause: str
    test: str
    failure: str
    detail: FailureDetail | None
    is_held_out: bool


def labelled_failures() -> list[LabelledFailure]:
    """Return the failures that were written down."""
    lines = map(json.loads, FAILURES.read_text().splitlines())
    return [
        LabelledFailure(
            f"{'fleet' if line['is_held_out'] else 'shop'}: {line['cause']}", line["test"], line["failure"],
            parse_failure(line["detail"]), line["is_held_out"],
        )
        for line in lines
    ]  # fmt: skip


class Agreement(NamedTuple):
    """Of all pairs of failures: how many of those put together belong together, and the other way round."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        return 2 * self.precision * self.recall / (self.precision + self.recall)


def agreement(found: Sequence[str], true: Sequence[str]) -> Agreement:
    """Return how well two groupings of the same failures agree, pair by pair."""
    right, together, alike = (_pairs(Counter(each)) for each in (zip(found, true, strict=True), found, true))
    return Agreement(right / together, right / alike)


def _pairs(sizes: Counter[object]) -> int:
    return sum(size * (size - 1) // 2 for size in sizes.values())


def measured(failures: Sequence[LabelledFailure], *, is_by_line: bool = False) -> Agreement:
    """Return how well the causes that are named agree with the true ones; `is_by_line`: from one line of each."""
    found = [cause_of_failure(each.failure, None if is_by_line else each.detail) for each in failures]
    return agreement(found, [each.cause for each in failures])
