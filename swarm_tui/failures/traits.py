"""Find distinctive traits of a group of tests: fixtures, markers, parameters, files, hosts and launch times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from swarm_tui.journal.record import TestRecord
from swarm_tui.model.text import plain

LEAST_SHARE: Final = 0.75
"""The share of the group that must have a trait."""
LEAST_LIFT: Final = 1.5
"""A trait must be this many times as frequent in the group as among the other tests."""
ACCIDENT: Final = 0.01
"""The highest accepted probability that a random group would have the trait."""
TRAITS_SHOWN: Final = 4
SPAN: Final = 120
"""The length of an interval of launch times, in seconds."""

_LAUNCHED: Final = "launched"
_VERBS: Final = {
    "fixture": ("use fixture", "uses fixture"),
    "marker": ("are marked", "is marked"),
    "parameter": ("have", "has"),
    "file": ("are in", "is in"),
    "folder": ("are below", "is below"),
    "host": ("ran on host", "ran on host"),
    "begin": ("started in the two minutes from", "started in the two minutes from"),
}
_ORDER: Final = ("fixture", "parameter", "marker", "host", "file", "folder", "begin")


class TraitCounts:
    """The number of tests with each trait."""

    def __init__(self) -> None:
        self.tests = 0
        self.counts: Counter[str] = Counter()
        self.version = 0

    def replace(self, old: tuple[str, ...] | None, new: tuple[str, ...] | None) -> None:
        """Replace the old traits of a test with new ones; None means that the test is added or removed."""
        self.version += 1
        self.tests += (new is not None) - (old is not None)
        for trait in old or ():
            self.counts[trait] -= 1
            if not self.counts[trait]:
                del self.counts[trait]
        for trait in new or ():
            self.counts[trait] += 1


class Lift(NamedTuple):
    """The frequency of a trait in a group and among the other tests."""

    trait: str
    members: int
    with_trait: int
    others: float
    """The share of the other tests with the trait."""

    @property
    def share(self) -> float:
        return self.with_trait / self.members


def traits_of(record: TestRecord) -> tuple[str, ...]:
    """Return the traits of a test. Each begins with its kind: `fixture db`."""
    return tuple(dict.fromkeys(_traits_of(record)))


def _traits_of(record: TestRecord) -> Iterator[str]:
    yield from record.traits
    if record.file:
        yield f"file {record.file}"
        parts = record.file.split("/")[:-1]
        # All tests have the top folder in common.
        yield from (f"folder {'/'.join(parts[:depth])}" for depth in range(2, len(parts) + 1))
    if not record.traits:
        # Older journals contain parameters only in the name of the test.
        _, bracket, rest = record.test.partition("[")
        yield from (f"parameter {value}" for value in rest.removesuffix("]").split("-") if bracket and value)
    if record.host:
        yield f"host {record.host}"
    if record.host or record.launched_at is not None:
        yield _LAUNCHED
    if record.launched_at is not None:
        yield f"begin {int(record.launched_at // SPAN) * SPAN}"


def common_traits(members: TraitCounts, least_share: float = LEAST_SHARE) -> list[tuple[str, int]]:
    """Return the traits of at least this share of the members, with the number of members."""
    least = members.tests * least_share
    return [(trait, count) for trait, count in members.counts.items() if count >= least]


def find_lifts(common: Iterable[tuple[str, int]], members: int, every: TraitCounts) -> list[Lift]:
    """Return the common traits that distinguish the members from all other tests, most distinctive first."""
    launched = next((count for trait, count in common if trait == _LAUNCHED), 0)
    lifts = []
    for trait, count in common:
        # A test has a host and a start time only after launch.
        is_of_launch = trait.startswith(("host ", "begin "))
        others = every.counts[_LAUNCHED] - launched if is_of_launch else every.tests - members
        if others <= 0 or trait == _LAUNCHED:
            continue
        share = (every.counts[trait] - count) / others
        lift = Lift(trait, members, count, share)
        if lift.share >= share * LEAST_LIFT and share**count <= ACCIDENT:
            lifts.append(lift)
    return sorted(lifts, key=_distinctiveness)


def _distinctiveness(lift: Lift) -> tuple[float, int, str]:
    kind = lift.trait.partition(" ")[0]
    order = _ORDER.index(kind) if kind in _ORDER else len(_ORDER)
    return round(lift.others - lift.share, 2), order, lift.trait


def shared_traits(common: Iterable[tuple[str, int]], members: int, every: TraitCounts) -> tuple[str, ...]:
    """Return the distinctive traits of the members as text."""
    chosen: list[Lift] = []
    for lift in find_lifts(common, members, every):
        kind = lift.trait.partition(" ")[0]
        # A folder is less specific than a file in it.
        if not (kind == "folder" and any(each.trait.startswith(("file ", "folder ")) for each in chosen)):
            chosen.append(lift)
    return tuple(lift_words(lift) for lift in chosen[:TRAITS_SHOWN])


def lift_words(lift: Lift) -> str:
    """Return a lift as text: `7 of 7 use fixture db, 9 % of the others`."""
    words = f"{lift.with_trait:,} of {lift.members:,} {trait_words(lift.trait, lift.with_trait)}"
    return f"{words}, {_percent(lift.others)} of the others"


def trait_words(trait: str, count: int = 2) -> str:
    """Return a trait as the predicate of a sentence about `count` tests: `use fixture db`."""
    kind, _, value = trait.partition(" ")
    verb = _VERBS.get(kind, (kind, kind))[count == 1]
    return f"{verb} {plain(_clock(value) if kind == 'begin' else value, 120)}"


def _clock(seconds: str) -> str:
    minutes = int(seconds) // 60
    return f"{minutes // 60 % 24:02}:{minutes % 60:02} UTC"


def _percent(share: float) -> str:
    percent = share * 100
    return "none" if not percent else "under 1 %" if percent < 1 else f"{percent:.0f} %"
