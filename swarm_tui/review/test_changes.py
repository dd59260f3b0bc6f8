"""Reads the agents' commits behind an integrated branch: its test changes, and the fixes that were left out.

The commit of test and doc fixes is split into one test change for each agent or, if that fails, for each hunk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, ValidationError

from swarm_tui.adapters.git import GitError, Repository
from swarm_tui.adapters.git.history import DiffReader, read_changes, read_commits
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.errors import SwarmError
from swarm_tui.model.commit_messages import TestWork
from swarm_tui.model.commits import FIX_PREFIX, Commit
from swarm_tui.model.pulled import without_marks
from swarm_tui.model.report import IntegratorReport, LeftOut
from swarm_tui.model.text import plain
from swarm_tui.review.changes import AgentBranch, Change, IntegratedBranch, Kind, TestChanges
from swarm_tui.review.hunks import CommitHunks
from swarm_tui.review.picking import pick_all
from swarm_tui.review.verdicts import PART_PREFIX

_LINE_LIMIT: Final = 300
_COMMITS_LIMIT: Final = 5_000


class _SquashedCommit(BaseModel):
    """One entry about the commit of test and doc fixes in an integrator's report."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    branch: Annotated[str, AfterValidator(lambda name: plain(name, 200))]
    commit: str


_SQUASHED = TypeAdapter(tuple[_SquashedCommit, ...])


@dataclass(slots=True)
class _AgentWork:
    """Consecutive commits of one agent."""

    branch: str
    commits: list[Commit]
    before: str = ""
    after: str = ""
    branches: list[str] = field(default_factory=list)

    def works(self, sources: Mapping[str, AgentBranch]) -> tuple[TestWork, ...]:
        source = _source_of(self.branch, sources)
        return tuple(
            TestWork(
                commit.message,
                source.agent,
                source.test,
                f"{commit.author_name} <{commit.author_email}>",
                source.is_weaker,
            )
            for commit in self.commits
        )


def _source_of(branch: str, sources: Mapping[str, AgentBranch]) -> AgentBranch:
    return sources.get(branch) or AgentBranch(branch, branch.rpartition("/")[2], "", "")


def read_test_changes(
    space: ObjectSpace,
    diffs: DiffReader,
    branch: IntegratedBranch,
    outcome: IntegratorReport,
    sources: Sequence[AgentBranch] = (),
) -> TestChanges:
    """Return the test changes in the commit of test and doc fixes; empty without such a commit."""
    squashed = next((commit for commit in branch.commits if commit.id == branch.squashed), None)
    if squashed is None:
        return TestChanges()
    by_branch = {source.branch: source for source in sources}
    named = _reported_commits(outcome) or _commits_of_branches(space.original, branch.base, outcome, by_branch)
    parts = _parts_of_commits(space, diffs, squashed, named, by_branch)
    return parts or _parts_of_hunks(space, CommitHunks.read(space, diffs, squashed), named, by_branch)


def _reported_commits(outcome: IntegratorReport) -> list[tuple[str, str]]:
    """Return branch and commit of all squashed commits that the integrator reported, in its order."""
    try:
        found = _SQUASHED.validate_python((outcome.model_extra or {}).get("squashed_commits") or ())
    except ValidationError:
        return []
    return [(entry.branch, entry.commit) for entry in found[:_COMMITS_LIMIT]]


def _commits_of_branches(
    repository: Repository, base: str, outcome: IntegratorReport, sources: Mapping[str, AgentBranch]
) -> list[tuple[str, str]]:
    """Return the commits of the squashed branches that are not fixes, in the order of a plain cherry-pick."""
    found = []
    for branch in outcome.squashed_branches[:_COMMITS_LIMIT]:
        tip = repository.find(sources[branch].tip) if branch in sources and sources[branch].tip else None
        if tip is None:
            continue
        listed = repository.run(
            "log", "-z", "--reverse", "--first-parent", "--no-merges", "--format=%H %s", f"{base}..{tip}", "--"
        )
        rows = (row.partition(" ") for row in listed.fields)
        found += [(branch, commit) for commit, _, subject in rows if not subject.lstrip().startswith(FIX_PREFIX)]
    return found


