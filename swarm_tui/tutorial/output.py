"""Formats the blocks of a tutorial and the findings of a check: as text for people, as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.tutorial.blocks import Block
from swarm_tui.tutorial.check import TutorialCheck
from swarm_tui.tutorial.citations import TestFunction
from swarm_tui.tutorial.files import TEST_FILE_PATTERNS


def blocks_as_json(tutorial: str, blocks: Sequence[Block]) -> dict[str, Any]:
    """Return the blocks of a tutorial as JSON values."""
    return {
        "file": tutorial,
        "blocks": [
            {
                "line": block.line,
                "end_line": block.end_line,
                "title": block.title,
                "section": block.section,
                "text": block.text,
                "commands": list(block.commands),
            }
            for block in blocks
        ],
    }


def blocks_as_text(tutorial: str, blocks: Sequence[Block]) -> str:
    """Return the blocks of a tutorial below their sections, each with its line and its title."""
    lines = [f"{plain(tutorial)}: {counted(len(blocks), 'block')}"]
    section: str | None = None
    width = len(str(blocks[-1].line)) if blocks else 1
    for block in blocks:
        if block.section != section:
            section = block.section
            lines += ["", plain(section) or "(no section)"]
        lines.append(f"  {block.line:>{width}}  {plain(block.title, limit=100)}")
    return "\n".join(lines)


def comments_as_json(blocks: int, waiting: Sequence[Block]) -> dict[str, Any]:
    return {"blocks": blocks, "comments_without_commands": [{"line": each.line, "text": each.text} for each in waiting]}


def comments_as_text(tutorial: str, blocks: int, waiting: Sequence[Block]) -> str:
    """Return the comments that lack commands as text."""
    name = plain(tutorial)
    lines = [f"{name}: {counted(blocks, 'block')}", ""]
    if not waiting:
        return "\n".join([*lines, "every comment has its commands"])
    lines.append(f"{counted(len(waiting), 'comment')} without commands")
    return "\n".join([*lines, *(f"  {name}:{each.line}  {plain(each.title, limit=100)}" for each in waiting)])


def check_as_json(check: TutorialCheck) -> dict[str, Any]:
    """Return the findings of a check as JSON values."""
    return {
        "blocks": check.blocks,
        "tests": check.tests,
        "uncited_blocks": [{"line": block.line, "text": block.text} for block in check.uncited_blocks],
        "unmatched_tests": [_place(each.test) for each in check.unmatched_tests],
        "near_misses": [
            {
                **_place(miss.test),
                "block_line": miss.block.line,
                "likeness": miss.likeness,
                "difference": list(miss.difference),
            }
            for miss in check.near_misses
        ],
        "refused_citations": [
            {**_place(each.test), "reason": refusal} for each in check.unmatched_tests for refusal in each.test.refusals
        ],
        "duplicates": [
            {"lines": [block.line for block in same], "text": same[0].text} for same in check.duplicate_blocks
        ],
        "shadowed_tests": [asdict(each) for each in check.shadowed_tests],
        "broken_files": [asdict(each) for each in check.broken_files],
    }


def check_as_text(check: TutorialCheck, tutorial: str) -> str:
    """Return the findings of a check as text."""
    name = plain(tutorial)
    files = counted(check.files, "file")
    lines = [f"{name}: {counted(check.blocks, 'block')}, {counted(check.tests, 'test')} in {files}"]
    for part in (
        _broken_lines(check),
        _uncited_lines(check, name),
        _unmatched_lines(check),
        _near_lines(check, name),
        _duplicate_lines(check, name),
        _shadowed_lines(check),
    ):
        found = list(part)
        lines += ["", *found] if found else []
    if not check.files:
        lines += ["", f"no test files there: their names are like {' or '.join(TEST_FILE_PATTERNS)}"]
    if check.is_whole:
        lines += ["", "every block has a test, and every test a block"]
    return "\n".join(lines)


def _broken_lines(check: TutorialCheck) -> Iterator[str]:
    if check.broken_files:
        yield f"{counted(len(check.broken_files), 'file')} could not be read: their tests are not counted"
    for broken in check.broken_files:
        yield f"  {plain(broken.file)}:{broken.line}  {plain(broken.reason)}"


def _uncited_lines(check: TutorialCheck, name: str) -> Iterator[str]:
    if check.uncited_blocks:
        yield f"{counted(len(check.uncited_blocks), 'block')} without a test"
    near_lines = {miss.block.line for miss in check.near_misses}
    for block in check.uncited_blocks:
        yield f"  {name}:{block.line}  {plain(block.title, limit=100)}"
        if block.line not in near_lines:
            yield from (f"      {line}" for line in plain_lines(block.text).split("\n"))


def _unmatched_lines(check: TutorialCheck) -> Iterator[str]:
    if check.unmatched_tests:
        yield f"{counted(len(check.unmatched_tests), 'test')} without a block"
    for each in check.unmatched_tests:
        yield f"  {_where(each.test)}  {each.reason}"


def _near_lines(check: TutorialCheck, name: str) -> Iterator[str]:
    if check.near_misses:
        yield f"{counted(len(check.near_misses), 'near miss', 'near misses')}: the block was edited since"
    for miss in check.near_misses:
        yield f"  {_where(miss.test)}  - cites, + {name}:{miss.block.line} says"
        yield from (f"      {plain_lines(line)}" for line in miss.difference)


def _duplicate_lines(check: TutorialCheck, name: str) -> Iterator[str]:
    if check.duplicate_blocks:
        yield f"{counted(len(check.duplicate_blocks), 'block')} more than once: a citation means all of them"
    for same in check.duplicate_blocks:
        places = ", ".join(str(block.line) for block in same)
        yield f"  {name}: lines {places}  {plain(same[0].title, limit=100)}"


def _shadowed_lines(check: TutorialCheck) -> Iterator[str]:
    if check.shadowed_tests:
        yield f"{counted(len(check.shadowed_tests), 'test')} never run: another one below has the same name"
    for each in check.shadowed_tests:
        yield f"  {plain(each.file)}:{each.line}  {plain(each.name)} (again in line {each.later_line})"


def _place(test: TestFunction) -> dict[str, Any]:
    return {"file": test.file, "line": test.line, "name": test.name}


def _where(test: TestFunction) -> str:
    return f"{plain(test.file)}:{test.line}  {plain(test.name)}"
