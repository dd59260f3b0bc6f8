"""Judge the commits of a tutorial agent by the tutorial and its tests before and after each. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from swarm_tui.model.text import plain
from swarm_tui.tutorial.blocks import Block, comparable_lines, parse_blocks, parse_unfilled, text_lines
from swarm_tui.tutorial.check import TutorialCheck, check_tutorial
from swarm_tui.tutorial.citations import TestFile
from swarm_tui.tutorial.open_work import Action, OpenBlock
from swarm_tui.tutorial.read import CommittedTutorial

BlockKey = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TutorialState:
    """The state of a batch's items at a commit."""

    done: frozenset[BlockKey]
    """The items of the batch that are done."""
    cited: frozenset[BlockKey]
    """All blocks that have a test."""
    other_lines: tuple[str, ...]
    """The lines of the tutorial that the batch must not change."""
    is_readable: bool
    tests: Mapping[BlockKey, tuple[str, ...]] = field(default_factory=dict)
    """The tests of each block of the batch, as file::name."""
    tests_without_block: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CommitEffect:
    """A commit of an agent: the changed paths, and the states before and after."""

    commit: str
    paths: tuple[str, ...]
    before: TutorialState
    after: TutorialState


@dataclass(frozen=True, slots=True)
class CommitVerdict:
    """The blocks that a commit completes, and the reason to reject it, if any."""

    commit: str
    items: tuple[OpenBlock, ...]
    problem: str = ""


def tutorial_state(action: Action, items: Sequence[OpenBlock], tutorial: CommittedTutorial) -> TutorialState:
    """Return the state of a batch's items at a commit."""
    if tutorial.text is None:
        return TutorialState(frozenset(), frozenset(), (), is_readable=False)
    if action == "fill":
        return _state_of_fill(items, tutorial.text)
    blocks = parse_blocks(tutorial.text)
    check = check_tutorial(blocks, tutorial.files)
    tests = _tests_by_block(blocks, tutorial)
    uncited = {block.key for block in check.uncited_blocks}
    present = {block.key for block in blocks}
    done = frozenset(
        item.key for item in items if item.key in present and item.key not in uncited and _is_mended(item, check)
    )
    return TutorialState(
        done,
        frozenset(present - uncited),
        tuple(comparable_lines(tutorial.text)),
        is_readable=not check.broken_files,
        tests={item.key: tests.get(item.key, ()) for item in items},
        tests_without_block=frozenset(f"{each.test.file}::{each.test.name}" for each in check.unmatched_tests),
    )


def _state_of_fill(items: Sequence[OpenBlock], text: str) -> TutorialState:
    """Return the state of comments: done if the comment begins a block with commands and appears nowhere alone."""
    waiting = parse_unfilled(text)
    alone = {block.key for block in waiting}
    wanted = {item.key for item in items}
    own = [block for block in waiting if block.key in wanted]
    done: set[BlockKey] = set()
    blocks = parse_blocks(text)
    for item in items:
        opened = [block for block in blocks if block.key[: len(item.key)] == item.key]
        own += opened
        if opened and item.key not in alone:
            done.add(item.key)
    numbers = {number for block in own for number in range(block.line, block.end_line + 1)}
    lines = (line.rstrip() for number, line in enumerate(text_lines(text), 1) if number not in numbers)
    return TutorialState(frozenset(done), frozenset(), tuple(filter(None, lines)), is_readable=True)


def _is_mended(item: OpenBlock, check: TutorialCheck) -> bool:
    stale = {(each.test.file, each.test.name) for each in check.unmatched_tests}
    return not any((miss.test.file, miss.test.name) in stale for miss in item.near_misses)


def _tests_by_block(blocks: Sequence[Block], tutorial: CommittedTutorial) -> dict[BlockKey, tuple[str, ...]]:
    """Return the tests that cite each block, alone or with others."""
    known = {block.key for block in blocks}
    tests: dict[BlockKey, list[str]] = {}
    for file in tutorial.files:
        for test in file.tests if isinstance(file, TestFile) else ():
            for citation in test.citations:
                for reading in citation.readings:
                    keys = {comparable_lines(reading), *(part.key for part in parse_blocks(reading))}
                    for key in keys & known:
                        tests.setdefault(key, []).append(f"{test.file}::{test.name}")
    return {key: tuple(dict.fromkeys(names)) for key, names in tests.items()}


def judge_commits(
    action: Action,
    items: Sequence[OpenBlock],
    commits: Iterable[CommitEffect],
    allowed: str,
    failing: Mapping[BlockKey, str],
) -> list[CommitVerdict]:
    """Return for each commit, oldest first, whether it is accepted.

    `allowed` is the file or folder that may be changed; `failing` maps blocks to the reason why their tests fail.
    """
    verdicts = []
    for commit in commits:
        gained = tuple(item for item in items if item.key in commit.after.done - commit.before.done)
        problem = _problem(action, commit, allowed)
        problem = problem or next((failing[item.key] for item in gained if item.key in failing), "")
        verdicts.append(CommitVerdict(commit.commit, gained, problem))
    if not any(verdict.items and not verdict.problem for verdict in verdicts):
        # A commit that only prepares a block is useless without the block.
        return [replace(each, problem=each.problem or "it completes no block") for each in verdicts]
    return verdicts


def _problem(action: Action, commit: CommitEffect, allowed: str) -> str:
    outside = [path for path in commit.paths if not _is_within(path, allowed)]
    if outside:
        return f"it changes {plain(outside[0], 100)}; only {plain(allowed, 100)} may change"
    if not commit.after.is_readable:
        return "it makes the tutorial or a test file unreadable"
    if commit.after.other_lines != commit.before.other_lines:
        return "it changes other parts of the tutorial" if action == "fill" else "it changes the tutorial itself"
    lost = commit.before.cited - commit.after.cited
    if action == "sync" and lost:
        return f"it removes the test of {plain(' '.join(next(iter(lost))), 80)!r}"
    uncited = sorted(commit.after.tests_without_block - commit.before.tests_without_block)
    if uncited:
        return f"its test {plain(uncited[0], 200)} cites no block"
    return ""


def _is_within(path: str, allowed: str) -> bool:
    return allowed == "." or path == allowed or path.startswith(f"{allowed}/")


def unfinished_items(
    items: Sequence[OpenBlock], verdicts: Sequence[CommitVerdict], without_command: Collection[str], default: str
) -> list[tuple[OpenBlock, str]]:
    """Return the items that no accepted commit completes, with the reasons.

    `without_command` are titles of comments that need no command, as the agent reports; `default` is the reason
    for an item that no commit tried to complete.
    """
    taken = {item.key for verdict in verdicts if not verdict.problem for item in verdict.items}
    problems = {item.key: verdict.problem for verdict in verdicts if verdict.problem for item in verdict.items}
    titles = {title.strip().casefold() for title in without_command}
    return [
        (item, problems.get(item.key, default))
        for item in items
        if item.key not in taken and item.block.title.strip().casefold() not in titles
    ]
