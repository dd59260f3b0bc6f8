"""Splits the commit of test and doc fixes into test changes: one for each agent or, if that fails, for each hunk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, ValidationError

from swarm_tui.adapters.git import GitError, Repository
from swarm_tui.adapters.git.history import DiffReader, read_changes
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.model.commit_messages import TestWork
from swarm_tui.model.commits import FIX_PREFIX, Commit
from swarm_tui.model.fixes import PART_PREFIX
from swarm_tui.model.pulled import without_marks
from swarm_tui.model.report import IntegratorReport
from swarm_tui.model.text import plain
from swarm_tui.review.changes import Fix, IntegratedBranch, Pick, TestChanges
from swarm_tui.review.hunks import CommitHunks
from swarm_tui.review.rebuild import pick_all

_LINE_LIMIT: Final = 300
_COMMITS_LIMIT: Final = 5_000


@dataclass(frozen=True, slots=True)
class TestChangeSource:
    """One agent's branch in the sweep."""

    branch: str
    agent: str
    test: str
    tip: str
    is_weaker: bool = False
    """Whether the source of its test shows that it became weaker."""


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
    picks: list[Pick]
    messages: list[str]
    authors: list[tuple[str, str, str]]
    before: str = ""
    after: str = ""
    branches: list[str] = field(default_factory=list)

    def works(self, sources: Mapping[str, TestChangeSource]) -> tuple[TestWork, ...]:
        source = sources.get(self.branch) or TestChangeSource(self.branch, self.branch.rpartition("/")[2], "", "")
        authors = (f"{name} <{address}>" for name, address, _ in self.authors)
        return tuple(
            TestWork(message, source.agent, source.test, author, source.is_weaker)
            for message, author in zip(self.messages, authors, strict=True)
        )


def read_test_changes(
    space: ObjectSpace,
    diffs: DiffReader,
    branch: IntegratedBranch,
    outcome: IntegratorReport,
    sources: Sequence[TestChangeSource] = (),
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
    repository: Repository, base: str, outcome: IntegratorReport, sources: Mapping[str, TestChangeSource]
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
    sources: Mapping[str, TestChangeSource],
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
    picks: list[Pick] = []
    tree = squashed.parent_tree
    for group in groups:
        group.before = tree
        keys = [diffs.content_key(pick.before, pick.after) for pick in group.picks]
        owner = PART_PREFIX + hashlib.sha256("".join(keys).encode()).hexdigest()[:35]
        own = [replace(pick, owner=owner) for pick in group.picks]
        steps = pick_all(space, tree, own)
        if any(step.merge is not None for step in steps):
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
    found = {commit: _CommitHead.read(space, commit) for _, commit in named}
    changes = read_changes(space.original, list(found))
    groups = []
    for branch, commits in groupby(named, key=lambda entry: entry[0]):
        heads = [(commit, found[commit]) for _, commit in commits]
        groups.append(
            _AgentWork(
                branch,
                [Pick(commit, head.parent_tree, head.tree, tuple(changes.get(commit, ()))) for commit, head in heads],
                [head.message for _, head in heads],
                [head.author for _, head in heads],
            )
        )
    return groups


@dataclass(frozen=True, slots=True)
class _CommitHead:
    """The content of a commit object."""

    tree: str
    parent_tree: str
    message: str
    author: tuple[str, str, str]
    """Name, address, and time as git writes it."""

    @classmethod
    def read(cls, space: ObjectSpace, commit: str) -> _CommitHead:
        fields, message = commit_fields(space, commit)
        parent_tree = commit_fields(space, fields["parent"])[0]["tree"] if "parent" in fields else ""
        name, _, rest = fields.get("author", "").rpartition(" <")
        address, _, when = rest.partition("> ")
        return cls(fields["tree"], parent_tree or space.write("tree", b""), message, (name, address, when))


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


def _part(number: int, owner: str, group: _AgentWork, squashed: Commit, sources: Mapping[str, TestChangeSource]) -> Fix:
    known_sources = [sources[branch] for branch in group.branches if branch in sources]
    name, address, when = group.authors[0]
    changes = {change.path: change for pick in group.picks for change in pick.changes}
    commit = Commit(
        owner, squashed.parent, group.after, group.before, name, address, when, "\n\n".join(group.messages),
        tuple(changes.values()),
    )  # fmt: skip
    return Fix(
        commit=commit,
        position=number,
        rank=0,
        title=plain(without_marks(commit.subject), _LINE_LIMIT) or "(no title)",
        branch=group.branches[0],
        branches=tuple(dict.fromkeys(group.branches)),
        agents=_named(known_sources, group.branches),
        tests=tuple(dict.fromkeys(plain(source.test, _LINE_LIMIT) for source in known_sources)),
    )


def _named(sources: Iterable[TestChangeSource], branches: Iterable[str]) -> tuple[str, ...]:
    agents = [plain(source.agent, 200) for source in sources]
    return tuple(dict.fromkeys(agents or [branch.rpartition("/")[2] for branch in branches]))


def _parts_of_hunks(
    space: ObjectSpace, squashed: CommitHunks, named: Sequence[tuple[str, str]], sources: Mapping[str, TestChangeSource]
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
        picks.append(Pick(owner, before, after))
        commit = replace(squashed.commit, id=owner, tree=after, parent_tree=before, changes=hunk.changes)
        parts.append(
            Fix(
                commit=commit,
                position=number,
                rank=0,
                title=plain(hunk.title, _LINE_LIMIT),
                branch=branches[0] if branches else "",
                branches=branches,
                agents=_named(known_sources, branches),
                tests=tuple(dict.fromkeys(plain(source.test, _LINE_LIMIT) for source in known_sources)),
            )
        )
    return TestChanges(tuple(parts), tuple(picks), are_hunks=True)
