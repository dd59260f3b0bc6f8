"""Reads the commits of the agents' branches from git."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypedDict

from swarm_tui.adapters.git import GitError, Identity, NoSpaceForGit, Repository, fetch_bundle
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.agents.integrator.classify import Classification, classify_commit
from swarm_tui.agents.integrator.inputs import BranchInput, IntegratorInputs
from swarm_tui.errors import SwarmError
from swarm_tui.model.text import plain

LINES_LIMIT: Final = 20_000
FILES_LIMIT: Final = 1_000
_LOG_OPTIONS: Final = ("--first-parent", "--reverse", "--date=raw", "--encoding=UTF-8", "--no-show-signature")
_FORMAT: Final = "%H%x00%T%x00%P%x00%an%x00%ae%x00%ad%x00%B%x00%x01"


@dataclass(frozen=True, slots=True)
class AgentCommit:
    """One commit of one agent."""

    source: BranchInput
    commit: str
    tree: str
    parent_tree: str
    author: Identity
    authored: str
    """As git writes it: seconds and zone, such as "1763445120 +0100"."""
    message: str
    classification: Classification
    paths: tuple[str, ...]
    lines: int
    patch_id: str
    patch: str
    place: int = 0
    """Its number among the commits of its branch."""

    @property
    def subject(self) -> str:
        return plain(self.message.split("\n", 1)[0], 200)


class UnusableBranch(SwarmError):
    """A branch cannot be integrated; the message is the reason that is shown for it."""


def read_branch(repository: Repository, source: BranchInput, inputs: IntegratorInputs) -> list[AgentCommit]:
    """Return the commits of a branch, oldest first, each against its first parent; a merge counts as one change.

    What came of a fix that was sent back is one fix with it.
    """
    tip = _find_tip(repository, source)
    if not repository.is_ancestor(inputs.base, tip):
        raise UnusableBranch("the branch was rewritten: it does not build on the commit that the sweep began with")
    listed = repository.run("log", *_LOG_OPTIONS, f"--format={_FORMAT}", f"{inputs.base}..{tip}", "--")
    entries = listed.stdout.decode("utf-8", "replace").split("\x00\x01")[:-1]
    test_files = {test.file for test in inputs.tests if test.file}
    read = (
        _read_commit(repository, source, place, entry.lstrip("\n"), test_files, inputs.tutorial)
        for place, entry in enumerate(entries)
    )
    commits = [commit for commit in read if commit is not None]
    names = [entry.lstrip("\n").partition("\x00")[0] for entry in entries]
    if source.revised_after not in names:
        return commits
    return _with_revisions_folded(repository, commits, first_new=names.index(source.revised_after) + 1)


def _with_revisions_folded(
    repository: Repository, commits: Sequence[AgentCommit], *, first_new: int
) -> list[AgentCommit]:
    """Return the commits with the fixes among the new ones put into the last fix before them, as far as they fit."""
    old = next((each for each in reversed(commits) if each.place < first_new and each.classification.is_fix), None)
    if old is None:
        return list(commits)
    folded, gone = old, {old.commit}
    with ObjectSpace(repository) as space:
        for new in (each for each in commits if each.place >= first_new and each.classification.is_fix):
            merge = space.merge(base=new.parent_tree, ours=folded.tree, theirs=new.tree)
            if merge.is_clean:
                space.copy_to_repository(space.synthetic_commit(merge.tree), known=[new.commit])
                # The newer one is its author's last word.
                change = _change_between(repository, new.commit, folded.parent_tree, merge.tree)
                folded = replace(new, parent_tree=folded.parent_tree, tree=merge.tree, place=old.place, **change)
                gone.add(new.commit)
    rest = [each for each in commits if each.commit not in gone]
    return sorted([*rest, *([folded] if folded.tree != folded.parent_tree else [])], key=lambda each: each.place)


def _find_tip(repository: Repository, source: BranchInput) -> str:
    tip = repository.find(source.tip) if source.tip else None
    if tip is None and source.bundle and Path(source.bundle).is_file():
        try:
            into = f"refs/swarm-bundles/{source.branch}"
            tip = fetch_bundle(repository, Path(source.bundle), branch=source.branch, into=into)
        except NoSpaceForGit:
            raise
        except SwarmError as error:
            raise UnusableBranch(
                f"its commits are gone, and its bundle is no help: {plain(error.message, 200)}"
            ) from error
        if source.tip and tip != source.tip:
            raise UnusableBranch("its bundle holds another commit than the one that was harvested")
    if tip is None:
        raise UnusableBranch("its commits are gone: neither the repository nor a bundle has them")
    return tip


def _read_commit(
    repository: Repository, source: BranchInput, place: int, entry: str, test_files: Collection[str], tutorial: str
) -> AgentCommit | None:
    commit, tree, parents, name, email, date, message = entry.split("\x00")[:7]
    parent = parents.split(" ")[0]
    parent_tree = repository.tree_of(parent)
    if parent_tree == tree:
        return None
    change = _change_between(repository, commit, parent_tree, tree)
    return AgentCommit(
        source=source,
        commit=commit,
        tree=tree,
        parent_tree=parent_tree,
        author=Identity(plain(name, 100) or "unknown", plain(email, 200)),
        authored=date,
        message=message.strip() or "(no message)",
        classification=classify_commit(message, change["paths"], test_files=test_files, tutorial=tutorial),
        place=place,
        **change,
    )


class _Change(TypedDict):
    """What a commit changes, as `AgentCommit` holds it."""

    paths: tuple[str, ...]
    lines: int
    patch_id: str
    patch: str


def _change_between(repository: Repository, commit: str, parent_tree: str, tree: str) -> _Change:
    paths, lines = _changed_paths_and_lines(repository, parent_tree, tree)
    if len(paths) > FILES_LIMIT or lines > LINES_LIMIT:
        raise UnusableBranch(f"commit {commit[:8]} changes {lines:,} lines in {len(paths):,} files: too much to review")
    patch = repository.run("diff-tree", "-p", "-r", "--no-renames", "--full-index", parent_tree, tree).stdout
    identified = repository.run("patch-id", "--stable", stdin=patch).text.split(" ")[0]
    # A patch of empty or binary files may have no id; then only the very same trees are the same.
    patch_id = identified or f"{parent_tree}-{tree}"
    return _Change(paths=paths, lines=lines, patch_id=patch_id, patch=patch.decode("utf-8", "replace"))


def _changed_paths_and_lines(repository: Repository, old: str, new: str) -> tuple[tuple[str, ...], int]:
    fields = repository.run("diff-tree", "--numstat", "-r", "-z", "--no-renames", old, new).fields
    rows = [field.split("\t", 2) for field in fields]
    lines = sum(int(number) for row in rows for number in row[:2] if number.isdigit())
    return tuple(row[2] for row in rows), lines


def read_branches(repository: Repository, inputs: IntegratorInputs) -> tuple[list[AgentCommit], dict[str, str]]:
    """Return the commits of all branches, and for each branch that cannot be used the reason."""
    commits: list[AgentCommit] = []
    refused: dict[str, str] = {}
    claimed_twice = {
        branch for branch, count in Counter(source.branch for source in inputs.branches).items() if count > 1
    }
    for source in inputs.branches:
        try:
            if source.branch in claimed_twice:
                raise UnusableBranch("two agents claim this branch")
            found = read_branch(repository, source, inputs)
            if not found:
                raise UnusableBranch("it holds no commit that changes anything")
        except UnusableBranch as error:
            refused[source.branch] = error.message
        except NoSpaceForGit:
            # The fault is not the branch's: the whole integration is to be repeated.
            raise
        except GitError as error:
            refused[source.branch] = plain(str(error), 300)
        else:
            commits += found
    return commits, refused
