"""Patterns: tests with the same cause, and the traits that distinguish them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from swarm_tui.failures.causes import cause_of_failure, cause_of_text
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.results import UNSOLVED_RESULTS, Result, State
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


Touch = tuple[int, int, str]
"""The first line, the last line, and the test whose agent edits them."""


class Overlap(NamedTuple):
    """Lines of one file that the agents of several tests edit."""

    path: str
    tests: tuple[str, ...]
    lines: tuple[tuple[int, int], ...]
    """The first and last line of each place, numbered as in the base commit; (0, 0) for a new file."""

    @property
    def words(self) -> str:
        """Return `2 agents edit the same lines of src/copy.py: 88-90, 120`."""
        if self.lines == ((0, 0),):
            return f"{len(self.tests)} agents add the same file {self.path}"
        places = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in self.lines[:8])
        more = ", …" if len(self.lines) > 8 else ""
        return f"{len(self.tests)} agents edit the same lines of {self.path}: {places}{more}"


def find_overlaps(records: Iterable[TestRecord]) -> list[Overlap]:
    """Return the lines that several agents edit, by file. At least one of the agents is unfinished."""
    touched: dict[str, list[Touch]] = {}
    living = set()
    for record in records:
        if not record.is_finished:
            living.add(record.test)
        for edit in record.edits:
            touched.setdefault(edit.path, []).append((edit.first, edit.last, record.test))
    return [
        overlap
        for path, touches in sorted(touched.items())
        if (overlap := _overlap_in(path, touches, living)) is not None
    ]


def _overlap_in(path: str, touches: list[Touch], living: set[str]) -> Overlap | None:
    places, tests = [], set()
    for run in _runs(touches):
        editing = {test for _, _, test in run}
        if len(editing) > 1 and editing & living:
            tests |= editing
            places.append((run[0][0], max(last for _, last, _ in run)))
    return Overlap(path, tuple(sorted(tests)), tuple(places)) if places else None


def _runs(touches: list[Touch]) -> Iterator[list[Touch]]:
    """Yield groups of overlapping edits."""
    run: list[Touch] = []
    end = -1
    for touch in sorted(touches):
        if run and touch[0] > end:
            yield run
            run = []
        run.append(touch)
        end = max(end, touch[1]) if len(run) > 1 else touch[1]
    if run:
        yield run


FEWEST: Final = 2
"""The minimum number of tests in a pattern."""


class Pattern(NamedTuple):
    """Tests with the same cause."""

    cause: str
    tests: tuple[str, ...]
    kind: str
    """The most frequent kind: failing, waiting or blocked; held (only held tests), editing (the same lines)."""
    shared: tuple[str, ...]
    """Distinctive traits as text: `7 of 7 use fixture db, 9 % of the others`."""
    representative: str
    example: str
    """The unmodified error, question or blocker of the representative."""


def raw_cause(record: TestRecord) -> str:
    """Return why a test waits, fails or is blocked, as reported; "" for other tests."""
    if record.state is State.WAITING:
        return record.question or "waits for an answer"
    if record.state is State.DONE and record.result is Result.BLOCKED and record.pulled.escalations:
        return record.pulled.escalations[0].title or record.reason
    if record.state is State.DONE and record.result is Result.ERROR and record.reason:
        # The reason why the work is unreadable matters more than a failed try.
        return record.reason
    if record.state is State.DONE and record.result is not None and record.result in UNSOLVED_RESULTS:
        return last_failure(record) or record.reason or record.result.value
    if record.state is State.RUNNING:
        return last_failure(record)
    if record.state is State.QUEUED and record.source == "engine":
        # Its last launch failed. Other reasons for queueing a test again are not failures.
        return record.reason
    return ""


def last_failure(record: TestRecord) -> str:
    """Return the failure of the last try; empty if it passed or is still running."""
    if record.tries and record.tries[-1].passed is False:
        return record.tries[-1].failure
    return ""


def cause_of(record: TestRecord) -> str:
    """Return why a test waits, fails or is blocked, as a text that is equal for the same cause; "" for other tests."""
    raw = raw_cause(record)
    if not raw:
        return ""
    last = record.tries[-1] if record.tries else None
    return cause_of_failure(raw, last.detail) if last is not None and raw is last.failure else cause_of_text(raw)


class PatternIndex:
    """The tests of a sweep by cause, updated incrementally."""

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}
        self._cause_of: dict[str, str] = {}
        self._every = TraitCounts()
        self._traits: dict[str, tuple[str, ...]] = {}

    def update(self, record: TestRecord) -> None:
        """Count a new or changed record."""
        test, traits, cause = record.test, traits_of(record), cause_of(record)
        old_traits, old_cause = self._traits.get(test), self._cause_of.get(test, "")
        if old_traits != traits:
            self._every.replace(old_traits, traits)
            self._traits[test] = traits
        if old_cause and old_cause != cause:
            self._groups[old_cause].remove(test)
            if not self._groups[old_cause].records:
                del self._groups[old_cause]
        if cause:
            self._groups.setdefault(cause, _Group(cause)).put(record, traits)
            self._cause_of[test] = cause
        else:
            self._cause_of.pop(test, None)

    def patterns(self) -> list[Pattern]:
        """Return all patterns, those with the most tests first."""
        patterns = [group.pattern(self._every) for group in self._groups.values() if len(group.records) >= FEWEST]
        return sorted(patterns, key=lambda pattern: (-len(pattern.tests), pattern.cause))


class _Group:
    """The tests with one cause. Adding a test takes constant time, except for sorting."""

    def __init__(self, cause: str) -> None:
        self.cause = cause
        self.records: dict[str, TestRecord] = {}
        self._sorted: list[str] = []
        self._kinds: Counter[str] = Counter()
        self._traits: dict[str, tuple[str, ...]] = {}
        self._counts = TraitCounts()
        self._latest: TestRecord | None = None
        self._pattern: Pattern | None = None
        self._common: list[tuple[str, int]] = []
        self._version = -1
        """The version of the counts over all tests that the pattern is based on."""

    def put(self, record: TestRecord, traits: tuple[str, ...]) -> None:
        test = record.test
        old = self.records.get(test)
        if old is record:
            return
        if old is None:
            insort(self._sorted, test)
        else:
            self._kinds[_kind(old)] -= 1
        self.records[test] = record
        self._kinds[_kind(record)] += 1
        if self._traits.get(test) != traits:
            self._counts.replace(self._traits.get(test), traits)
            self._traits[test] = traits
        if old is not None and old is self._latest:
            self._latest = None
        elif self._latest is not None and _lateness(record) > _lateness(self._latest):
            self._latest = record
        self._pattern = None

    def remove(self, test: str) -> None:
        record = self.records.pop(test)
        del self._sorted[bisect_left(self._sorted, test)]
        self._kinds[_kind(record)] -= 1
        self._counts.replace(self._traits.pop(test), None)
        if record is self._latest:
            self._latest = None
        self._pattern = None

    def pattern(self, every: TraitCounts) -> Pattern:
        if self._pattern is None:
            self._common = common_traits(self._counts)
            self._pattern = self._new_pattern(every)
        elif self._version != every.version:
            self._pattern = self._pattern._replace(shared=self._shared(every))
        self._version = every.version
        return self._pattern

    def _shared(self, every: TraitCounts) -> tuple[str, ...]:
        return shared_traits(self._common, self._counts.tests, every)

    def _new_pattern(self, every: TraitCounts) -> Pattern:
        if self._latest is None:
            self._latest = max(self.records.values(), key=_lateness)
        return Pattern(
            cause=self.cause,
            tests=tuple(self._sorted),
            kind=min(self._kinds, key=lambda kind: (-self._kinds[kind], kind)),
            shared=self._shared(every),
            representative=self._latest.test,
            example=plain(raw_cause(self._latest), 2_000),
        )


def _lateness(record: TestRecord) -> tuple[bool, float, str]:
    return record.result is not None, record.since, record.test


def find_patterns(records: Iterable[TestRecord]) -> list[Pattern]:
    """Return all patterns among these tests, those with the most tests first."""
    index = PatternIndex()
    for record in records:
        index.update(record)
    return index.patterns()


def with_overlaps(patterns: list[Pattern], edited: Iterable[TestRecord]) -> list[Pattern]:
    """Return patterns and the agents that edit the same lines, largest groups first."""
    found = patterns + [_overlap_pattern(overlap) for overlap in find_overlaps(edited)]
    return sorted(found, key=lambda pattern: (-len(pattern.tests), pattern.cause))


def _overlap_pattern(overlap: Overlap) -> Pattern:
    """Return agents that edit the same lines as a pattern."""
    cause = f"the same lines of {overlap.path}" if overlap.lines != ((0, 0),) else f"the same new file {overlap.path}"
    return Pattern(cause, overlap.tests, "editing", (), overlap.tests[0], overlap.words)


def _kind(record: TestRecord) -> str:
    if record.state is State.WAITING:
        return "waiting"
    return "blocked" if record.result is Result.BLOCKED else "failing"
