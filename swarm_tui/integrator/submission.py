"""Checks and measures a branch that a coding agent submitted, and compares it with the built-in integrator's branch.

The agent's claims about its branch are not trusted. The origin of each commit and missing work are determined from the
commits, and the effects of the fixes are measured as for the built-in integrator. Only two things come from the report:
why work was left out, and which commits a modified commit replaces.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.history import read_commits, read_tree_changes
from swarm_tui.integrator.branches import LINES_LIMIT, AgentCommit, Classification, classify_commit, read_patches
from swarm_tui.integrator.build import BranchFixes, FixTree, RejectedCommit, Tip, squash
from swarm_tui.integrator.duplicates import DistinctFix, changes_of
from swarm_tui.integrator.inputs import BranchInput, IntegratorInputs
from swarm_tui.integrator.report import IntegrationResult, reported_effect
from swarm_tui.integrator.tip import MAX_CHECKED, files_with_markers, passing_sometimes
from swarm_tui.model.commits import Commit, is_test
from swarm_tui.model.formatting import counted, named
from swarm_tui.model.report import IntegratorReport
from swarm_tui.model.text import plain
from swarm_tui.review.picking import contains, tree_with
from swarm_tui.review.ranking import Effect

if TYPE_CHECKING:
    from swarm_tui.integrator.program import Integrator, Work

COMMITS_LIMIT: Final = 100
"""How many more commits a submitted branch may have than all agents together."""
SHORTEST_ID: Final = 7
NOT_MADE_BY_AN_AGENT: Final = "not a commit of an agent"
CHANGED: Final = "differs from its agent's commit"


def why_unusable(repository: Repository, inputs: IntegratorInputs, work: Work) -> str:
    """Return why the submitted branch can be neither measured nor reviewed, or ""."""
    submission = inputs.submission
    if submission is None or submission.problem:
        return submission.problem if submission is not None else ""
    tip = submission.tip
    if tip in ("", inputs.base):
        agents = {commit.source.agent for commit in work.commits}
        return f"it submitted no commit, although {counted(len(agents), 'agent')} submitted work"
    if not repository.is_ancestor(inputs.base, tip):
        return "its branch is not based on the commit that the sweep started from"
    merge = repository.run("rev-list", "--min-parents=2", "--max-count=1", tip, f"^{inputs.base}", "--").text
    if merge:
        return f"its branch is not linear: {merge[:12]} is a merge commit"
    count = int(repository.run("rev-list", "--count", tip, f"^{inputs.base}", "--").text)
    if count > len(work.commits) + COMMITS_LIMIT:
        return f"its branch has {counted(count, 'commit')}, although the agents have only {len(work.commits):,}"
    return ""


@dataclass(frozen=True, slots=True)
class MeasuredSubmission:
    """A submitted branch without any changes by swarm-tui."""

    result: IntegrationResult
    dropped: tuple[str, ...] = ()
    """Ids of agents' commits that are missing without a reason."""
    excused: frozenset[str] = frozenset()
    """Agents' branches that were partly left out for a reason that the integrator reported."""
    doubts: tuple[str, ...] = ()
    """How commits of the integrator may tamper with test results."""
    changes_tests: bool = False
    """Whether the integrator itself changed tests."""


async def measure_submission(integrator: Integrator, report: IntegratorReport, tip: str) -> MeasuredSubmission:
    """Read the submitted branch, run all tests at its tip, and measure each of its commits."""
    inputs, meter = integrator.inputs, integrator.meter
    meter.begin("reading the submitted branch")
    branch = await asyncio.to_thread(_SubmittedBranch.read, integrator, report, tip)
    integrator.progress(f"the submitted branch has {counted(len(branch.commits), 'commit')}")
    carried, left_out = branch.carried_branches, branch.branches_left_out
    final = await integrator.run_at_tip(branch.tip, branch.commits, carried, left_out)
    picked = [FixTree(branch.fixes[commit.id], commit.tree, commit=commit.id) for commit in branch.rows]
    if final is not None and not final.outcomes:
        why_not = "no test could be run on the branch"
        effects = {entry.fix.chosen.id: reported_effect(entry.fix, why_not) for entry in picked}
    else:
        trees, effects = await asyncio.to_thread(branch.trees)
        measurement = integrator.measurement(branch.start.tree, trees)
        effects |= await measurement.measure()
        effects = await measurement.add_breakages(effects, final.regressed if final else (), picked)
    result = IntegrationResult(
        inputs.base,
        branch.start.commit,
        branch.tip.commit,
        tuple(branch.squashed),
        tuple(branch.rejected),
        BranchFixes(picked, branch.left_out),
        integrator.work.refused,
        final,
        effects,
        await asyncio.to_thread(files_with_markers, integrator.space, integrator.base.tree, branch.tip.tree),
        branch.notes,
    )
    own = [commit for commit in branch.commits if commit.id in branch.notes]
    doubts = await asyncio.to_thread(integrator.doubts, own)
    return MeasuredSubmission(
        result, tuple(branch.dropped), frozenset(branch.excused), tuple(doubts), branch.changes_tests
    )


