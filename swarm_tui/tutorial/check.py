"""Compare blocks and tests."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from swarm_tui.errors import UsageError
from swarm_tui.model.text import plain
from swarm_tui.tutorial.blocks import Block, comparable_lines, is_comment, parse_blocks
from swarm_tui.tutorial.citations import BrokenFile, ShadowedTest, TestFile, TestFunction

_LEAST_LIKENESS: Final = 0.6
# Rare trigrams give few candidates; only these are compared in full.
_PROBES: Final = 12
_LONGEST_POSTING: Final = 60
_COMPARED: Final = 5


class SimilarityIndex:
    """An index of blocks by the trigrams of their text."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = blocks
        self._trigrams = [trigrams(block.key) for block in blocks]
        self._postings: dict[str, list[int]] = {}
        for number, found in enumerate(self._trigrams):
            for trigram in found:
                self._postings.setdefault(trigram, []).append(number)

    def most_similar(self, lines: tuple[str, ...], preferred: frozenset[int]) -> tuple[Block, float] | None:
        """Return the most similar block and its similarity (0 to 1); ties go to the preferred lines."""
        wanted = trigrams(lines)
        candidates = self._candidates(wanted)
        compared = [(likeness(wanted, self._trigrams[number]), number) for number in candidates]
        if not any(score >= _LEAST_LIKENESS for score, _ in compared):
            # If all comments were rewritten, the commands still identify the block.
            commands = trigrams(_commands(lines))
            compared = [(likeness(commands, trigrams(_commands(self._blocks[n].key))), n) for n in candidates]
        similar = [(score, number) for score, number in compared if score >= _LEAST_LIKENESS]
        if not similar:
            return None
        score, number = max(similar, key=lambda each: (each[0], self._blocks[each[1]].line in preferred, -each[1]))
        return self._blocks[number], score

    def _candidates(self, wanted: Iterable[str]) -> list[int]:
        known = sorted((trigram for trigram in wanted if trigram in self._postings), key=self._rarity)
        shared: Counter[int] = Counter()
        for trigram in known[:_PROBES]:
            shared.update(self._postings[trigram][:_LONGEST_POSTING])
        return [number for number, _ in shared.most_common(_COMPARED)]

    def _rarity(self, trigram: str) -> tuple[int, str]:
        return len(self._postings[trigram]), trigram


def trigrams(lines: tuple[str, ...]) -> frozenset[str]:
    text = "\n".join(lines)
    return frozenset(text[start : start + 3] for start in range(max(len(text) - 2, 1)))


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of trigrams that two texts have in common, from 0 to 1."""
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0


def line_difference(before: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, ...]:
    """Return the difference of two texts: `- ` before a removed line, `+ ` before an added one."""
    difference: list[str] = []
    for tag, start, end, new_start, new_end in difflib.SequenceMatcher(None, before, after, False).get_opcodes():
        if tag == "equal":
            difference += [f"  {line}" for line in before[start:end]]
        else:
            difference += [f"- {line}" for line in before[start:end]]
            difference += [f"+ {line}" for line in after[new_start:new_end]]
    return tuple(difference)


def _commands(lines: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(line for line in lines if not is_comment(line))


@dataclass(frozen=True, slots=True)
class UnmatchedTest:
    """A test without a block, or with a citation that matches no block, and the reason."""

    test: TestFunction
    reason: str
    has_other_blocks: bool = False
    """Whether another citation of the test matches a block."""


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A test whose block has changed: the citation and the current block."""

    test: TestFunction
    block: Block
    likeness: float
    difference: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TutorialCheck:
    """The differences between a tutorial and its tests."""

    blocks: int
    tests: int
    files: int
    uncited_blocks: tuple[Block, ...]
    unmatched_tests: tuple[UnmatchedTest, ...]
    near_misses: tuple[NearMiss, ...]
    duplicate_blocks: tuple[tuple[Block, ...], ...]
    shadowed_tests: tuple[ShadowedTest, ...]
    broken_files: tuple[BrokenFile, ...]

    @property
    def is_whole(self) -> bool:
        """Whether each block has a test, each test a block, and all files are readable."""
        return not (self.uncited_blocks or self.unmatched_tests or self.broken_files)


@dataclass(frozen=True, slots=True)
class _Match:
    """The numbers of the blocks that a test cites, and the citations that match no block."""

    found: frozenset[int]
    stale: tuple[tuple[str, ...], ...]


