"""What a test came to in fresh copies of the base commit, before any agent was launched. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final


class Baseline(StrEnum):
    """What the runs of one test say together."""

    UNKNOWN = ""
    GREEN = "green"
    RED = "red"
    FLAKY = "flaky"
    CLASH = "clash"
    """It failed beside other runs, and passed whenever it was run alone."""
    SKIPPED = "skipped"


BASELINE_SENTENCES: Final[Mapping[Baseline, str]] = {
    Baseline.GREEN: "passes at the base",
    Baseline.RED: "fails at the base",
    Baseline.FLAKY: "is flaky at the base: it passed in some runs and failed in others, with the same code",
    Baseline.CLASH: "fails beside other tests and passes alone: they use the same port, file or service",
    Baseline.SKIPPED: "is skipped at the base",
}

BASELINE_WORDS: Final[Mapping[Baseline, str]] = {Baseline.FLAKY: "flaky", Baseline.CLASH: "clashes with others"}
"""Short words for what is to be known wherever such a test is named."""


def classify(beside: Sequence[str], alone: Sequence[str]) -> Baseline:
    """Return what a test is, from its outcomes in runs beside others and in runs alone; "" is an unknown outcome."""
    known, known_alone = [word for word in beside if word], [word for word in alone if word]
    if not known:
        return Baseline.UNKNOWN
    if "failed" not in known:
        return Baseline.GREEN if "passed" in known else Baseline.SKIPPED
    if known_alone and "failed" not in known_alone:
        return Baseline.CLASH
    is_steady = all(word == "failed" for word in known + known_alone)
    return Baseline.RED if is_steady else Baseline.FLAKY


def summarize(baselines: Sequence[Baseline]) -> str:
    """Return how many tests there are of each kind: `12 green, 3 red, 1 flaky`."""
    words = {kind: kind.value or "not known" for kind in Baseline}
    words[Baseline.CLASH] = "that clash with others"
    counted = [(baselines.count(kind), words[kind]) for kind in (*BASELINE_SENTENCES, Baseline.UNKNOWN)]
    return ", ".join(f"{count} {word}" for count, word in counted if count)