@dataclass(frozen=True, slots=True)
class _Claims:
    """The claims of a report about branches and commits. The report is untrusted and may be large."""

    commits: Mapping[str, str]
    """The commit of the submitted branch for each agent's branch, according to the report."""
    squashed: frozenset[str]
    """The agents' branches in the commit of test and doc fixes, according to the report."""
    reasons: Mapping[str, str]
    """Why a branch or a commit was left out. Commits are indexed by a prefix of their ids."""

    @classmethod
    def read(cls, report: IntegratorReport, branches: Collection[str], commits: Iterable[str]) -> _Claims:
        known = {commit[:SHORTEST_ID]: commit for commit in commits}
        named_for = {branch: _prefix(report.impl_commit_hashes.get(branch, "")) for branch in branches}
        reasons: dict[str, str] = {}
        for entry in report.failed:
            if reason := plain(entry.reason, 300).strip():
                for name in filter(None, (_prefix(entry.commit), entry.branch)):
                    reasons.setdefault(name, reason)
        found = {branch: known[name] for branch, name in named_for.items() if name in known}
        return cls(found, frozenset(branches).intersection(report.squashed_branches), reasons)

    def reason_for(self, commit: AgentCommit) -> str:
        return self.reasons.get(commit.id[:SHORTEST_ID]) or self.reasons.get(commit.source.branch, "")


def _prefix(name: str) -> str:
    """Return a prefix of a commit's id for lookups; "" if the id is too short."""
    prefix = name.strip().lower()[:SHORTEST_ID]
    return prefix if len(prefix) == SHORTEST_ID else ""


