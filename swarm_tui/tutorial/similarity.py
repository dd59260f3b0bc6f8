"""Finds the block that a stale citation most likely meant, quickly also among thousands."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from swarm_tui.tutorial.blocks import Block, is_comment

_LEAST_LIKENESS: Final = 0.6
# Rare pieces of three characters lead to few candidates; only these are compared in full.
_PROBES: Final = 12
_LONGEST_POSTING: Final = 60
_COMPARED: Final = 5


class NearnessIndex:
    """Some blocks, found again by pieces of their text."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = blocks
        self._pieces = [pieces(block.key) for block in blocks]
        self._postings: dict[str, list[int]] = {}
        for number, found in enumerate(self._pieces):
            for piece in found:
                self._postings.setdefault(piece, []).append(number)

    def nearest(self, lines: tuple[str, ...], preferred: frozenset[int]) -> tuple[Block, float] | None:
        """Return the block most like these lines and its likeness (0 to 1); ties go to the preferred lines."""
        wanted = pieces(lines)
        candidates = self._candidates(wanted)
        compared = [(likeness(wanted, self._pieces[number]), number) for number in candidates]
        if not any(like >= _LEAST_LIKENESS for like, _ in compared):
            # Where all comments were rewritten, the commands still tell which block was meant.
            commands = pieces(_commands(lines))
            compared = [(likeness(commands, pieces(_commands(self._blocks[n].key))), n) for n in candidates]
        near = [(like, number) for like, number in compared if like >= _LEAST_LIKENESS]
        if not near:
            return None
        like, number = max(near, key=lambda each: (each[0], self._blocks[each[1]].line in preferred, -each[1]))
        return self._blocks[number], like

    def _candidates(self, wanted: Iterable[str]) -> list[int]:
        known = sorted((piece for piece in wanted if piece in self._postings), key=self._rarity)
        shared: Counter[int] = Counter()
        for piece in known[:_PROBES]:
            shared.update(self._postings[piece][:_LONGEST_POSTING])
        return [number for number, _ in shared.most_common(_COMPARED)]

    def _rarity(self, piece: str) -> tuple[int, str]:
        return len(self._postings[piece]), piece


def pieces(lines: tuple[str, ...]) -> frozenset[str]:
    """Return all runs of three characters of some lines."""
    text = "\n".join(lines)
    return frozenset(text[start : start + 3] for start in range(max(len(text) - 2, 1)))


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of pieces that two texts have in common, from 0 to 1."""
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0


def line_difference(before: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, ...]:
    """Return what changed from one text to the other: `- ` before a line that went, `+ ` before one that came."""
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
