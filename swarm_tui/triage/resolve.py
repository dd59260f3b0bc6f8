"""Opens the conflict of a revert in a scratch copy, and uses the resolution in the plan."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git.checkouts import check_out_tree
from swarm_tui.adapters.git.history import read_tree_changes
from swarm_tui.adapters.git.repository import Repository
from swarm_tui.adapters.git.trees import TreeEntry, write_loose
from swarm_tui.adapters.scratch import ScratchFolder
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.model.fixes import Commit, Preview
from swarm_tui.model.text import plain
from swarm_tui.regular_file import read_regular
from swarm_tui.triage.preview import conflict_key
from swarm_tui.triage.review import Review
from swarm_tui.triage.store import append_resolution

# A project may set a longer marker than git's default of seven characters.
_MARKER: Final = re.compile(rb"^(?:<{7,} |>{7,} )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ConflictCopy:
    """A scratch copy in the middle of a revert, as `git revert` would have left it."""

    folder: Path
    """To be opened in $EDITOR, or with `git mergetool` in it."""
    commit: str
    paths: tuple[str, ...]
    """What could not be merged."""
    reverted: frozenset[str]
    key: str
    attempt: str
    """The tree of git's own attempt, with conflict markers."""
    scratch: ScratchFolder


def open_conflict(review: Review, commit: str, reverted: frozenset[str] | None = None) -> ConflictCopy:
    """Make a scratch copy in which the revert of this commit waits for a person; the repository is only read."""
    wanted = review.reverted if reverted is None else reverted
    steps = {done.id: (done, step) for done, step in review.previewer.steps(wanted)}
    if commit not in steps or steps[commit][1].merge is None:
        raise UsageError("there is no conflict to resolve", "the revert is clean as it is")
    merge, ours = steps[commit][1].merge, steps[commit][1].ours
    assert merge is not None, "just looked at"
    # The copy borrows its objects from the review's: from now on those are kept until the review is closed.
    review.space.retain()
    scratch = ScratchFolder("swarm-conflict-")
    copy = check_out_tree(review.space, ours, scratch.path / "copy", parent=review.branch.tip, is_verbatim=True)
    copy.run("revert", "--no-commit", "--no-edit", _commit_to_revert(review, steps[commit][0]), codes=(0, 1))
    key = conflict_key(commit, merge)
    return ConflictCopy(copy.root, commit, merge.conflict_paths, wanted, key, merge.tree, scratch)


def _commit_to_revert(review: Review, commit: Commit) -> str:
    """Return the commit itself, or of one that stands for some hunks of a fix a commit of these alone."""
    original = next(each for each in review.branch.commits if each.id == commit.id)
    if commit.parent_tree == original.parent_tree:
        return commit.id
    rest = review.space.commit(commit.parent_tree, [commit.parent], b"the hunks that stay\n")
    return review.space.commit(commit.tree, [rest], commit.message.encode("utf-8", "replace"))


def apply_resolution(review: Review, copy: ConflictCopy) -> Preview:
    """Keep what the copy holds as the result of the revert, and return the preview of the plan with it.

    Editors and merge tools leave backups beside the files: a file that is new counts when it was added with git.
    """
    unfinished = [path for path in copy.paths if _has_markers(copy.folder / path)]
    if unfinished:
        raise UsageError(
            f"{plain(unfinished[0], 80)} still holds conflict markers", "finish it, or give up and keep the fix"
        )
    scratch = Repository.open(copy.folder)
    scratch.run("add", "--update")
    result = scratch.run("write-tree").text
    resolution: dict[str, TreeEntry | None] = {}
    for change in read_tree_changes(scratch, copy.attempt, result):
        resolution[change.path] = None if change.status == "D" else TreeEntry(change.new_mode, change.new_id)
        if change.status != "D" and change.new_mode != _SUBMODULE:
            _keep_blob(review, scratch, change.new_id)
    append_resolution(review.store.folder, copy.key, copy.commit, resolution, review.by)
    review.previewer.add_resolution(copy.key, resolution)
    discard(copy)
    return review.preview_of(copy.reverted)


def discard(copy: ConflictCopy) -> None:
    copy.scratch.close()


_SUBMODULE: Final = "160000"


def _has_markers(path: Path) -> bool:
    try:
        return not path.is_symlink() and path.is_file() and _MARKER.search(read_regular(path)) is not None
    except OSError as error:
        raise SwarmError(f"{plain(path.name, 80)} cannot be read", error.strerror or str(error)) from error


def _keep_blob(review: Review, scratch: Repository, blob: str) -> None:
    """Keep a file of the result with the review, so that it outlives the copy, and where previews look now."""
    content = scratch.run("cat-file", "blob", blob).stdout
    write_loose(review.store.folder.objects, scratch.object_format, "blob", content)
    review.space.write("blob", content)
