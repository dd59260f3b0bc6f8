"""Checks the options of a tutorial sweep, and turns them into its spec."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec import structs

from swarm_tui.adapters.git import Repository
from swarm_tui.agents.types import agent_type_of
from swarm_tui.errors import UsageError
from swarm_tui.journal.folder import runs_folder
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.options import RunOptions
from swarm_tui.model.spec import SweepSpec, SweptTest, derive_tests
from swarm_tui.model.text import plain
from swarm_tui.sweep.collect import Found, Progress, checked_root, collect_tests, refuse_errors
from swarm_tui.sweep.order import check_order, check_request, compose_spec, report_order
from swarm_tui.sweep.tutorial_work import tutorial_prompt
from swarm_tui.testing.python import import_roots, path_below
from swarm_tui.tutorial.open_work import (
    Action,
    OpenBlock,
    OpenWork,
    batches_of,
    find_open_work,
    name_of_batch,
    text_of_batch,
)
from swarm_tui.tutorial.read import CommittedTutorial, CommittedTutorialReader

LARGEST_BATCH: Final = 50


@dataclass(frozen=True, slots=True)
class TutorialOptions:
    """The options of `tutorial fill` and `tutorial sync`."""

    action: Action
    tutorial: Path
    tests: Path | None = None
    batch: int = 4
    material: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the files are, from the top of the repository."""

    tutorial: str
    tests: str


async def prepare_tutorial(
    run_options: RunOptions,
    options: TutorialOptions,
    folder: Path,
    progress: Progress,
    *,
    mngr: str | None = None,
) -> tuple[SweepSpec, list[SweptTest], OpenWork] | None:
    """Check options and return the spec, the tests and the open work; None if nothing is left to do."""
    if not 1 <= options.batch <= LARGEST_BATCH:
        raise UsageError(f"invalid value for --batch: {options.batch}", f"use 1 to {LARGEST_BATCH} blocks")
    repository = await asyncio.to_thread(Repository.open, folder)
    places = _places(repository, options)
    found = await asyncio.to_thread(_read, repository, places, progress)
    loop = find_open_work(options.action, found)
    if not loop.items and not loop.removed:
        return None
    if agent_type_of(run_options.agent_type).plays_records and run_options.records is None and loop.items:
        raise UsageError("the offline agent plays records, and none are given", "give a folder of them with --records")
    order = await check_order(run_options, folder, mngr)
    how = await _how_to_test(repository, folder, run_options, places, progress)
    await report_order(order, progress)
    spec = dataclasses.replace(
        compose_spec(order, how),
        kind=options.action,
        tutorial=str(repository.root.resolve() / places.tutorial),
        tests_folder=places.tests,
        material=tuple(_checked_material(path) for path in options.material),
        integrator="builtin",
    )
    tests = _batches(spec, places.tutorial, batches_of(loop.items, options.batch))
    if tests:
        _check_launch(spec, repository, tests[0])
    return spec, tests, loop


def _batches(spec: SweepSpec, tutorial: str, batches: Sequence[Sequence[OpenBlock]]) -> list[SweptTest]:
    named = [(name_of_batch(tutorial, batch), tutorial, batch[0].block.line) for batch in batches]
    derived = derive_tests(spec.sweep, named)
    return [structs.replace(test, block=text_of_batch(batch)) for test, batch in zip(derived, batches, strict=True)]


def _places(repository: Repository, options: TutorialOptions) -> _Places:
    if not options.tutorial.is_file():
        what = "is not a file" if options.tutorial.exists() else "does not exist"
        raise UsageError(f"{plain(str(options.tutorial), 200)} {what}", "give the tutorial's script")
    if options.tests is not None and not options.tests.exists():
        raise UsageError(
            f"there is no {plain(str(options.tests), 200)}", "give the folder of the tests that cite the tutorial"
        )
    if options.tests is not None and not options.tests.is_dir():
        raise UsageError(f"{plain(str(options.tests), 200)} is not a folder", "give the folder that the tests are in")
    return _Places(
        _place_in(repository, options.tutorial),
        _place_in(repository, options.tests) if options.tests is not None else "",
    )


def _place_in(repository: Repository, path: Path) -> str:
    top, real = repository.root.resolve(), path.resolve()
    if not real.is_relative_to(top):
        raise UsageError(
            f"{plain(str(path), 200)} is not in the repository {top}", "agents work on copies of that repository"
        )
    return real.relative_to(top).as_posix()


def _read(repository: Repository, places: _Places, progress: Progress) -> CommittedTutorial:
    """Read tutorial and tests where the agents will begin: in the commit that is checked out."""
    base = repository.head()
    found = CommittedTutorialReader(repository, places.tutorial, places.tests).read(base)
    name = plain(places.tutorial, 200)
    if found.text is None:
        raise UsageError(
            f"{name} is not in commit {base[:10]}, or is not UTF-8 there", "commit it: the agents begin at that commit"
        )
    if not found.text.strip():
        raise UsageError(f"{name} is empty", "a tutorial is a shell script of blocks with empty lines between them")
    dirty = [path for path in repository.dirty_paths() if path == places.tutorial]
    if dirty:
        progress(f"{name} has uncommitted changes: its blocks are read as they are in commit {base[:10]}")
    return found


async def _how_to_test(
    repository: Repository, folder: Path, options: RunOptions, places: _Places, progress: Progress
) -> Found:
    """Return how to run tests; a tutorial without tests needs only an interpreter."""
    top, folder = repository.root.resolve(), folder.resolve()
    if not places.tests:
        python = options.python or shutil.which("python3") or sys.executable
        return Found((), python, path_below(folder, top), "", (), ())
    progress("collecting the tests")
    arguments = [os.path.relpath(top / places.tests, folder)]
    passed = options.passed_environment
    python, collected = await collect_tests(repository, folder, options.python, arguments, passed=passed)
    refuse_errors(collected, passed)
    root = checked_root(collected, top)
    return Found((), python, path_below(folder, top), path_below(root, top), (), import_roots(collected, top))


def _checked_material(path: Path) -> str:
    if not path.exists():
        raise UsageError(f"--material names {plain(str(path), 200)}, which does not exist")
    return str(path.absolute())


def _check_launch(spec: SweepSpec, repository: Repository, test: SweptTest) -> None:
    """Find out now what would make every launch fail: the prompt, and paths that cannot be given to an agent."""
    record = TestRecord(test=test.test, agent=test.agent, branch=test.branch, file=test.file, block=test.block)
    command = runs_folder(Path(spec.repository)) / spec.sweep / "swarm-tui"
    tutorial_prompt(spec, repository, record, str(command))
    check_request(spec, test)
