"""Takes the commit of all test and doc fixes apart: what each agent put into it, or, where that was woven, hunks."""

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
from swarm_tui.model.commit_kinds import without_marks
from swarm_tui.model.fixes import FIX_PREFIX, Commit, CommitParts, Fix, IntegratedBranch, Pick
from swarm_tui.model.outcome import IntegratorOutcome
from swarm_tui.model.text import plain
from swarm_tui.triage.hunks import CommitHunks
from swarm_tui.triage.rebuild import pick_all

PART_PREFIX: Final = "part-"
_LINE_LIMIT: Final = 300
_COMMITS_LIMIT: Final = 5_000


@dataclass(frozen=True, slots=True)
class PartSource:
    """One agent's branch, as the sweep knows it."""

    branch: str
    agent: str
    test: str
    tip: str


class _SquashedCommit(BaseModel):
    """One line of an integrator's report on its commit of test and doc fixes."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    branch: Annotated[str, AfterValidator(lambda name: plain(name, 200))]
    commit: str


_SQUASHED = TypeAdapter(tuple[_SquashedCommit, ...])


@dataclass(slots=True)
class _AgentWork:
    """Commits of one agent that follow on each other."""

    branch: str
    picks: list[Pick]
    messages: list[str]
    authors: list[tuple[str, str, str]]
    before: str = ""
    after: str = ""
    branches: list[str] = field(default_factory=list)


def read_parts(
    space: ObjectSpace,
    diffs: DiffReader,
    branch: IntegratedBranch,
    outcome: IntegratorOutcome,
    sources: Sequence[PartSource] = (),
) -> CommitParts:
    """Return the parts of the commit of all test and doc fixes; nothing when there is no such commit."""
    squashed = next((commit for commit in branch.commits if commit.id == branch.squashed), None)
    if squashed is None:
        return CommitParts()
    by_branch = {source.branch: source for source in sources}
    named = _reported_commits(outcome) or _commits_of_branches(space.original, branch.base, outcome, by_branch)
    parts = _parts_of_commits(space, diffs, squashed, named, by_branch)
    return parts or _parts_of_hunks(space, CommitHunks.read(space, diffs, squashed), named, by_branch)


def _reported_commits(outcome: IntegratorOutcome) -> list[tuple[str, str]]:
    """Return branch and commit of all that the integrator says it squashed, in its order."""
    try:
        found = _SQUASHED.validate_python((outcome.model_extra or {}).get("squashed_commits") or ())
    except ValidationError:
        return []
    return [(entry.branch, entry.commit) for entry in found[:_COMMITS_LIMIT]]


def _commits_of_branches(
    repository: Repository, base: str, outcome: IntegratorOutcome, sources: Mapping[str, PartSource]
) -> list[tuple[str, str]]:
    """Return the commits of the squashed branches that are no fixes, as an integrator picks them when it just picks."""
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
    sources: Mapping[str, PartSource],
) -> CommitParts | None:
    """Return a part for each agent whose commits make the squashed one when they are picked; None when they do not."""
    try:
        groups = _grouped(space, named)
    except GitError:
        # The agents' commits are gone: `clean` has removed what held them.
        return None
    if not groups:
        return None
    parts: dict[str, _AgentWork] = {}
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
        # The same work of several agents is one part.
        parts.setdefault(owner, group).branches.append(group.branch)
    if tree != squashed.tree:
        return None
    made = [_part(number, owner, group, squashed, sources) for number, (owner, group) in enumerate(parts.items())]
    return CommitParts(tuple(made), tuple(picks))


def _grouped(space: ObjectSpace, named: Sequence[tuple[str, str]]) -> list[_AgentWork]:
    """Read the commits; raise GitError when one is missing."""
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
    """What a commit object says."""

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
        raise GitError(f"{commit[:12]} is no commit")
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


def _part(number: int, owner: str, group: _AgentWork, squashed: Commit, sources: Mapping[str, PartSource]) -> Fix:
    known = [sources[branch] for branch in group.branches if branch in sources]
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
        agents=_named(known, group.branches),
        tests=tuple(dict.fromkeys(plain(source.test, _LINE_LIMIT) for source in known)),
    )


def _named(sources: Iterable[PartSource], branches: Iterable[str]) -> tuple[str, ...]:
    agents = [plain(source.agent, 200) for source in sources]
    return tuple(dict.fromkeys(agents or [branch.rpartition("/")[2] for branch in branches]))


def _parts_of_hunks(
    space: ObjectSpace, squashed: CommitHunks, named: Sequence[tuple[str, str]], sources: Mapping[str, PartSource]
) -> CommitParts:
    """Return a part for each hunk; its authors are the agents that changed its file, as far as that is known."""
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
        known = [sources[branch] for branch in branches if branch in sources]
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
                agents=_named(known, branches),
                tests=tuple(dict.fromkeys(plain(source.test, _LINE_LIMIT) for source in known)),
            )
        )
    return CommitParts(tuple(parts), tuple(picks), are_hunks=True)
