"""Ways out of a conflict."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git.checkouts import check_out_tree
from swarm_tui.adapters.git.history import read_tree_changes
from swarm_tui.adapters.git.repository import Repository
from swarm_tui.adapters.git.trees import TreeEntry, write_loose
from swarm_tui.adapters.scratch import ScratchFolder
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.files import read_regular
from swarm_tui.model.commits import Commit
from swarm_tui.model.text import plain
from swarm_tui.review.changes import Change, Conflict, Preview
from swarm_tui.review.picking import CommitBuilder, inverse
from swarm_tui.review.review import Review
from swarm_tui.review.stack import conflict_key, extend_until_clean, later_commits_that_stay
from swarm_tui.review.verdicts import append_resolution

# A project may set a longer marker than git's default of seven characters.
_MARKER: Final = re.compile(rb"^(?:<{7,} |>{7,} )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ConflictCopy:
    """A scratch copy in the middle of a revert, in the same state as after `git revert`."""

    folder: Path
    """The folder for $EDITOR or `git mergetool`."""
    commit: str
    paths: tuple[str, ...]
    """The conflicting paths."""
    reverted: frozenset[str]
    key: str
    launch: str
    """The tree of git's merge, with conflict markers."""
    scratch: ScratchFolder


def open_conflict(review: Review, commit: str, reverted: frozenset[str] | None = None) -> ConflictCopy:
    """Create a scratch copy for resolving this revert. The repository is only read."""
    plan = review.reverted if reverted is None else reverted
    step = next((step for step in review.stack.without(plan) if step.commit.id == commit), None)
    if step is None or step.merge is None:
        raise UsageError("no conflict to resolve", "revert the fix without resolving anything")
    merge = step.merge
    # The copy borrows objects from the review, so these must be kept until the review is closed.
    review.space.retain()
    scratch = ScratchFolder("swarm-conflict-")
    copy = check_out_tree(review.space, step.ours, scratch.path / "copy", parent=review.branch.tip, is_verbatim=True)
    copy.run("revert", "--no-commit", "--no-edit", _commit_to_revert(review, inverse(step.commit)), codes=(0, 1))
    key = conflict_key(commit, merge)
    return ConflictCopy(copy.root, commit, merge.conflict_paths, plan, key, merge.tree, scratch)


def _commit_to_revert(review: Review, commit: Commit) -> str:
    """Return the commit, or, for some hunks of a fix, a commit with only these hunks."""
    original = next(each for each in review.branch.commits if each.id == commit.id)
    if commit.parent_tree == original.parent_tree:
        return commit.id
    builder = CommitBuilder(review.space, commit.parent)
    builder.add(commit.parent_tree, "the hunks that stay\n")
    return builder.add(commit.tree, commit.message)


def apply_resolution(review: Review, copy: ConflictCopy) -> Preview:
    """Use the content of the copy as the result of the revert, and return the new preview of the plan.

    Editors and merge tools leave backup files, so new files are used only if they were added with git.
    """
    unfinished = [path for path in copy.paths if _has_markers(copy.folder / path)]
    if unfinished:
        raise UsageError(
            f"{plain(unfinished[0], 80)} still contains conflict markers", "resolve them, or quit and keep the fix"
        )
    scratch = Repository.open(copy.folder)
    scratch.run("add", "--update")
    result = scratch.run("write-tree").text
    resolution: dict[str, TreeEntry | None] = {}
    for change in read_tree_changes(scratch, copy.launch, result):
        resolution[change.path] = None if change.status == "D" else TreeEntry(change.new_mode, change.new_id)
        if change.status != "D" and change.new_mode != _SUBMODULE:
            _keep_blob(review, scratch, change.new_id)
    append_resolution(review.store.folder, copy.key, copy.commit, resolution, review.by)
    review.stack.add_resolution(copy.key, resolution)
    discard(copy)
    return review.preview_of(copy.reverted)


def discard(copy: ConflictCopy) -> None:
    copy.scratch.close()


_SUBMODULE: Final = "160000"


def _has_markers(path: Path) -> bool:
    try:
        return not path.is_symlink() and path.is_file() and _MARKER.search(read_regular(path)) is not None
    except OSError as error:
        raise SwarmError(f"cannot read {plain(path.name, 80)}: {error.strerror or error}") from error


def _keep_blob(review: Review, scratch: Repository, blob: str) -> None:
    """Copy a file of the result to the review, so that previews find it after the copy is removed."""
    content = scratch.run("cat-file", "blob", blob).stdout
    write_loose(review.store.folder.objects, scratch.object_format, "blob", content)
    review.space.write("blob", content)


