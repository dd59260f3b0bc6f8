"""Cherry-picks and reverts of commits on trees, the conflicts between commits, and new commits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from swarm_tui.adapters.git import Identity
from swarm_tui.adapters.git.merging import MergeResult
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.git.trees import TreeEntry
from swarm_tui.model.commits import Commit, FileChange


@dataclass(frozen=True, slots=True)
class Step:
    """One cherry-pick on one tree."""

    commit: Commit
    ours: str
    tree: str
    """The resulting tree; equal to `ours` after a conflict."""
    merge: MergeResult | None = None
    """The merge that conflicted."""
    is_resolved: bool = False
    """Whether the user resolved the conflict."""

    @property
    def is_conflict(self) -> bool:
        return self.merge is not None and not self.is_resolved


def inverse(commit: Commit) -> Commit:
    """Return a commit that reverts a commit. Cherry-picking it is the same as `git revert`."""
    changes = tuple(map(_inverse_change, commit.changes))
    return replace(commit, parent_tree=commit.tree, tree=commit.parent_tree, changes=changes, shown_lines=None)


def _inverse_change(change: FileChange) -> FileChange:
    status = {"A": "D", "D": "A"}.get(change.status, change.status)
    modes_and_ids = (change.new_mode, change.old_mode, change.new_id, change.old_id)
    return FileChange(change.path, status, *modes_and_ids, change.removed, change.added)


def pick(space: ObjectSpace, commit: Commit, ours: str) -> Step:
    """Cherry-pick a commit onto a tree, with the same result as git."""
    tree = pick_by_path(space, commit, ours)
    if tree is not None:
        return Step(commit, ours, tree)
    merge = space.merge(base=commit.parent_tree, ours=ours, theirs=commit.tree)
    return Step(commit, ours, merge.tree) if merge.is_clean else Step(commit, ours, ours, merge)


def pick_all(space: ObjectSpace, commits: Iterable[Commit], tree: str) -> list[Step]:
    """Cherry-pick one commit after the other. A commit that conflicts is skipped."""
    steps = []
    for commit in commits:
        steps.append(pick(space, commit, tree))
        tree = steps[-1].tree
    return steps


def tree_with(space: ObjectSpace, tree: str, commits: Iterable[Commit]) -> str | None:
    """Return a tree with these commits cherry-picked, or None if one of them conflicts."""
    for commit in commits:
        step = pick(space, commit, tree)
        if step.is_conflict:
            return None
        tree = step.tree
    return tree


def contains(space: ObjectSpace, tree: str, commit: Commit) -> bool | None:
    """Return whether cherry-picking a commit would change nothing; None if it conflicts."""
    step = pick(space, commit, tree)
    return None if step.is_conflict else step.tree == tree


def can_be_picked_by_path(commit: Commit) -> bool:
    """Return whether setting the commit's paths is an exact cherry-pick on a tree where they are as before the commit.

    This is the case if the commit only changes and deletes files. Adding a file, or changing its type, requires a
    merge: git may see an addition as half of a rename, or move the file with a folder that was renamed.
    """
    return bool(commit.changes) and all(change.status in ("M", "D") for change in commit.changes)


def pick_by_path(space: ObjectSpace, commit: Commit, ours: str) -> str | None:
    """Return the tree with the commit's paths as they are after it, or None if only a merge is exact."""
    if not can_be_picked_by_path(commit):
        return None
    entries: dict[str, TreeEntry | None] = {}
    for change in commit.changes:
        if space.entry(ours, change.path) != TreeEntry(change.old_mode, change.old_id):
            return None
        entries[change.path] = None if change.status == "D" else TreeEntry(change.new_mode, change.new_id)
    return space.with_entries(ours, entries)


def find_conflicts(
    space: ObjectSpace, pairs: Sequence[tuple[Commit, Commit]], *, if_first_fails: bool = False
) -> list[bool]:
    """Return for each pair whether its second commit conflicts if only the first one is picked onto its parent.

    `if_first_fails` is the result if the first commit already conflicts there. All merges are done at once, on trees
    with only the paths of the two commits.
    """
    flat = space.flat_tree
    paths = [first.paths | second.paths for first, second in pairs]
    begins = [flat(second.parent_tree, both) for (_, second), both in zip(pairs, paths, strict=True)]
    onto = space.merger.merge_many(
        [
            (flat(first.parent_tree, both), begin, flat(first.tree, both))
            for (first, _), both, begin in zip(pairs, paths, begins, strict=True)
        ]
    )
    clean = [place for place, merge in enumerate(onto) if merge.is_clean]
    then = space.merger.merge_many(
        [(begins[place], onto[place].tree, flat(pairs[place][1].tree, paths[place])) for place in clean]
    )
    found = [if_first_fails] * len(pairs)
    for place, merge in zip(clean, then, strict=True):
        found[place] = not merge.is_clean
    return found


class CommitBuilder:
    """Creates commits in an object space, each on top of the previous one."""

    def __init__(
        self,
        space: ObjectSpace,
        parent: str,
        *,
        is_signed: bool = False,
        on_commit: Callable[[int], object] = lambda count: None,
    ) -> None:
        """`on_commit` is called after each commit with the number of commits so far."""
        self._space = space
        self._is_signed = is_signed
        self._on_commit = on_commit
        self.tip = parent
        """The last commit."""
        self.count = 0

    def add(self, tree: str, message: str, *, like: Commit | None = None, author: Identity | None = None) -> str:
        """Create a commit and return its id. Author and date are those of `like`, or `author` and now."""
        if like is not None:
            author = Identity(like.author_name, like.author_email)
        self.tip = self._space.commit(
            tree,
            [self.tip],
            message.encode("utf-8", "replace"),
            author=author,
            authored=f"@{like.authored}" if like is not None else "",
            is_signed=self._is_signed,
        )
        self.count += 1
        self._on_commit(self.count)
        return self.tip