@dataclass(slots=True)
class _SubmittedBranch:
    """The commits of a submitted branch, the agents' commits that they come from, and missing commits."""

    integrator: Integrator
    claims: _Claims
    commits: list[AgentCommit]
    start: Tip
    """The commit of test and doc fixes, if the branch begins with one; otherwise the base."""
    fixes: dict[str, DistinctFix] = field(default_factory=dict)
    """Each commit to review as a fix, with the agents' commits that it comes from."""
    notes: dict[str, str] = field(default_factory=dict)
    """Changes that the integrator added, by commit."""
    squashed: list[AgentCommit] = field(default_factory=list)
    rejected: list[RejectedCommit] = field(default_factory=list)
    left_out: list[tuple[DistinctFix, str]] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    excused: set[str] = field(default_factory=set)
    _own_paths: set[str] = field(default_factory=set)
    """The files of the commit of test and doc fixes that differ from the agents' work."""
    _claimed: set[str] = field(default_factory=set)
    """Agents' commits that are, according to the report, in a commit that differs from them."""
    _proven: set[str] = field(default_factory=set)
    """Agents' commits that were cherry-picked without changes."""

    @classmethod
    def read(cls, integrator: Integrator, report: IntegratorReport, tip: str) -> _SubmittedBranch:
        inputs = integrator.inputs
        files = {test.file for test in inputs.tests if test.file}
        source = BranchInput(agent="", test="", branch="", tip=tip)
        read = read_commits(integrator.space.repository, inputs.base, tip)
        commits = [_as_agent_commit(commit, place, source, files, inputs) for place, commit in enumerate(read)]
        first = commits[0]
        has_squashed = not first.classification.is_fix and first.tree != first.parent_tree
        start = Tip(first.id, first.tree) if has_squashed else integrator.base
        branches = {known.branch for known in inputs.branches}
        claims = _Claims.read(report, branches, [commit.id for commit in commits])
        branch = cls(integrator, claims, commits, start)
        branch._find_origins()
        branch._find_left_out()
        branch._compare_squashed()
        return branch

    @property
    def rows(self) -> list[AgentCommit]:
        """The commits to review one by one."""
        return [commit for commit in self.commits if commit.id != self.start.commit]

    @property
    def tip(self) -> Tip:
        return Tip(self.commits[-1].id, self.commits[-1].tree)

    @property
    def carried_branches(self) -> set[str]:
        branches = {branch for fix in self.fixes.values() for branch in fix.branches}
        return branches | {commit.source.branch for commit in self.squashed}

    @property
    def branches_left_out(self) -> set[str]:
        branches = {branch for fix, _ in self.left_out for branch in fix.branches}
        return branches | {entry.commit.source.branch for entry in self.rejected}

    @property
    def changes_tests(self) -> bool:
        """Whether the integrator itself changed tests, so that passing tests prove nothing."""
        files = {test.file for test in self.integrator.inputs.tests if test.file}
        own = {path for commit in self.rows if commit.id in self.notes for path in commit.paths}
        return any(is_test(path, files) for path in own | self._own_paths)

    # Origins of commits

    def _find_origins(self) -> None:
        """Find the agents' commits that each commit comes from: those that result in its tree when cherry-picked."""
        work = self.integrator.work
        groups = [*work.fixes, *(DistinctFix((commit,)) for commit in work.tests_and_docs)]
        alike: dict[object, list[DistinctFix]] = {}
        for group in groups:
            for key in {_key(member.patch) for member in group.commits}:
                alike.setdefault(key, []).append(group)
        keys = self._keys()
        origins: dict[str, list[DistinctFix]] = {}
        for commit in self.rows:
            candidates = alike.get(keys.get(commit.id), [])
            origins[commit.id] = next(([group] for group in candidates if self._is_picked(commit, group)), [])
        self._proven = {each.id for found in origins.values() for group in found for each in group.commits}
        for commit in self.rows:
            found = origins[commit.id]
            if not found:
                branches = self._branches_named_for(commit)
                found = [
                    group
                    for group in work.fixes
                    if branches.intersection(group.branches) and group.chosen.id not in self._proven
                ]
                self._add_note(commit, found)
            self.fixes[commit.id] = _fix_of(commit, found)

    def _keys(self) -> dict[str, object]:
        """Return a key for each commit that it shares with the agents' commits that it may come from."""
        pairs = {commit.id: (commit.parent_tree, commit.tree) for commit in self.rows if commit.lines < LINES_LIMIT}
        patches = read_patches(self.integrator.space.repository, list(pairs.values()))
        return {name: _key(patches[pair][1]) for name, pair in pairs.items() if pair in patches}

    def _is_picked(self, commit: AgentCommit, group: DistinctFix) -> bool:
        """Return whether a commit is the result of cherry-picking one of the agents' commits."""
        space = self.integrator.space
        return any(tree_with(space, commit.parent_tree, [member]) == commit.tree for member in group.commits)

    def _add_note(self, commit: AgentCommit, claimed: Sequence[DistinctFix]) -> None:
        """Add a note if a commit comes from no agent, or differs from the commits that the report names for it."""
        names = {each.id for group in claimed for each in group.commits}
        # One commit may combine several fixes of an agent.
        ordered = sorted((group.chosen for group in claimed), key=lambda each: (each.source.branch, each.place))
        if claimed and tree_with(self.integrator.space, commit.parent_tree, ordered) == commit.tree:
            self._proven |= names
            return
        self._claimed |= names
        self.notes[commit.id] = CHANGED if claimed else NOT_MADE_BY_AN_AGENT

    def _branches_named_for(self, commit: AgentCommit) -> set[str]:
        """Return the branches that the report assigns to a commit."""
        return {branch for branch, name in self.claims.commits.items() if name == commit.id}

    # Missing work

    def _find_left_out(self) -> None:
        for fix in self.integrator.work.fixes:
            reason = self._why_missing(fix.commits)
            if reason:
                self.left_out.append((fix, reason))
        for commit in self.integrator.work.tests_and_docs:
            reason = self._why_missing([commit])
            if reason:
                self.rejected.append(RejectedCommit(commit, reason))
            elif self._is_in(self.start.tree, commit):
                self.squashed.append(commit)

    def _why_missing(self, commits: Sequence[AgentCommit]) -> str:
        """Return why a change of one or several agents is missing at the tip; "" if it is there."""
        contained = [contains(self.integrator.space, self.tip.tree, commit) for commit in commits]
        if True in contained:
            return ""
        ids = {commit.id for commit in commits}
        is_proven, is_claimed = bool(ids & self._proven), self._is_claimed(commits)
        if None in contained and (is_proven or is_claimed):
            # It is unknown whether all of the change is there, so the test results decide.
            return ""
        reason = next(filter(None, map(self.claims.reason_for, commits)), "")
        if reason:
            self.excused.update(commit.source.branch for commit in commits)
            return f"was left out by the integrator: {reason}"
        if is_claimed and not is_proven:
            return "is not on the integrator's branch in its agent's version"
        if not is_proven and (same := self._same_as(commits)):
            return f"was left out by the integrator, which reports {same.subject!r} as the same fix"
        self.dropped.extend(ids)
        if is_proven:
            return "is reverted by a later commit of the integrator's branch"
        return "was left out by the integrator without a reason"

    def _is_claimed(self, commits: Sequence[AgentCommit]) -> bool:
        """Return whether the report claims that this work is in a commit that differs from it."""
        return any(
            commit.id in self._claimed
            or (not commit.classification.is_fix and commit.source.branch in self.claims.squashed)
            for commit in commits
        )

    def _same_as(self, commits: Sequence[AgentCommit]) -> AgentCommit | None:
        """Return the commit that the report names for the agents of a fix."""
        branches = [commit.source.branch for commit in commits if commit.classification.is_fix]
        names = {self.claims.commits[branch] for branch in branches if branch in self.claims.commits}
        return next((row for row in self.rows if row.id in names), None)

    def _is_in(self, tree: str, commit: AgentCommit) -> bool:
        is_named = commit.source.branch in self.claims.squashed
        is_held = contains(self.integrator.space, tree, commit)
        return is_held or (is_named and is_held is None)

    def _compare_squashed(self) -> None:
        """Add a note with files that differ between the commit of test and doc fixes and the agents' commits."""
        if self.start == self.integrator.base:
            return
        expected, _, _ = squash(self.integrator.space, self.integrator.inputs, self.integrator.base, self.squashed)
        if expected.tree != self.start.tree:
            changes = read_tree_changes(self.integrator.space.repository, expected.tree, self.start.tree)
            paths = [change.path for change in changes]
            self.notes[self.start.commit] = f"it differs from the agents' work in {named(paths)}"
            self._own_paths.update(paths)

    # Measuring

    def trees(self) -> tuple[list[FixTree], dict[str, Effect]]:
        """Return a tree with each commit alone, or with all previous commits if it does not apply alone."""
        trees: list[FixTree] = []
        effects: dict[str, Effect] = {}
        before = ""
        for commit in self.rows:
            fix = self.fixes[commit.id]
            alone = tree_with(self.integrator.space, self.start.tree, [commit])
            if commit.tree == commit.parent_tree:
                effects[commit.id] = Effect(is_measured=True)
            elif alone is not None and alone != self.start.tree:
                trees.append(FixTree(fix, alone))
            else:
                trees.append(FixTree(fix, commit.tree, commit.parent_tree, builds_on=before))
            before = commit.subject
        return trees, effects


