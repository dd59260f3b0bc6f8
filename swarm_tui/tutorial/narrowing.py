"""Narrows the findings of a check to some blocks, chosen by line or title. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from swarm_tui.errors import UsageError
from swarm_tui.model.text import plain
from swarm_tui.tutorial.blocks import Block
from swarm_tui.tutorial.check import TutorialCheck


def choose_blocks(blocks: Sequence[Block], names: Sequence[str]) -> tuple[Block, ...]:
    """Return the blocks with these lines or titles; raise UsageError for a name that fits none."""
    chosen = set()
    for name in names:
        fitting = [number for number, block in enumerate(blocks) if _is_named(block, name)]
        if not fitting:
            raise UsageError(
                f"no block is {plain(name, 80)!r}", "name it by its line or its title: `blocks` lists them"
            )
        chosen.update(fitting)
    return tuple(blocks[number] for number in sorted(chosen))


def narrow_check(check: TutorialCheck, blocks: Collection[Block]) -> TutorialCheck:
    """Return the findings of a check about these blocks only."""
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


def _is_named(block: Block, name: str) -> bool:
    return name == str(block.line) or name.strip() == block.title.strip()