def _parts_of_commits(
    space: ObjectSpace,
    diffs: DiffReader,
    squashed: Commit,
    named: Sequence[tuple[str, str]],
    sources: Mapping[str, AgentBranch],
) -> TestChanges | None:
    """Return one test change for each agent, or None if cherry-picking them does not result in the same tree."""
    try:
        groups = _grouped(space, named)
    except GitError:
        # The agents' commits are missing, because `clean` has removed their refs.
        return None
    if not groups:
        return None
    parts: dict[str, _AgentWork] = {}
    works: dict[str, tuple[TestWork, ...]] = {}
    picks: list[Commit] = []
    tree = squashed.parent_tree
    for group in groups:
        group.before = tree
        keys = [diffs.content_key(commit.parent_tree, commit.tree) for commit in group.commits]
        owner = PART_PREFIX + hashlib.sha256("".join(keys).encode()).hexdigest()[:35]
        own = [replace(commit, id=owner) for commit in group.commits]
        steps = pick_all(space, own, tree)
        if any(step.is_conflict for step in steps):
            return None
        tree = group.after = steps[-1].tree
        picks += own
        # Identical work of several agents is one test change.
        parts.setdefault(owner, group).branches.append(group.branch)
        works[owner] = (*works.get(owner, ()), *group.works(sources))
    if tree != squashed.tree:
        return None
    parts_of_agents = [
        _part(number, owner, group, squashed, sources) for number, (owner, group) in enumerate(parts.items())
    ]
    return TestChanges(tuple(parts_of_agents), tuple(picks), works=works)


def _grouped(space: ObjectSpace, named: Sequence[tuple[str, str]]) -> list[_AgentWork]:
    """Read the commits; raise GitError if one is missing."""
    if not named:
        return []
    names = list(dict.fromkeys(commit for _, commit in named))
    heads = {name: read_commit(space, name) for name in names}
    changes = read_changes(space.original, names)
    found = {name: replace(head, changes=tuple(changes.get(name, ()))) for name, head in heads.items()}
    return [
        _AgentWork(branch, [found[name] for _, name in commits])
        for branch, commits in groupby(named, key=lambda entry: entry[0])
    ]


def read_commit(space: ObjectSpace, name: str) -> Commit:
    """Return a commit without its changes; raise GitError if it is missing."""
    fields, message = commit_fields(space, name)
    parent = fields.get("parent", "")
    parent_tree = commit_fields(space, parent)[0]["tree"] if parent else space.write("tree", b"")
    author, _, rest = fields.get("author", "").rpartition(" <")
    address, _, when = rest.partition("> ")
    return Commit(name, parent, fields["tree"], parent_tree, author, address, when, message)


def commit_fields(space: ObjectSpace, commit: str) -> tuple[dict[str, str], str]:
    kind, content = space.read(commit)
    if kind != "commit":
        raise GitError(f"{commit[:12]} is not a commit")
    head, _, message = content.decode("utf-8", "replace").partition("\n\n")
    fields: dict[str, str] = {}
    for line in head.split("\n"):
        word, _, value = line.partition(" ")
        fields.setdefault(word, value)
    return fields, message


def _is_known(space: ObjectSpace, commit: str) -> bool:
    try:
        return space.read(commit)[0] == "commit"
    except GitError:
        return False


def _part(number: int, owner: str, group: _AgentWork, squashed: Commit, sources: Mapping[str, AgentBranch]) -> Change:
    known_sources = [sources[branch] for branch in group.branches if branch in sources]
    changes = {change.path: change for commit in group.commits for change in commit.changes}
    commit = replace(
        group.commits[0],
        id=owner,
        parent=squashed.parent,
        tree=group.after,
        parent_tree=group.before,
        message="\n\n".join(commit.message for commit in group.commits),
        changes=tuple(changes.values()),
    )
    return Change(
        commit=commit,
        position=number,
        rank=0,
        title=plain(without_marks(commit.subject), _LINE_LIMIT) or "(no title)",
        branch=group.branches[0],
        branches=tuple(dict.fromkeys(group.branches)),
        agents=_named(known_sources, group.branches),
        tests=tuple(dict.fromkeys(plain(source.test, _LINE_LIMIT) for source in known_sources)),
        kind=Kind.TEST_CHANGE,
    )