def _as_agent_commit(
    commit: Commit, place: int, source: BranchInput, files: Iterable[str], inputs: IntegratorInputs
) -> AgentCommit:
    return AgentCommit(
        source=source,
        id=commit.id,
        parent=commit.parent,
        tree=commit.tree,
        parent_tree=commit.parent_tree,
        author_name=plain(commit.author_name, 100) or "unknown",
        author_email=plain(commit.author_email, 200),
        authored=commit.authored,
        message=commit.message.strip() or "(no message)",
        changes=commit.changes,
        classification=classify_commit(
            commit.message, sorted(commit.paths), test_files=set(files), tutorial=inputs.tutorial
        ),
        place=place,
    )


def _fix_of(commit: AgentCommit, origins: Sequence[DistinctFix]) -> DistinctFix:
    """Return a commit of the branch as a fix of the agents that it comes from."""
    members = [member for group in origins for member in group.commits]
    source = members[0].source if members else commit.source
    own = replace(commit, source=source, classification=Classification(is_fix=True))
    return DistinctFix((own, *members), why_same=next((group.why_same for group in origins), ""))


def _key(patch: str) -> object:
    """Return the lines that a patch removes and adds in each file, regardless of their positions."""
    return tuple(
        (change.path, *(tuple(sorted(line.text for line in lines)) for lines in (change.removed, change.added)))
        for change in changes_of(patch)
    )


