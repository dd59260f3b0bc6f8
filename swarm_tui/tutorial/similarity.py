"""Finds the block that a stale citation most likely refers to, quickly also among thousands."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from swarm_tui.tutorial.blocks import Block, is_comment

_LEAST_LIKENESS: Final = 0.6
# Rare trigrams lead to few candidates; only these are compared in full.
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
        """Return the block most like these lines and its likeness (0 to 1); ties go to the preferred lines."""
        wanted = trigrams(lines)
        candidates = self._candidates(wanted)
        compared = [(likeness(wanted, self._trigrams[number]), number) for number in candidates]
        if not any(score >= _LEAST_LIKENESS for score, _ in compared):
            # Where all comments were rewritten, the commands still identify the block.
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
