"""Judges what an agent made of its batch: by the tutorial and the tests before and after each commit. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from swarm_tui.model.text import plain
from swarm_tui.tutorial.blocks import Block, comparable_lines, parse_blocks, parse_unfilled, text_lines
from swarm_tui.tutorial.check import TutorialCheck, check_tutorial
from swarm_tui.tutorial.citations import TestFile
from swarm_tui.tutorial.committed import Committed
from swarm_tui.tutorial.loop import Action, OpenBlock

_Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """How a tutorial and its tests stand at one commit, as far as a batch is concerned."""

    done: frozenset[_Key]
    """The items of the batch that are as they should be."""
    cited: frozenset[_Key]
    """All blocks that have a test."""
    others: tuple[str, ...]
    """All lines of the tutorial that are not the batch's to change."""
    is_readable: bool
    tests: Mapping[_Key, tuple[str, ...]] = field(default_factory=dict)
    """The tests of each block of the batch, as file::name."""
    loose: frozenset[str] = frozenset()
    """The tests that are without a block."""


@dataclass(frozen=True, slots=True)
class MadeCommit:
    """A commit of an agent: what it touches, and how things stood before and after it."""

    commit: str
    paths: tuple[str, ...]
    before: Standing
    after: Standing


@dataclass(frozen=True, slots=True)
class CommitVerdict:
    """Whether a commit may be taken, for which blocks it stands, and why not."""

    commit: str
    items: tuple[OpenBlock, ...]
    problem: str = ""


def stand(action: Action, items: Sequence[OpenBlock], found: Committed) -> Standing:
    """Return how the items of a batch stand at a commit."""
    if found.tutorial is None:
        return Standing(frozenset(), frozenset(), (), is_readable=False)
    if action == "fill":
        return _stand_of_fill(items, found.tutorial)
    blocks = parse_blocks(found.tutorial)
    check = check_tutorial(blocks, found.files)
    tests = _tests_by_block(blocks, found)
    uncited = {block.key for block in check.uncited_blocks}
    present = {block.key for block in blocks}
    done = frozenset(
        item.key for item in items if item.key in present and item.key not in uncited and _is_mended(item, check)
    )
    return Standing(
        done,
        frozenset(present - uncited),
        tuple(comparable_lines(found.tutorial)),
        is_readable=not check.broken_files,
        tests={item.key: tests.get(item.key, ()) for item in items},
        loose=frozenset(f"{each.test.file}::{each.test.name}" for each in check.unmatched_tests),
    )


def _stand_of_fill(items: Sequence[OpenBlock], text: str) -> Standing:
    """A comment is filled when it opens a block with commands, and stands nowhere alone."""
    waiting = parse_unfilled(text)
    alone = {block.key for block in waiting}
    wanted = {item.key for item in items}
    own = [block for block in waiting if block.key in wanted]
    done: set[_Key] = set()
    blocks = parse_blocks(text)
    for item in items:
        opened = [block for block in blocks if block.key[: len(item.key)] == item.key]
        own += opened
        if opened and item.key not in alone:
            done.add(item.key)
    numbers = {number for block in own for number in range(block.line, block.end_line + 1)}
    lines = (line.rstrip() for number, line in enumerate(text_lines(text), 1) if number not in numbers)
    return Standing(frozenset(done), frozenset(), tuple(filter(None, lines)), is_readable=True)


def _is_mended(item: OpenBlock, check: TutorialCheck) -> bool:
    stale = {(each.test.file, each.test.name) for each in check.unmatched_tests}
    return not any((miss.test.file, miss.test.name) in stale for miss in item.near)


def _tests_by_block(blocks: Sequence[Block], found: Committed) -> dict[_Key, tuple[str, ...]]:
    """Return the tests that cite each block, alone or with others."""
    known = {block.key for block in blocks}
    tests: dict[_Key, list[str]] = {}
    for file in found.files:
        for test in file.tests if isinstance(file, TestFile) else ():
            for citation in test.citations:
                for reading in citation.readings:
                    keys = {comparable_lines(reading), *(part.key for part in parse_blocks(reading))}
                    for key in keys & known:
                        tests.setdefault(key, []).append(f"{test.file}::{test.name}")
    return {key: tuple(dict.fromkeys(names)) for key, names in tests.items()}


def judge_commits(
    action: Action, items: Sequence[OpenBlock], made: Iterable[MadeCommit], allowed: str, failing: Mapping[_Key, str]
) -> list[CommitVerdict]:
    """Return for each commit, oldest first, whether it may be taken.

    `allowed` is the file or folder that may be changed; `failing` says of blocks why their tests do not stand.
    """
    verdicts = []
    for commit in made:
        gained = tuple(item for item in items if item.key in commit.after.done - commit.before.done)
        problem = _problem(action, commit, allowed)
        problem = problem or next((failing[item.key] for item in gained if item.key in failing), "")
        verdicts.append(CommitVerdict(commit.commit, gained, problem))
    if not any(verdict.items and not verdict.problem for verdict in verdicts):
        # What only prepares for a block is worth nothing without one.
        return [replace(each, problem=each.problem or "no block is done with it") for each in verdicts]
    return verdicts


def _problem(action: Action, commit: MadeCommit, allowed: str) -> str:
    outside = [path for path in commit.paths if not _is_within(path, allowed)]
    if outside:
        return f"it changes {plain(outside[0], 100)}; only {plain(allowed, 100)} is to be changed"
    if not commit.after.is_readable:
        return "after it the tutorial, or a file of its tests, cannot be read"
    if commit.after.others != commit.before.others:
        return "it changes other parts of the tutorial" if action == "fill" else "it changes the tutorial itself"
    lost = commit.before.cited - commit.after.cited
    if action == "sync" and lost:
        return f"it takes away the test of {plain(' '.join(next(iter(lost))), 80)!r}"
    loose = sorted(commit.after.loose - commit.before.loose)
    if loose:
        return f"its test {plain(loose[0], 200)} cites no block of the tutorial"
    return ""


def _is_within(path: str, allowed: str) -> bool:
    return allowed == "." or path == allowed or path.startswith(f"{allowed}/")


def hard_items(
    items: Sequence[OpenBlock], verdicts: Sequence[CommitVerdict], needless: Collection[str], why_not: str
) -> list[tuple[OpenBlock, str]]:
    """Return the items that no commit stands for that may be taken, each with the reason.

    `needless` are titles of comments that need no command, in the agent's word; `why_not` is said for want of a reason.
    """
    taken = {item.key for verdict in verdicts if not verdict.problem for item in verdict.items}
    spoiled = {item.key: verdict.problem for verdict in verdicts if verdict.problem for item in verdict.items}
    titles = {title.strip().casefold() for title in needless}
    return [
        (item, spoiled.get(item.key, why_not))
        for item in items
        if item.key not in taken and item.block.title.strip().casefold() not in titles
    ]