def check_tutorial(
    blocks: Sequence[Block], files: Iterable[TestFile | BrokenFile], *, is_lenient: bool = False
) -> TutorialCheck:
    """Match tests with blocks: by their citations, and if lenient also by a block's lines in a test's source.

    Of a test that stands for several blocks each citation must fit. Blocks with the same text are cited together.
    """
    read = tuple(files)
    tests = [test for file in read if isinstance(file, TestFile) for test in file.tests]
    by_key: dict[tuple[str, ...], list[int]] = {}
    for number, block in enumerate(blocks):
        by_key.setdefault(block.key, []).append(number)
    matches = [_match_citations(test, by_key) for test in tests]
    if is_lenient:
        for number, found in enumerate(_match_sources(tests, by_key)):
            if found:
                matches[number] = _Match(matches[number].found | found, ())
    cited = frozenset(number for match in matches for number in match.found)
    uncited = tuple(block for number, block in enumerate(blocks) if number not in cited)
    unmatched = tuple(
        UnmatchedTest(test, _reason(test, match), bool(match.found))
        for test, match in zip(tests, matches, strict=True)
        if match.stale or not match.found
    )
    return TutorialCheck(
        blocks=len(blocks),
        tests=len(tests),
        files=len(read),
        uncited_blocks=uncited,
        unmatched_tests=unmatched,
        near_misses=_near_misses(blocks, uncited, tests, matches),
        duplicate_blocks=tuple(tuple(blocks[n] for n in numbers) for numbers in by_key.values() if len(numbers) > 1),
        shadowed_tests=tuple(each for file in read if isinstance(file, TestFile) for each in file.shadowed),
        broken_files=tuple(file for file in read if isinstance(file, BrokenFile)),
    )


def _match_citations(test: TestFunction, by_key: dict[tuple[str, ...], list[int]]) -> _Match:
    found: set[int] = set()
    stale: list[tuple[str, ...]] = []
    for citation in test.citations:
        cited = {number for reading in citation.readings for number in _cited_numbers(reading, by_key)}
        found |= cited
        if not cited:
            # The last reading is the text as written in the source.
            stale.append(comparable_lines(citation.readings[-1]))
    return _Match(frozenset(found), tuple(stale))


def _cited_numbers(text: str, by_key: dict[tuple[str, ...], list[int]]) -> list[int]:
    key = comparable_lines(text)
    if key in by_key:
        return by_key[key]
    # A citation can contain several blocks, separated by empty lines.
    parts = [block.key for block in parse_blocks(text)]
    if len(parts) > 1 and all(part in by_key for part in parts):
        return [number for part in parts for number in by_key[part]]
    return []


def _match_sources(tests: Sequence[TestFunction], by_key: dict[tuple[str, ...], list[int]]) -> list[frozenset[int]]:
    """Return the blocks whose lines appear in order in the source of each test.

    A block's rarest line leads to the few tests that can hold it.
    """
    sources = [comparable_lines(test.source) for test in tests]
    holders: dict[str, list[int]] = {}
    for number, lines in enumerate(sources):
        for line in set(lines):
            holders.setdefault(line, []).append(number)
    found: list[set[int]] = [set() for _ in tests]
    for key, numbers in by_key.items():
        if not all(line in holders for line in key):
            continue
        for test in min((holders[line] for line in key), key=len):
            if _appears_in_order(key, sources[test]):
                found[test].update(numbers)
    return [frozenset(numbers) for numbers in found]


def _appears_in_order(wanted: tuple[str, ...], lines: tuple[str, ...]) -> bool:
    rest = iter(lines)
    return all(line in rest for line in wanted)


def _reason(test: TestFunction, match: _Match) -> str:
    if match.stale:
        return "cites a block that is not in the tutorial"
    if test.refusals:
        return "; ".join(test.refusals)
    return "cites no block"


def _near_misses(
    blocks: Sequence[Block], uncited: Sequence[Block], tests: Sequence[TestFunction], matches: Sequence[_Match]
) -> tuple[NearMiss, ...]:
    stale = [(test, key) for test, match in zip(tests, matches, strict=True) for key in match.stale]
    if not stale:
        return ()
    index = SimilarityIndex(blocks)
    uncited_lines = frozenset(block.line for block in uncited)
    found = []
    for test, key in stale:
        similar = index.most_similar(key, uncited_lines)
        if similar is not None:
            block, score = similar
            found.append(NearMiss(test, block, round(score, 2), line_difference(key, block.key)))
    return tuple(found)


def choose_blocks(blocks: Sequence[Block], names: Sequence[str]) -> tuple[Block, ...]:
    """Return the blocks with these lines or titles; raise UsageError for an unknown name."""
    chosen = set()
    for name in names:
        fitting = [
            number
            for number, block in enumerate(blocks)
            if name == str(block.line) or name.strip() == block.title.strip()
        ]
        if not fitting:
            raise UsageError(
                f"unknown block: {plain(name, 80)!r}",
                "use a line or a title listed by `swarm-tui tutorial blocks FILE`",
            )
        chosen.update(fitting)
    return tuple(blocks[number] for number in sorted(chosen))


def narrow_check(check: TutorialCheck, blocks: Collection[Block]) -> TutorialCheck:
    """Return the results of a check for these blocks only."""
    lines = {block.line for block in blocks}
    near = tuple(miss for miss in check.near_misses if miss.block.line in lines)
    tests = {(miss.test.file, miss.test.name) for miss in near}
    return replace(
        check,
        blocks=len(lines),
        uncited_blocks=tuple(block for block in check.uncited_blocks if block.line in lines),
        unmatched_tests=tuple(each for each in check.unmatched_tests if (each.test.file, each.test.name) in tests),
        near_misses=near,
        duplicate_blocks=tuple(same for same in check.duplicate_blocks if any(block.line in lines for block in same)),
        shadowed_tests=(),
    )
