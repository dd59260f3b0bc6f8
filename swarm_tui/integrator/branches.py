"""Read agents' branches."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from swarm_tui.adapters.git import GitError, Identity, Repository, fetch_bundle
from swarm_tui.adapters.git.history import EVERY_SUBMODULE
from swarm_tui.adapters.git.names import is_commit_id
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.errors import ResourceShortage, SwarmError
from swarm_tui.integrator.inputs import BranchInput, IntegratorInputs
from swarm_tui.model.commits import is_test_or_doc
from swarm_tui.model.pulled import ChangeKind, kinds_of
from swarm_tui.model.text import plain


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
_LOG_OPTIONS: Final = ("--date=raw", "--encoding=UTF-8", "--no-show-signature", "--no-notes", "--no-mailmap")
_FORMAT: Final = "%H%x00%T%x00%P%x00%an%x00%ae%x00%ad%x00%B%x00%x01"
_PAIR: Final = re.compile(r"[0-9a-f]{40,64} [0-9a-f]{40,64}(?:\n|$)")
_PAIR_LINE: Final = re.compile(rb"\n([0-9a-f]{40,64}) ([0-9a-f]{40,64})(?=\n|$)")


@dataclass(frozen=True, slots=True)
class AgentCommit:
    """One commit of one agent."""

    source: BranchInput
    commit: str
    tree: str
    parent_tree: str
    author: Identity
    authored: str
    """As git writes it: seconds and time zone, such as "1763445120 +0100"."""
    message: str
    classification: Classification
    paths: tuple[str, ...]
    lines: int
    patch_id: str
    patch: str
    place: int = 0
    """Its position on its branch."""

    @property
    def subject(self) -> str:
        return plain(self.message.split("\n", 1)[0], 200)


class _LogRow(NamedTuple):
    """A commit in the output of `git log`."""

    commit: str
    tree: str
    parent: str
    author: str
    email: str
    authored: str
    message: str

    @classmethod
    def of(cls, fields: Sequence[str]) -> _LogRow:
        commit, tree, parents, *rest = fields[:7]
        return cls(commit, tree, parents.split(" ")[0], *rest)


class _Size(NamedTuple):
    """The files that a commit changes, and the number of changed lines."""

    paths: tuple[str, ...]
    lines: int

    @property
    def is_too_large(self) -> bool:
        return len(self.paths) > FILES_LIMIT or self.lines > LINES_LIMIT


class _Changes(NamedTuple):
    """The changes of a commit."""

    parent_tree: str
    size: _Size
    patch_id: str
    patch: str


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
    rows = _read_log(repository, inputs.base, tips.values())
    lines = {branch: _line_of(rows, tip) for branch, tip in tips.items()}
    for branch, line in lines.items():
        # `is_ancestor` starts a process, and is needed only after a merge: otherwise the first commit follows the base.
        if (not line or line[0].parent != inputs.base) and not repository.is_ancestor(inputs.base, tips[branch]):
            found[branch] = UnusableBranch(
                "the branch was rewritten: it is not based on the commit that the sweep started from"
            )
        elif len(line) > COMMITS_LIMIT:
            found[branch] = UnusableBranch(f"it has {len(line):,} commits; the limit is {COMMITS_LIMIT}")
    usable = {branch: line for branch, line in lines.items() if branch not in found}
    changes = _read_changes(repository, [row for line in usable.values() for row in line])
    test_files = {test.file for test in inputs.tests if test.file}
    for source in sources:
        if source.branch in usable:
            try:
                line = usable[source.branch]
                commits = [
                    _commit_of(source, place, row, changes[row.commit], test_files, inputs.tutorial)
                    for place, row in enumerate(line)
                    if row.commit in changes
                ]
                first_new = next((place + 1 for place, row in enumerate(line) if row.commit == source.revised_after), 0)
                found[source.branch] = _with_revisions_folded(repository, commits, first_new) if first_new else commits
            except UnusableBranch as error:
                found[source.branch] = error
    return found


def _with_revisions_folded(repository: Repository, commits: Sequence[AgentCommit], first_new: int) -> list[AgentCommit]:
    """Return the commits with each new fix folded into the previous fix, if it applies there."""
    old = next((each for each in reversed(commits) if each.place < first_new and each.classification.is_fix), None)
    if old is None:
        return list(commits)
    folded, gone = old, {old.commit}
    with ObjectSpace(repository) as space:
        for new in (each for each in commits if each.place >= first_new and each.classification.is_fix):
            merge = space.merge(base=new.parent_tree, ours=folded.tree, theirs=new.tree)
            if merge.is_clean:
                space.copy_to_repository(space.synthetic_commit(merge.tree), known=[new.commit])
                # The newer message replaces the older one.
                folded = _with_trees(repository, new, folded.parent_tree, merge.tree, place=old.place)
                gone.add(new.commit)
    rest = [each for each in commits if each.commit not in gone]
    return sorted([*rest, *([folded] if folded.tree != folded.parent_tree else [])], key=lambda each: each.place)


def _with_trees(repository: Repository, commit: AgentCommit, before: str, after: str, *, place: int) -> AgentCommit:
    """Return a commit that changes one tree into another one, with the message and author of `commit`."""
    changed = replace(commit, parent_tree=before, tree=after, place=place)
    if before == after:
        return changed
    pair = (before, after)
    size = _read_sizes(repository, [pair])[pair]
    if size.is_too_large:
        raise _too_large(commit.commit, size)
    identity, patch = read_patches(repository, [pair])[pair]
    return replace(changed, paths=size.paths, lines=size.lines, patch_id=identity or f"{before}-{after}", patch=patch)


def _present(repository: Repository, names: Iterable[str]) -> frozenset[str]:
    """Return the names of these commits that exist in the repository."""
    commit_ids = [name for name in dict.fromkeys(names) if is_commit_id(name)]
    if not commit_ids:
        return frozenset()
    query = "".join(f"{name}\n" for name in commit_ids).encode()
    answer = repository.run("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=query)
    pairs = (line.split(" ") for line in answer.text.splitlines())
    return frozenset(pair[0] for pair in pairs if pair[1:] == ["commit"])


def _read_log(repository: Repository, base: str, tips: Iterable[str]) -> dict[str, _LogRow]:
    revisions = "".join(f"{name}\n" for name in (f"^{base}", *dict.fromkeys(tips))).encode()
    listed = repository.run("log", "--stdin", *_LOG_OPTIONS, f"--format={_FORMAT}", stdin=revisions, timeout=600)
    entries = listed.stdout.decode("utf-8", "replace").split("\x00\x01")[:-1]
    rows = (_LogRow.of(entry.lstrip("\n").split("\x00")) for entry in entries)
    return {row.commit: row for row in rows}


def _line_of(rows: Mapping[str, _LogRow], tip: str) -> list[_LogRow]:
    """Return the commits from a tip back to the base along first parents, oldest first."""
    line: list[_LogRow] = []
    while tip in rows:
        line.append(rows[tip])
        tip = rows[tip].parent
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


def _read_changes(repository: Repository, rows: Sequence[_LogRow]) -> dict[str, _Changes]:
    """Return the changes of each commit compared with its first parent, without commits that change nothing."""
    trees = dict(zip(*_parent_trees(repository, rows), strict=True))
    pairs = {row.commit: (trees[row.parent], row.tree) for row in rows if trees[row.parent] != row.tree}
    sizes = _read_sizes(repository, dict.fromkeys(pairs.values()))
    small = [pair for pair, size in sizes.items() if not size.is_too_large]
    patches = read_patches(repository, small)
    return {commit: _Changes(pair[0], sizes[pair], *patches.get(pair, ("", ""))) for commit, pair in pairs.items()}


def _parent_trees(repository: Repository, rows: Sequence[_LogRow]) -> tuple[list[str], list[str]]:
    parents = list(dict.fromkeys(row.parent for row in rows))
    query = "".join(f"{parent}^{{tree}}\n" for parent in parents).encode()
    answer = repository.run("cat-file", "--batch-check=%(objectname)", stdin=query) if parents else None
    return parents, answer.text.splitlines() if answer else []


def _read_sizes(repository: Repository, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], _Size]:
    """Return the files and lines that differ between two trees."""
    query = "".join(f"{old} {new}\n" for old, new in pairs).encode()
    options = ("--stdin", "--numstat", "-r", "-z", "--no-renames", EVERY_SUBMODULE)
    found: dict[tuple[str, str], _Size] = {}
    paths: list[str] = []
    lines = 0
    pair = ("", "")
    for field in (*repository.run("diff-tree", *options, stdin=query, timeout=600).fields, ""):
        heading, _, row = field.partition("\n") if _PAIR.match(field) else ("", "", field)
        if heading or not field:
            found[pair] = _Size(tuple(paths), lines)
            paths, lines = [], 0
            old, _, new = heading.partition(" ")
            pair = (old, new)
        if row:
            added, removed, path = row.split("\t", 2)
            lines += sum(int(number) for number in (added, removed) if number.isdigit())
            paths.append(path)
    found.pop(("", ""), None)
    return found


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


def _too_large(commit: str, size: _Size) -> UnusableBranch:
    return UnusableBranch(
        f"commit {commit[:8]} changes {size.lines:,} lines in {len(size.paths):,} files: too much to review"
    )


def _is_too_long(path: str) -> bool:
    name = os.fsencode(path)
    return len(name) > PATH_LIMIT or any(len(part) > NAME_LIMIT for part in name.split(b"/"))


def _commit_of(
    source: BranchInput, place: int, row: _LogRow, changes: _Changes, test_files: Collection[str], tutorial: str
) -> AgentCommit:
    size = changes.size
    if size.is_too_large:
        raise _too_large(row.commit, size)
    if any(map(_is_too_long, size.paths)):
        raise UnusableBranch(f"commit {row.commit[:8]} contains a file name that is too long to check out")
    return AgentCommit(
        source=source,
        commit=row.commit,
        tree=row.tree,
        parent_tree=changes.parent_tree,
        author=Identity(plain(row.author, 100) or "unknown", plain(row.email, 200)),
        authored=row.authored,
        message=row.message.strip() or "(no message)",
        classification=classify_commit(row.message, size.paths, test_files=test_files, tutorial=tutorial),
        paths=size.paths,
        lines=size.lines,
        # The patch of an empty or binary file may have no id. Then only identical trees are identical.
        patch_id=changes.patch_id or f"{changes.parent_tree}-{row.tree}",
        patch=changes.patch,
        place=place,
    )


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