MOST_PREVIEWS: Final = 5_000
MOST_SECONDS: Final = 10.0
MOST_SETS: Final = 5
_CONFLICT: Final = re.compile(rb"^<{7,} .*?^>{7,} [^\n]*\n?", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Resolutions:
    """Sets of additional reverts that let a plan build."""

    sets: tuple[tuple[Change, ...], ...] = ()
    """Sets of the smallest size. The last one reverts the highest ranked fixes."""
    is_exact: bool = True
    """Whether no smaller set exists; False if the search timed out."""
    previews: int = 0


@dataclass(frozen=True, slots=True)
class ManualResolution:
    """The manual work to resolve a conflict in one file."""

    path: str
    places: int
    """The number of places with conflict markers; 0 if the conflict is about the file as a whole."""
    lines: int
    """The lines between these markers."""


def find_resolutions(review: Review, reverted: Collection[str], *, seconds: float = MOST_SECONDS) -> Resolutions:
    """Return the smallest sets of fixes to revert in addition so that this plan builds."""
    search = _Search(review, frozenset(reverted), time.monotonic() + seconds)
    return search.run()


class _Search:
    def __init__(self, review: Review, reverted: frozenset[str], deadline: float) -> None:
        self._review = review
        self._reverted = reverted
        self._deadline = deadline
        self._fixes = {fix.id: fix for fix in review.fixes}
        self._tried: set[frozenset[str]] = set()

    def run(self) -> Resolutions:
        level = [self._reverted]
        while level:
            found, following = list[frozenset[str]](), dict[frozenset[str], None]()
            for plan in level:
                if len(self._tried) >= MOST_PREVIEWS or time.monotonic() > self._deadline:
                    return self._greedy_result()
                self._tried.add(plan)
                preview = self._review.preview_of(plan)
                if preview.is_clean:
                    found.append(plan)
                    continue
                following |= dict.fromkeys(plan | {more} for more in self._needed_for(preview.conflicts, plan))
            if found:
                return self._answer(found, is_exact=True)
            level = list(following)
        return Resolutions(previews=len(self._tried))

    def _needed_for(self, conflicts: Sequence[Conflict], plan: frozenset[str]) -> list[str]:
        """Return the fixes for the conflict with the fewest choices. At least one of them must be reverted too."""
        choices = [self._possible(conflict, plan) for conflict in conflicts]
        return min(choices, key=len, default=[])

    def _possible(self, conflict: Conflict, plan: frozenset[str]) -> list[str]:
        branch = self._review.branch
        commit = next((each for each in branch.commits if each.id == conflict.commit), None)
        if commit is None:
            return [each for each in conflict.opponents if each in self._fixes]
        paths = commit.paths | frozenset(conflict.paths)
        later = later_commits_that_stay(branch, commit.id, plan)
        named = frozenset(conflict.opponents)
        found = [each.id for each in later if each.id in self._fixes and (each.id in named or each.paths & paths)]
        # Known conflicts first, so that they have been tried if the search times out.
        return sorted(found, key=lambda each: each not in named)

    def _greedy_result(self) -> Resolutions:
        """Return a set that builds, without fixes that it does not need. It may not be the smallest."""
        grown = self._grown()
        if grown is None:
            return Resolutions(is_exact=False, previews=len(self._tried))
        for more in sorted(grown - self._reverted, key=lambda each: self._fixes[each].rank):
            if self._review.preview_of(grown - {more}).is_clean:
                grown -= {more}
        return self._answer([grown], is_exact=False)

    def _grown(self) -> frozenset[str] | None:
        grown = extend_until_clean(self._review.stack, self._reverted)
        return grown if grown is not None and grown - self._reverted <= self._fixes.keys() else None

    def _answer(self, plans: Sequence[frozenset[str]], *, is_exact: bool) -> Resolutions:
        sets = [
            tuple(sorted((self._fixes[more] for more in plan - self._reverted), key=lambda fix: fix.rank))
            for plan in plans
        ]
        # The set that reverts the lowest ranked fixes is first.
        sets.sort(key=lambda found: [-fix.rank for fix in found])
        return Resolutions(tuple(sets[:MOST_SETS]), is_exact, len(self._tried))


def manual_resolution(review: Review, commit: str, reverted: Collection[str]) -> tuple[ManualResolution, ...]:
    """Return the files and conflicts that the user would have to resolve to revert this fix by hand."""
    merge = next((step.merge for step in review.stack.without(reverted) if step.commit.id == commit), None)
    if merge is None:
        return ()
    found = []
    for path in merge.conflict_paths:
        entry = review.space.entry(merge.tree, path) if merge.tree else None
        is_file = entry is not None and entry.mode.startswith("100")
        content = review.space.read(entry.id)[1] if entry is not None and is_file else b""
        places = _CONFLICT.findall(content)
        found.append(ManualResolution(path, len(places), sum(max(0, place.count(b"\n") - 3) for place in places)))
    return tuple(found)