def _named(sources: Iterable[AgentBranch], branches: Iterable[str]) -> tuple[str, ...]:
    agents = [plain(source.agent, 200) for source in sources]
    return tuple(dict.fromkeys(agents or [branch.rpartition("/")[2] for branch in branches]))


def _parts_of_hunks(
    space: ObjectSpace, squashed: CommitHunks, named: Sequence[tuple[str, str]], sources: Mapping[str, AgentBranch]
) -> TestChanges:
    """Return a test change for each hunk. Its authors are the agents that changed its file, as far as is known."""
    branches_of_path: dict[str, dict[str, None]] = {}
    known_commits = [commit for _, commit in named if _is_known(space, commit)]
    changes = read_changes(space.original, known_commits)
    for branch, name in named:
        for change in changes.get(name, ()):
            branches_of_path.setdefault(change.path, {})[branch] = None
    parts, picks = [], []
    for number, (hunk, before, after) in enumerate(squashed.step_by_step(space)):
        paths = (change.path for change in hunk.changes)
        branches = tuple(dict.fromkeys(name for path in paths for name in branches_of_path.get(path, ())))
        known_sources = [sources[branch] for branch in branches if branch in sources]
        owner = PART_PREFIX + hunk.key
        commit = replace(squashed.commit, id=owner, tree=after, parent_tree=before, changes=hunk.changes)
        # Its changes are those of the whole file, so that only a merge picks it exactly.
        picks.append(replace(commit, changes=()))
        parts.append(
            Change(
                commit=commit,
                position=number,
                rank=0,
                title=plain(hunk.title, _LINE_LIMIT),
                branch=branches[0] if branches else "",
                branches=branches,
                agents=_named(known_sources, branches),
                tests=tuple(dict.fromkeys(plain(source.test, _LINE_LIMIT) for source in known_sources)),
                kind=Kind.TEST_CHANGE,
            )
        )
    return TestChanges(tuple(parts), tuple(picks), are_hunks=True)


MOST_LEFT_OUT: Final = 50


def read_left_out(
    repository: Repository, branch: IntegratedBranch, outcome: IntegratorReport, sources: Mapping[str, AgentBranch]
) -> tuple[Change, ...]:
    """Return the fixes that the integrator left out, if their commits exist here.

    `sources` are the agents' branches by name.
    """
    found: dict[str, Change] = {}
    on_branch = {commit.id for commit in branch.commits}
    for left in outcome.failed:
        source = _source_of(left.branch, sources)
        for commit in _fix_commits(repository, branch.base, left.commit, source.tip):
            known = found.get(commit.id)
            if commit.id in on_branch or (known is None and len(found) >= MOST_LEFT_OUT):
                continue
            branches = tuple(dict.fromkeys((*(known.branches if known else ()), plain(left.branch, 200))))
            number = len(found) + 1 if known is None else known.rank - len(branch.fixes)
            found[commit.id] = Change(
                commit=commit,
                position=len(branch.commits) + number,
                rank=len(branch.fixes) + number,
                title=plain(commit.subject.removeprefix(FIX_PREFIX), 300).strip() or "(no title)",
                branch=branches[0],
                branches=branches,
                agents=tuple(dict.fromkeys((*(known.agents if known else ()), plain(source.agent, 200)))),
                tests=tuple(dict.fromkeys((*(known.tests if known else ()), *((source.test,) if source.test else ())))),
                kind=Kind.LEFT_OUT,
            )
    return tuple(found.values())


def _fix_commits(repository: Repository, base: str, named: str, tip: str) -> Iterable[Commit]:
    """Return the commit with this name; without a name, the fixes of the branch."""
    last = repository.find(named or tip) if named or tip else None
    if last is None:
        return ()
    first = f"{last}^" if named else base
    try:
        commits = read_commits(repository, repository.resolve(first), last)
    except (GitError, SwarmError):
        return ()
    return tuple(commit for commit in commits if commit.subject.lstrip().startswith(FIX_PREFIX))


def is_taken(left: LeftOut, taken: Iterable[Change]) -> bool:
    """Return whether a left-out fix is among the fixes that the plan includes."""
    return any(fix.id == left.commit if left.commit else left.branch in fix.branches for fix in taken)
