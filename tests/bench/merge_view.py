"""How long a reviewer waits: opening a review, the next fix's diff, and previews of three reverts among forty.

Run: python -m tests.bench.merge_view [COMMITS] [FILES]
Another git is measured by putting it first on PATH.
"""

from __future__ import annotations

import itertools
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from swarm_tui.adapters.git import Repository
from swarm_tui.review.review import Review
from swarm_tui.review.verdicts import ReviewFolder
from tests.git_project import GitProject

FIXES = 40
TOUCHED = 60
"""So many files, longer than the others, are what the fixes change."""


def write_repository(project: GitProject, commits: int, files: int) -> None:
    """A long history on main, and forty fixes on a branch, some of which change the same lines."""
    chance = random.Random(7)
    lines = {
        f"package_{n % 20}/part_{n // 20 % 20}/module_{n}.py": [
            f"def f{n}_{k}(): return {k}" for k in range(120 if n < TOUCHED else 20)
        ]
        for n in range(files)
    }
    names = list(lines)
    stream: list[str] = []

    def commit(branch: str, number: int, message: str, changed: Sequence[str]) -> None:
        stream.append(f"commit refs/heads/{branch}\nmark :{number}\n")
        stream.append(f"committer Agent <agent@example.org> {1_700_000_000 + number} +0000\n")
        stream.append(f"data {len(message)}\n{message}\n" + (f"from :{number - 1}\n" if number > 1 else ""))
        for name in changed:
            text = "\n".join(lines[name]) + "\n"
            stream.append(f"M 100644 inline {name}\ndata {len(text)}\n{text}\n")

    commit("main", 1, "base", names)
    for number in range(2, commits + 1):
        changed = chance.sample(names, chance.randrange(1, 4))
        for name in changed:
            lines[name][chance.randrange(len(lines[name]))] = f"def f_{number}(): return {number}"
        commit("main", number, f"Fix test_{number}", changed)
    for count in range(FIXES):
        number = commits + 1 + count
        changed = chance.sample(names[:TOUCHED], 3)
        for name in changed:
            lines[name][chance.randrange(40)] = f"def fix_{number}(): return {number}"
        if count % 13 == 5:
            lines[names[0]][10] = f"def shared(): return {number}"
            changed = list(dict.fromkeys([*changed, names[0]]))
        commit("fixes", number, f"[FIX_IMPL] fix {count}", changed)
    project.git("fast-import", "--quiet", stdin="".join(stream).encode())
    # What `git gc` would add to the one pack that fast-import leaves, at a hundredth of the time.
    project.git("commit-graph", "write", "--reachable")
    project.git("checkout", "--quiet", "fixes")


def milliseconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return (time.perf_counter() - started) * 1000


def report(what: str, times: Sequence[float]) -> None:
    ordered = sorted(times)
    p90 = ordered[int(0.9 * (len(ordered) - 1))]
    print(
        f"{what:52} median {statistics.median(ordered):7.1f} ms  p90 {p90:7.1f}  worst {ordered[-1]:7.1f}", flush=True
    )


def measure(project: GitProject, state: Path) -> None:
    repository = Repository.open(project.root)
    print(f"git {'.'.join(map(str, repository.version))}, {len(repository.list_commits('main', 'fixes'))} fixes")
    numbers = itertools.count()

    def open_review() -> Review:
        folder = state / str(next(numbers))
        return Review.open(repository, "main", "fixes", folder=ReviewFolder(folder / "verdicts.jsonl", folder))

    report("open a review", [milliseconds(lambda: open_review().close()) for _ in range(7)])
    with open_review() as review:
        print(f"{'warm up, in a thread':52} {milliseconds(review.warm_up):14.1f} ms")
    chance = random.Random(3)
    any_three: list[float] = []
    one_line: list[float] = []
    for _ in range(20):
        with open_review() as review:
            review.warm_up()
            any_three.append(preview_time(review, [fix.id for fix in chance.sample(review.fixes, 3)]))
        with open_review() as review:
            review.warm_up()
            one_line.append(preview_time(review, [review.fixes[place].id for place in (5, 18, 31)]))
    report("preview of 3 reverts of 40, any three", any_three)
    report("preview of 3 reverts of 40, all of one line", one_line)
    with open_review() as review:
        report("next fix: its diff", [milliseconds(partial(review.diff, fix)) for fix in review.fixes])
        report(
            "can this fix be reverted alone",
            [milliseconds(partial(review.conflict_when_reverted_alone, fix)) for fix in review.fixes],
        )
    with open_review() as review:
        chosen = [fix.id for fix in review.fixes]
        report("preview after each of 40 reverts", [preview_time(review, chosen[: n + 1]) for n in range(FIXES)])


def preview_time(review: Review, commits: Sequence[str]) -> float:
    return milliseconds(partial(review.preview_of, commits))


if __name__ == "__main__":
    size = [int(word) for word in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder:
        made = GitProject(Path(folder) / "repository")
        write_repository(made, *(size or [2_000, 600]))
        measure(made, Path(folder) / "state")