def is_all_there(integrator: Integrator, submitted: MeasuredSubmission) -> bool:
    """Return whether a submitted branch is exactly the work of all agents, so that no other branch can be better."""
    result, work, space = submitted.result, integrator.work, integrator.space
    if result.by_integrator or result.rejected or result.fixes.left_out:
        return False
    start, _, rejected = squash(space, integrator.inputs, integrator.base, work.tests_and_docs)
    tree = None if rejected else tree_with(space, start.tree, [fix.chosen for fix in work.fixes])
    return tree is not None and tree == integrator.space.repository.tree_of(result.tip)


async def why_worse(integrator: Integrator, submitted: MeasuredSubmission, built: IntegrationResult) -> str:
    """Return why a submitted branch is worse than that of the built-in integrator, or ""."""
    result = submitted.result
    if not _carries_work(result) and _carries_work(built):
        return "its branch contains nothing of the agents' work"
    reasons = [f"its branch cannot be measured: {doubt}" for doubt in submitted.doubts[:1]]
    markers = [path for path in result.markers if path not in built.markers]
    if markers:
        reasons.append(f"conflict markers in {named(markers)}")
    lost = await _lost_tests(integrator, submitted, built)
    if lost and result.final is not None and not result.final.outcomes:
        reasons.append(f"no test could be run on its branch: {result.final.complaint}")
    elif lost:
        verbs = ("passes", "fails") if len(lost) == 1 else ("pass", "fail")
        count = counted(len(lost), "test")
        reasons.append(f"{count} that {verbs[0]} on the built-in integrator's branch {verbs[1]} on its: {named(lost)}")
    missing = await asyncio.to_thread(_dropped_titles, integrator, submitted.dropped, built)
    if missing:
        reasons.append(f"its branch lacks work without a reason: {named(missing)}")
    return "; ".join(reasons)


def _carries_work(result: IntegrationResult) -> bool:
    return bool(result.squashed or any(entry.fix.agents for entry in result.fixes.picked))


async def _lost_tests(integrator: Integrator, submitted: MeasuredSubmission, built: IntegrationResult) -> list[str]:
    """Return the tests that pass only on the built-in integrator's branch; empty if the submitted one has as many.

    Tests of fixes that the integrator left out for a reason do not count. If the integrator changed tests, its passing
    tests do not count.
    """
    theirs, ours = submitted.result.final, built.final
    if theirs is None or ours is None:
        return []
    excused = {source.test for source in integrator.inputs.branches if source.branch in submitted.excused}
    for entry in built.fixes.picked:
        if submitted.excused.intersection(entry.fix.branches):
            excused.update(built.effects[entry.fix.chosen.id].turned_green)
    lost = sorted(ours.passed - theirs.passed - excused)
    tip = integrator.space.repository.tree_of(submitted.result.tip)
    if theirs.outcomes:
        seconds = integrator.inputs.measure_seconds
        again = await passing_sometimes(integrator.copies, tip, lost[:MAX_CHECKED], seconds)
        lost = [test for test in lost if test not in again]
    won = frozenset[str]() if submitted.changes_tests else theirs.passed - ours.passed
    return lost if len(lost) > len(won) else []


def _dropped_titles(integrator: Integrator, dropped: Collection[str], built: IntegrationResult) -> list[str]:
    """Return the titles of dropped commits that are on the built-in integrator's branch."""
    tip = integrator.space.repository.tree_of(built.tip)
    carried = (*built.squashed, *(each for entry in built.fixes.picked for each in entry.fix.commits))
    return [
        f"{commit.subject!r} of {commit.source.agent}"
        for commit in carried
        if commit.id in dropped and contains(integrator.space, tip, commit)
    ]
