"""The open work on a tutorial: comments without commands, blocks without tests, tests without blocks. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from swarm_tui.model.text import plain
from swarm_tui.tutorial.blocks import Block, parse_blocks, parse_unfilled
from swarm_tui.tutorial.check import NearMiss, TutorialCheck, check_tutorial
from swarm_tui.tutorial.citations import TestFunction
from swarm_tui.tutorial.read import CommittedTutorial

Action = Literal["fill", "sync"]

_TITLE_LIMIT: Final = 60
_NOT_IN_NAME: Final = re.compile(r"[^a-z0-9]+")
_ENVIRONMENT: Final = re.compile(r"\w+=\S*")
_NO_TOOLS: Final = frozenset({"cat", "cd", "echo", "export", "mkdir", "rm", "cp", "mv", "touch", "printf", "sudo"})


@dataclass(frozen=True, slots=True)
class OpenBlock:
    """A block with open work for an agent."""

    block: Block
    near_misses: tuple[NearMiss, ...] = ()
    """Tests that cite an earlier text of the block."""

    @property
    def key(self) -> tuple[str, ...]:
        return self.block.key

    @property
    def title(self) -> str:
        """The block's title, sanitized and shortened."""
        return plain(self.block.title, _TITLE_LIMIT)


@dataclass(frozen=True, slots=True)
class OpenWork:
    """The open work on a tutorial and its tests."""

    items: tuple[OpenBlock, ...]
    removed: tuple[TestFunction, ...] = ()
    """Tests of removed blocks."""


def find_open_work(action: Action, tutorial: CommittedTutorial) -> OpenWork:
    """Return the open work on a tutorial for an action."""
    text = tutorial.text or ""
    if action == "fill":
        return OpenWork(tuple(OpenBlock(block) for block in parse_unfilled(text)))
    check = check_tutorial(parse_blocks(text), tutorial.files)
    near_misses: dict[int, list[NearMiss]] = {}
    for miss in check.near_misses:
        near_misses.setdefault(miss.block.line, []).append(miss)
    blocks = {block.line: block for block in check.uncited_blocks} | {m.block.line: m.block for m in check.near_misses}
    items = tuple(OpenBlock(blocks[line], tuple(near_misses.get(line, ()))) for line in sorted(blocks))
    return OpenWork(items, tests_of_removed_blocks(check))


def tests_of_removed_blocks(check: TutorialCheck) -> tuple[TestFunction, ...]:
    """Return the tests that cite only removed blocks."""
    near = {(miss.test.file, miss.test.name) for miss in check.near_misses}
    return tuple(
        each.test
        for each in check.unmatched_tests
        if each.test.citations
        and not each.test.refusals
        and not each.has_other_blocks
        and (each.test.file, each.test.name) not in near
    )


def batches_of(items: Sequence[OpenBlock], size: int) -> list[tuple[OpenBlock, ...]]:
    return [tuple(items[start : start + size]) for start in range(0, len(items), size)]


def name_of_batch(tutorial: str, batch: Sequence[OpenBlock]) -> str:
    """Return the name of a batch: the file, the line and title of its first block, and the number of others."""
    more = f" (+{len(batch) - 1})" if len(batch) > 1 else ""
    return f"{tutorial}::{batch[0].block.line} {batch[0].title}{more}"


def text_of_batch(batch: Iterable[OpenBlock]) -> str:
    return "\n\n".join(item.block.text for item in batch)


def items_of_batch(action: Action, work: OpenWork, text: str) -> tuple[OpenBlock, ...]:
    parse = parse_unfilled if action == "fill" else parse_blocks
    keys = {block.key for block in parse(text)}
    return tuple(item for item in work.items if item.key in keys)


def guess_tool(text: str) -> str:
    """Return the program that most commands of a tutorial call."""
    counts: Counter[str] = Counter()
    for block in parse_blocks(text):
        words = (
            next((word for word in line.split() if not _ENVIRONMENT.fullmatch(word)), "") for line in block.commands
        )
        counts.update({word for word in words if re.fullmatch(r"[\w.-]+", word) and word not in _NO_TOOLS})
    return counts.most_common(1)[0][0] if counts else ""


def file_for(item: OpenBlock, folder: str, taken: Iterable[str]) -> str:
    """Return a path for the test of a block: a separate file, so that its commit can be reverted separately."""
    name = _NOT_IN_NAME.sub("_", item.title.lower()).strip("_")[:50].rstrip("_") or f"block_{item.block.line}"
    known = set(taken)
    start = "" if folder in ("", ".") else f"{folder}/"
    path = f"{start}test_{name}.py"
    return path if path not in known else f"{start}test_{name}_{item.block.line}.py"
