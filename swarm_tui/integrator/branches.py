"""Read agents' branches."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git import GitError, Identity, Repository, fetch_bundle
from swarm_tui.adapters.git.history import EVERY_SUBMODULE, log_rows, read_changes, read_tree_changes
from swarm_tui.adapters.git.names import is_commit_id
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.errors import ResourceShortage, SwarmError
from swarm_tui.integrator.inputs import BranchInput, IntegratorInputs
from swarm_tui.model.commits import Commit, FileChange, is_test_or_doc
from swarm_tui.model.pulled import ChangeKind, kinds_of
from swarm_tui.model.text import plain
from swarm_tui.review.picking import pick


@dataclass(frozen=True, slots=True)
class Classification:
    """Whether a commit is a fix. The note describes a problem with its declared kind; "" if there is none."""

    is_fix: bool
    note: str = ""


def classify_commit(
    message: str, paths: Iterable[str], *, test_files: Collection[str] = (), tutorial: str = ""
) -> Classification:
    """Classify a commit by the kinds in its message and by the files that it changes."""
    kinds = kinds_of(message)
    code = [path for path in paths if not is_test_or_doc(path, test_files, tutorial)]
    if kinds == (ChangeKind.FIX_IMPL,):
        return Classification(is_fix=True)
    if len(kinds) == 1 and not code:
        return Classification(is_fix=False)
    named = " and ".join(kind.value for kind in kinds)
    if ChangeKind.FIX_IMPL in kinds or code:
        changed = f"changes {plain(code[0], 100)}" if code else "mixes kinds"
        problem = f"declares {named} but {changed}" if kinds else f"declares no kind and {changed}"
        return Classification(is_fix=True, note=f"{problem}: kept as a separate fix")
    problem = f"mixes {named}" if kinds else "declares no kind"
    return Classification(is_fix=False, note=f"{problem}, and changes only tests and docs: squashed")


LINES_LIMIT: Final = 20_000
FILES_LIMIT: Final = 1_000
COMMITS_LIMIT: Final = 200
PATH_LIMIT: Final = 1_024
NAME_LIMIT: Final = 255
"""Bytes in a file name. git can commit longer names, but no file system can check them out."""
_PAIR_LINE: Final = re.compile(rb"\n([0-9a-f]{40,64}) ([0-9a-f]{40,64})(?=\n|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCommit(Commit):
    """One commit of one agent."""

    source: BranchInput
    classification: Classification
    patch_id: str = ""
    patch: str = ""
    place: int = 0
    """Its position on its branch."""

    @property
    def subject(self) -> str:
        return plain(self.message.partition("\n")[0], 200)

    @property
    def author(self) -> Identity:
        return Identity(self.author_name, self.author_email)

    @property
    def lines(self) -> int:
        return count_lines(self.changes)


def count_lines(changes: Iterable[FileChange]) -> int:
    return sum((change.added or 0) + (change.removed or 0) for change in changes)


class UnusableBranch(SwarmError):
    """A branch cannot be integrated; the message is the reason that the user sees."""


def read_branch(repository: Repository, source: BranchInput, inputs: IntegratorInputs) -> list[AgentCommit]:
    """Return the commits of a branch, oldest first, each compared with its first parent. A merge counts as one change.

    A fix that was sent back and its revisions are combined into one fix.
    """
    (found,) = _read_all(repository, [source], inputs).values()
    if isinstance(found, UnusableBranch):
        raise found
    return found


def _read_all(
    repository: Repository, sources: Sequence[BranchInput], inputs: IntegratorInputs
) -> dict[str, list[AgentCommit] | UnusableBranch]:
    """Return the commits of each branch, or why it is unusable. Uses few git processes for all branches together."""
    found: dict[str, list[AgentCommit] | UnusableBranch] = {}
    tips: dict[str, str] = {}
    present = _present(repository, [source.tip for source in sources])
    for source in sources:
        try:
            tips[source.branch] = source.tip if source.tip in present else _find_tip(repository, source)
        except UnusableBranch as error:
            found[source.branch] = error
    rows = {row[0]: row for row in log_rows(repository, [f"^{inputs.base}", *dict.fromkeys(tips.values())])}
    lines = {branch: _line_of(rows, tip) for branch, tip in tips.items()}
    for branch, line in lines.items():
        # `is_ancestor` starts a process, and is needed only after a merge: otherwise the first commit follows the base.
        first_parent = _parent(line[0]) if line else inputs.base
        if first_parent != inputs.base and not (first_parent and repository.is_ancestor(inputs.base, tips[branch])):
            found[branch] = UnusableBranch(
                "the branch was rewritten: it is not based on the commit that the sweep started from"
            )
        elif len(line) > COMMITS_LIMIT:
            found[branch] = UnusableBranch(f"it has {len(line):,} commits; the limit is {COMMITS_LIMIT}")
    usable = {branch: line for branch, line in lines.items() if branch not in found}
    reader = _CommitReader(repository, inputs, [row for line in usable.values() for row in line])
    for source in sources:
        if source.branch in usable:
            try:
                line = usable[source.branch]
                commits = [
                    reader.commit(source, place, row) for place, row in enumerate(line) if reader.changes.get(row[0])
                ]
                first_new = next((place + 1 for place, row in enumerate(line) if row[0] == source.revised_after), 0)
                found[source.branch] = _with_revisions_folded(repository, commits, first_new) if first_new else commits
            except UnusableBranch as error:
                found[source.branch] = error
    return found


class _CommitReader:
    """Reads the changes of many commits at once, each compared with its first parent."""

    def __init__(self, repository: Repository, inputs: IntegratorInputs, rows: Sequence[Sequence[str]]) -> None:
        self._inputs = inputs
        self._test_files = {test.file for test in inputs.tests if test.file}
        self._parent_trees = _trees_of(repository, dict.fromkeys(map(_parent, rows)))
        self.changes = read_changes(repository, list(dict.fromkeys(f"{row[0]} {_parent(row)}" for row in rows)))
        pairs = ((self._parent_trees[_parent(row)], row[2]) for row in rows if not self._problem(row[0]))
        self._patches = read_patches(repository, list(dict.fromkeys(pairs)))

    def _problem(self, name: str) -> str:
        return why_too_large(self.changes.get(name, ()))

    def commit(self, source: BranchInput, place: int, row: Sequence[str]) -> AgentCommit:
        """Return a commit. Raise UnusableBranch if it is too large, or cannot be checked out."""
        name, _, tree, author, address, authored, message = row
        changes = tuple(self.changes[name])
        if problem := self._problem(name):
            raise UnusableBranch(f"commit {name[:8]} {problem}")
        paths = [change.path for change in changes]
        if any(map(_is_too_long, paths)):
            raise UnusableBranch(f"commit {name[:8]} contains a file name that is too long to check out")
        parent_tree = self._parent_trees[_parent(row)]
        patch_id, patch = self._patches.get((parent_tree, tree), ("", ""))
        tutorial = self._inputs.tutorial
        return AgentCommit(
            source=source,
            id=name,
            parent=_parent(row),
            tree=tree,
            parent_tree=parent_tree,
            author_name=plain(author, 100) or "unknown",
            author_email=plain(address, 200),
            authored=authored,
            message=message.strip() or "(no message)",
            changes=changes,
            classification=classify_commit(message, paths, test_files=self._test_files, tutorial=tutorial),
            # The patch of an empty or binary file may have no id. Then only identical trees are identical.
            patch_id=patch_id or f"{parent_tree}-{tree}",
            patch=patch,
            place=place,
        )


def _parent(row: Sequence[str]) -> str:
    """Return the first parent of a commit in the log; "" for a root commit."""
    return row[1].partition(" ")[0]


def why_too_large(changes: Sequence[FileChange]) -> str:
    """Return why a commit with these changes cannot be reviewed, or ""."""
    lines = count_lines(changes)
    is_too_large = len(changes) > FILES_LIMIT or lines > LINES_LIMIT
    return f"changes {lines:,} lines in {len(changes):,} files: too much to review" if is_too_large else ""


def _with_revisions_folded(repository: Repository, commits: Sequence[AgentCommit], first_new: int) -> list[AgentCommit]:
    """Return the commits with each new fix folded into the previous fix, if it applies there."""
    old = next((each for each in reversed(commits) if each.place < first_new and each.classification.is_fix), None)
    if old is None:
        return list(commits)
    folded, gone = old, {old.id}
    with ObjectSpace(repository) as space:
        for new in (each for each in commits if each.place >= first_new and each.classification.is_fix):
            step = pick(space, new, folded.tree)
            if not step.is_conflict:
                space.copy_to_repository(space.synthetic_commit(step.tree), known=[new.id])
                # The newer message replaces the older one.
                folded = _with_trees(repository, new, folded.parent_tree, step.tree, place=old.place)
                gone.add(new.id)
    rest = [each for each in commits if each.id not in gone]
    return sorted([*rest, *([folded] if folded.tree != folded.parent_tree else [])], key=lambda each: each.place)


def _with_trees(repository: Repository, commit: AgentCommit, before: str, after: str, *, place: int) -> AgentCommit:
    """Return a commit that changes one tree into another one, with the message and author of `commit`."""
    changes = tuple(read_tree_changes(repository, before, after))
    changed = replace(commit, parent_tree=before, tree=after, changes=changes, place=place)
    if not changes:
        return changed
    if problem := why_too_large(changes):
        raise UnusableBranch(f"commit {commit.id[:8]} {problem}")
    identity, patch = read_patches(repository, [(before, after)])[before, after]
    return replace(changed, patch_id=identity or f"{before}-{after}", patch=patch)


def _present(repository: Repository, names: Iterable[str]) -> frozenset[str]:
    """Return the names of these commits that exist in the repository."""
    commit_ids = [name for name in dict.fromkeys(names) if is_commit_id(name)]
    if not commit_ids:
        return frozenset()
    query = "".join(f"{name}\n" for name in commit_ids).encode()
    answer = repository.run("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=query)
    pairs = (line.split(" ") for line in answer.text.splitlines())
    return frozenset(pair[0] for pair in pairs if pair[1:] == ["commit"])


def _line_of(rows: Mapping[str, Sequence[str]], tip: str) -> list[Sequence[str]]:
    """Return the commits from a tip back to the base along first parents, oldest first."""
    line: list[Sequence[str]] = []
    while tip in rows:
        line.append(rows[tip])
        tip = _parent(rows[tip])
    return line[::-1]


def _find_tip(repository: Repository, source: BranchInput) -> str:
    tip = repository.find(source.tip) if source.tip else None
    if tip is None and source.bundle and Path(source.bundle).is_file():
        try:
            into = f"refs/swarm-bundles/{source.branch}"
            tip = fetch_bundle(repository, Path(source.bundle), branch=source.branch, into=into)
        except ResourceShortage:
            raise
        except SwarmError as error:
            raise UnusableBranch(
                f"its commits are missing, and its bundle is unusable: {plain(error.message, 200)}"
            ) from error
        if source.tip and tip != source.tip:
            raise UnusableBranch("its bundle contains another commit than the one that was pulled")
    if tip is None:
        raise UnusableBranch("its commits are missing from the repository and from its bundle")
    return tip


def _trees_of(repository: Repository, commits: Iterable[str]) -> dict[str, str]:
    names = list(commits)
    query = "".join(f"{name}^{{tree}}\n" for name in names).encode()
    answer = repository.run("cat-file", "--batch-check=%(objectname)", stdin=query) if names else None
    return dict(zip(names, answer.text.splitlines() if answer else (), strict=True))


def read_patches(repository: Repository, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, str]]:
    """Return the id and the text of the patch between two trees."""
    query = "".join(f"{old} {new}\n" for old, new in pairs).encode()
    options = ("--stdin", "-p", "-r", "--no-renames", "--full-index", EVERY_SUBMODULE)
    raw = repository.run("diff-tree", *options, stdin=query, timeout=600)
    # No line of a patch begins with an id, because content lines begin with "+", "-" or a space.
    parts = _PAIR_LINE.split(b"\n" + raw.stdout)[1:]
    patches = {
        (old.decode(), new.decode()): patch.removeprefix(b"\n")
        for old, new, patch in zip(*[iter(parts)] * 3, strict=True)
    }
    named = {f"{number:040x}": pair for number, pair in enumerate(patches)}
    stream = b"".join(b"commit %s\n%s\n" % (name.encode(), patches[pair]) for name, pair in named.items())
    identified = repository.run("patch-id", "--stable", stdin=stream, timeout=600).text.splitlines()
    ids = {named[name]: identity for identity, _, name in (line.partition(" ") for line in identified)}
    return {pair: (ids.get(pair, ""), patch.decode("utf-8", "replace")) for pair, patch in patches.items()}


def _is_too_long(path: str) -> bool:
    name = os.fsencode(path)
    return len(name) > PATH_LIMIT or any(len(part) > NAME_LIMIT for part in name.split(b"/"))


def read_branches(repository: Repository, inputs: IntegratorInputs) -> tuple[list[AgentCommit], dict[str, str]]:
    """Return the commits of all branches, and the reason for each unusable branch."""
    commits: list[AgentCommit] = []
    refused: dict[str, str] = {}
    claimed_twice = {
        branch for branch, count in Counter(source.branch for source in inputs.branches).items() if count > 1
    }
    unique = [source for source in inputs.branches if source.branch not in claimed_twice]
    found: dict[str, list[AgentCommit] | UnusableBranch] = {}
    for several in (unique, *([source] for source in unique)):
        try:
            found |= _read_all(repository, [source for source in several if source.branch not in found], inputs)
        except ResourceShortage:
            # The branch is not the cause: the whole integration has to be repeated.
            raise
        except GitError as error:
            # One of them is broken. Read each one separately to find it.
            if several is not unique:
                refused[several[0].branch] = plain(str(error), 300)
    for source in inputs.branches:
        if source.branch in claimed_twice:
            refused[source.branch] = "two agents claim this branch"
        read = found.get(source.branch)
        if isinstance(read, UnusableBranch):
            refused[source.branch] = read.message
        elif read == []:
            refused[source.branch] = "it has no commit that changes anything"
        else:
            commits += read or []
    return commits, refused
