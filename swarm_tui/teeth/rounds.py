"""Chooses the faults for each test, and puts them into rounds: one tree with several faults, no two met by one test.

A round is one call of pytest, so that many tests cost hardly more than one. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from swarm_tui.teeth.mutants import Fault
from swarm_tui.testing.traced import Place

FAULTS_EACH: Final = 20


@dataclass(slots=True)
class FaultRound:
    """Faults that are tried at once, each with the tests that are to notice it."""

    tests: dict[Fault, list[str]] = field(default_factory=dict)

    @property
    def all_tests(self) -> list[str]:
        return list(dict.fromkeys(test for tests in self.tests.values() for test in tests))

    def by_file(self) -> dict[str, list[Fault]]:
        found: dict[str, list[Fault]] = defaultdict(list)
        for fault in self.tests:
            found[fault.path].append(fault)
        return found


def choose_faults(faults: Sequence[Fault], covered: Mapping[str, Collection[Place]]) -> dict[str, list[Fault]]:
    """Return for each test some faults in what it covers: the first of every line before the second of any.

    The order is the same for all tests, so that those that cover the same lines get the same faults.
    """
    ordered: list[tuple[int, str, Fault]] = []
    number: dict[Place, int] = defaultdict(int)
    for fault in sorted(faults, key=lambda each: each.order):
        place = (fault.path, fault.line)
        ordered.append((number[place], fault.order, fault))
        number[place] += 1
    ordered.sort(key=lambda item: item[:2])
    return {
        test: [fault for _, _, fault in ordered if (fault.path, fault.line) in places][:FAULTS_EACH]
        for test, places in covered.items()
    }


def plan_rounds(chosen: Mapping[str, Sequence[Fault]], covered: Mapping[str, Collection[Place]]) -> list[FaultRound]:
    """Return the rounds in which all chosen faults are tried; the first faults of every test come first."""
    tests: dict[Fault, list[str]] = defaultdict(list)
    urgency: dict[Fault, int] = {}
    for test, faults in chosen.items():
        for place, fault in enumerate(faults):
            tests[fault].append(test)
            urgency[fault] = min(place, urgency.get(fault, place))
    rounds: list[FaultRound] = []
    for fault in sorted(tests, key=lambda each: (urgency[each], -len(tests[each]), each.order)):
        fitting = (each for each in rounds if all(_are_apart(fault, tests, other, covered) for other in each.tests))
        found = next(fitting, None)
        if found is None:
            found = FaultRound()
            rounds.append(found)
        found.tests[fault] = tests[fault]
    return rounds


def _are_apart(
    fault: Fault, tests: Mapping[Fault, Sequence[str]], other: Fault, covered: Mapping[str, Collection[Place]]
) -> bool:
    """Return whether no test of one fault meets the other one, and both can be made in one file."""
    if fault.path == other.path and fault.start < other.end and other.start < fault.end:
        return False
    return not any((other.path, other.line) in covered[test] for test in tests[fault]) and not any(
        (fault.path, fault.line) in covered[test] for test in tests[other]
    )
