"""The built-in integrator on a whole sweep's branches, beside one call of pytest for each fix, one after the other.

    python -m tests.bench.integrator [--branches 300] [--fixes 60] [--naive 60]

The repository is made: forty modules, a test for each branch, faults that several tests meet, agents that find the same
fix in other words, rivals that satisfy one test only, fixes that break something, chains, and better tests.
`--naive 20` measures the other way for twenty fixes only, and compares the order of those.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import shlex
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.integrator.branches import read_branches
from swarm_tui.integrator.build import Tip, squash
from swarm_tui.integrator.duplicates import DistinctFix, distinct_fixes
from swarm_tui.integrator.inputs import IntegratorInputs
from swarm_tui.integrator.program import integrate
from swarm_tui.integrator.report import rank_fixes
from swarm_tui.model.commits import FIX_PREFIX
from swarm_tui.review.picking import tree_with
from swarm_tui.review.ranking import Effect
from tests.bench.made_sweep import MadeSweep
from tests.bench.table import machine


class CountedPython:
    """An interpreter that writes down each call of it, and for how many tests."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "python"
        self._log = folder / "calls"
        self._log.touch()
        self.path.write_text(
            f'#!/bin/sh\necho "$(printf "%s\\n" "$@" | grep -c ::)" >> {shlex.quote(str(self._log))}\n'
            f'exec {shlex.quote(sys.executable)} "$@"\n'
        )
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)

    def counts(self) -> tuple[int, int]:
        """Return how many calls there were, and how many tests they ran."""
        tests = [int(line) for line in self._log.read_text().split()]
        return len(tests), sum(tests)


def measure_ours(sweep: MadeSweep, folder: Path) -> tuple[float, list[str], CountedPython]:
    """Integrate everything; return the seconds, the titles of the fixes in their order, and what was called."""
    python = CountedPython(folder)
    inputs = sweep.inputs(str(python.path), str(folder / "cache"))
    begun = time.monotonic()

    def progress(line: str) -> None:
        if ": turns " not in line:
            print(f"  {time.monotonic() - begun:6.1f} s  {line}", flush=True)

    outcome = asyncio.run(integrate(Repository.open(sweep.root), inputs, progress, folder))
    seconds = time.monotonic() - begun
    subjects = _subjects(sweep.root, inputs)
    return seconds, [subjects[entry["commit"]] for entry in (outcome.model_extra or {})["ranking"]], python


def _subjects(root: Path, inputs: IntegratorInputs) -> dict[str, str]:
    listed = ["git", "log", "--format=%H %s", f"{inputs.base}..refs/heads/{inputs.branch}"]
    lines = subprocess.run(listed, cwd=root, capture_output=True, check=True, text=True).stdout.splitlines()
    return {line[:40]: line[41:] for line in lines}


def measure_naively(sweep: MadeSweep, folder: Path, most: int) -> tuple[float, int, list[str]]:
    """Run all tests for one fix after the other; return the seconds, the number of fixes, and their order."""
    inputs = sweep.inputs(sys.executable, "")
    repository = Repository.open(sweep.root)
    commits, _ = read_branches(repository, inputs)
    fixes = distinct_fixes([commit for commit in commits if commit.classification.is_fix])
    with ObjectSpace(repository) as space:
        others = [commit for commit in commits if not commit.classification.is_fix]
        start, _, _ = squash(space, inputs, Tip(inputs.base, repository.tree_of(inputs.base)), others)
        trees = {fix.chosen.id: tree_with(space, start.tree, [fix.chosen]) for fix in fixes}
        alone = [fix for fix in fixes if trees[fix.chosen.id] is not None][:most]
        begun = time.monotonic()
        before = _run_all(space, start.tree, folder / "before")
        effects: dict[str, Effect] = {}
        for number, fix in enumerate(alone):
            tree = trees[fix.chosen.id]
            assert tree is not None, "the others were left out"
            effects[fix.chosen.id] = _effect(before, _run_all(space, tree, folder / str(number)))
        seconds = time.monotonic() - begun
    return seconds, len(alone), [_title(fix) for fix in rank_fixes(alone, effects)]


def _title(fix: DistinctFix) -> str:
    return f"{FIX_PREFIX} {fix.chosen.subject.removeprefix(FIX_PREFIX).strip()}"


def _run_all(space: ObjectSpace, tree: str, folder: Path) -> dict[str, bool]:
    """Run all tests of a tree in a fresh copy; return which passed."""
    folder.mkdir()
    packed = space.repository.run("archive", tree).stdout
    subprocess.run(["tar", "-x"], cwd=folder, input=packed, check=True)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=found.xml", "tests"]
    subprocess.run(words, cwd=folder, capture_output=True, env={**os.environ, "PYTHONPATH": str(folder)})
    cases = ElementTree.parse(folder / "found.xml").iter("testcase")
    return {
        f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}": case.find("failure") is None
        for case in cases
    }


def _effect(before: Mapping[str, bool], after: Mapping[str, bool]) -> Effect:
    return Effect(
        turned_green=tuple(test for test, is_green in after.items() if is_green and not before[test]),
        broken=tuple(test for test, is_green in after.items() if not is_green and before[test]),
        is_measured=True,
    )


def compare(ours: Sequence[str], naive: Sequence[str]) -> list[str]:
    """Return in lines where two orders of the same fixes differ; fixes that only one of them has are passed over."""
    both = set(ours) & set(naive)
    one, other = ([title for title in order if title in both] for order in (ours, naive))
    places = {title: place for place, title in enumerate(other, 1)}
    return [
        f"{title}: {place} here, {places[title]} there" for place, title in enumerate(one, 1) if places[title] != place
    ]


def processor_seconds() -> float:
    """Return what this process and all that it has waited for have used: a busy machine does not change that much."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.integrator")
    parser.add_argument("--branches", type=int, default=300)
    parser.add_argument("--fixes", type=int, default=60)
    parser.add_argument("--naive", type=int, default=0, help="for how many fixes (default: all)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="swarm-bench-") as place:
        folder = Path(place)
        sweep = MadeSweep(folder / "shop", given.branches, given.fixes)
        print(f"{given.branches} branches, {sweep.words}; {machine()}", flush=True)
        (folder / "ours").mkdir()
        begun = processor_seconds()
        seconds, ours, python = measure_ours(sweep, folder / "ours")
        used, (calls, runs) = processor_seconds() - begun, python.counts()
        print(f"integrator: {seconds:.1f} s ({used:.0f} s of a processor), {calls} pytests, {runs:,} runs of a test")
        (folder / "naive").mkdir()
        begun = processor_seconds()
        naive_seconds, count, naive = measure_naively(sweep, folder / "naive", given.naive or given.fixes * 2)
        share = (given.fixes + 1) / (count + 1)
        whole, whole_used = naive_seconds * share, (processor_seconds() - begun) * share
        print(f"one call a fix: {naive_seconds:.1f} s for {count} fixes; for {given.fixes}: {whole:.0f} s", end=" ")
        print(f"({whole_used:.0f} s of a processor), {(given.fixes + 1) * given.branches:,} runs of a test")
        print(
            f"saved: {1 - seconds / whole:.0%} of the time, {1 - used / whole_used:.0%} of the processor; {machine()}"
        )
        differences = compare(ours, naive)
        print("the order is the same" if not differences else "the order differs:\n  " + "\n  ".join(differences))


if __name__ == "__main__":
    main()
