"""Reads the diffs of many commits, bounded and with secrets masked; a missing commit is a note, not an error."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from swarm_tui.adapters.git import GitError, Repository, is_commit_id
from swarm_tui.adapters.git.history import DiffReader
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.errors import SwarmError
from swarm_tui.model.diff import visible
from swarm_tui.model.masking import mask_secrets

DIFF_SIZE_LIMIT: Final = 200_000


class CommitDiff(NamedTuple):
    """The diff of one commit; `note` explains why there is none, or that it was cut."""

    text: str
    note: str = ""


class CommitDiffs:
    """The diffs of commits of one repository, which may be missing: the sweep may come from another machine."""

    def __init__(self, repository: Path) -> None:
        self.problem = ""
        self._repository: Repository | None = None
        self._space: ObjectSpace | None = None
        self._reader: DiffReader | None = None
        self._known: dict[str, CommitDiff] = {}
        try:
            self._repository = Repository.open(repository)
            self._space = ObjectSpace(self._repository)
            self._reader = DiffReader(self._space)
        except (SwarmError, OSError) as error:
            self.problem = f"no diffs: the repository cannot be opened ({error})"

    def diff(self, commit: str) -> CommitDiff:
        """Return what a commit changes against its first parent."""
        if not is_commit_id(commit):
            return CommitDiff("", "no commit is known")
        if self._space is None or self._reader is None:
            return CommitDiff("", "the repository is not on this machine")
        if commit not in self._known:
            self._known[commit] = self._read(self._space, self._reader, commit)
        return self._known[commit]

    def _read(self, space: ObjectSpace, reader: DiffReader, commit: str) -> CommitDiff:
        try:
            new, parent = _tree_and_parent(space, commit)
            old = _tree_and_parent(space, parent)[0] if parent else space.write("tree", b"")
            raw, is_truncated = reader.raw_diff(old, new)
        except GitError:
            return CommitDiff("", f"commit {commit[:10]} is not in the repository")
        is_cut = is_truncated or len(raw) > DIFF_SIZE_LIMIT
        text = visible(raw[:DIFF_SIZE_LIMIT].decode("utf-8", "replace"))
        if is_cut:
            text = text[: text.rfind("\n") + 1]
        return CommitDiff(mask_secrets(text), "only the beginning: the diff is too large" if is_cut else "")

    def close(self) -> None:
        for part in (self._reader, self._space, self._repository):
            if part is not None:
                part.close()


def _tree_and_parent(space: ObjectSpace, commit: str) -> tuple[str, str]:
    kind, content = space.read(commit)
    if kind != "commit":
        raise GitError(f"{commit[:12]} is no commit")
    tree = parent = ""
    for line in content.split(b"\n\n", 1)[0].split(b"\n"):
        word, _, value = line.partition(b" ")
        if word == b"tree":
            tree = value.decode("ascii", "replace")
        elif word == b"parent" and not parent:
            parent = value.decode("ascii", "replace")
    return tree, parent
