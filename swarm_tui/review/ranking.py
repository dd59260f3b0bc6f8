"""The one ranking of fixes, with measured effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from swarm_tui.model.commits import FIX_PREFIX, Commit
from swarm_tui.model.formatting import counted, named
from swarm_tui.model.pulled import without_marks
from swarm_tui.model.report import IntegratorReport
from swarm_tui.model.text import plain
from swarm_tui.review.changes import Change, IntegratedBranch


class Effect(BaseModel):
    """The effect of one fix on the tests of the sweep: measured, or as reported by its agents."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    commit: str = ""
    title: Annotated[str, AfterValidator(lambda title: plain(title, 300))] = ""
    turned_green: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    """Fixed tests that were flaky without the fix."""
    builds_on: Annotated[str, AfterValidator(lambda title: plain(title, 300))] = ""
    """The title of its agent's earlier fix that was measured together with it; "" if there is none."""
    is_measured: bool = False
    """False if these are only the reports of its agents."""
    why_not: Annotated[str, AfterValidator(lambda why: plain(why, 250))] = ""
    """Why it was not measured, if known."""
    why: Annotated[str, AfterValidator(lambda why: plain(why, 300))] = ""
    """The reason for its rank, as one line."""
    branches: tuple[str, ...] = ()
    """The agents' branches that it comes from."""

    @property
    def net(self) -> int:
        return len(self.turned_green) - len(self.broken)

    @property
    def source(self) -> str:
        """Return who says what the fix does, or why that is not measured."""
        if self.is_measured:
            return "measured"
        return f"not measured: {self.why_not}" if self.why_not else "as its agents report"

    @property
    def sentence(self) -> str:
        """Return the effect of the fix on the tests, and its source; empty if nothing is known."""
        facts = [f"turns {counted(len(self.turned_green), 'test')} green"] if self.turned_green else []
        facts += [f"breaks {counted(len(self.broken), 'test')}"] if self.broken else []
        if not facts:
            return "changes no test result (measured)" if self.is_measured else self.source if self.why_not else ""
        return f"{', '.join(facts)} ({self.source})"


class TipResults(BaseModel):
    """The results of all tests of the sweep at the tip of the integrated branch."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    passed: int = 0
    failed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    complaint: str = ""
    regressed: tuple[str, ...] = ()
    """Tests that passed before the integration and fail now."""
    flaky: tuple[str, ...] = ()
    failed_before: tuple[str, ...] = ()
    """Tests that passed for their agents but fail on this machine even without the integration."""
    not_run: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    """Commits that may tamper with results, so that these are not reliable."""


class _AboutBranch(BaseModel):
    """The fields about the branch as a whole, which swarm-tui writes."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    final_run: TipResults | None = None
    problems: tuple[str, ...] = ()
    refused: str = ""
    refused_branch: str = ""
    by_integrator: dict[str, str] = Field(default_factory=dict)
    revisions: tuple[object, ...] = ()


_EFFECTS = TypeAdapter(tuple[Effect, ...])


def read_tip_results(outcome: IntegratorReport | None) -> TipResults | None:
    """Return the test results at the tip of the branch; None if the tests were not run."""
    return _read_about(outcome).final_run


def notes_of_integrator(outcome: IntegratorReport | None) -> dict[str, str]:
    """Return the changes that an integrating agent added, by commit."""
    return {commit: plain(note, 300) for commit, note in _read_about(outcome).by_integrator.items()}


def problem_in_short(outcome: IntegratorReport | None) -> str:
    """Return the problem of the branch in a few words, such as "2 tests fail"; "" if there is none."""
    about = _read_about(outcome)
    results = about.final_run
    if not about.problems:
        return ""
    if results is not None and results.regressed:
        return f"{counted(len(results.regressed), 'test')} {'fails' if len(results.regressed) == 1 else 'fail'}"
    return plain(about.problems[0].partition(" on the integrated branch")[0], 40)


def sentences_about_branch(outcome: IntegratorReport | None) -> list[str]:
    """Return sentences about the branch as a whole, most important first."""
    about = _read_about(outcome)
    found = list(about.problems)
    if about.refused:
        kept = f" (it is kept as {about.refused_branch})" if about.refused_branch else ""
        found.append(f"the coding agent's branch{kept} is not used: {about.refused}")
    note = about.by_integrator.get(outcome.squashed_commit_hash or "") if outcome is not None else None
    if note:
        found.append(f"the integrator changed the commit of test and doc fixes: {note}")
    if about.revisions and about.final_run is None:
        found.append("the tests have not run on the branch since a fix was revised (run `swarm-tui integrate`)")
    results = about.final_run or TipResults()
    found += [f"the test results on the branch are not reliable: {doubt}" for doubt in results.doubts]
    if results.not_run and not any(results.complaint in problem for problem in about.problems):
        found.append(f"{counted(len(results.not_run), 'test')} not run on the branch: {results.complaint}")
    for words, tests in (
        ("failing on this machine even without the integration", results.failed_before),
        ("failing on the branch, passing when repeated", results.flaky),
    ):
        if tests:
            found.append(f"{counted(len(tests), 'test')} {words}: {named(tests)}")
    return [plain(sentence, 500) for sentence in found]


def _read_about(outcome: IntegratorReport | None) -> _AboutBranch:
    try:
        return _AboutBranch.model_validate((outcome.model_extra or {}) if outcome else {})
    except ValidationError:
        return _AboutBranch()


def read_measured_effects(
    outcome: IntegratorReport | None, not_measured: Mapping[str, Sequence[str]] | None = None
) -> dict[str, Effect]:
    """Return the measured effects by commit; empty if the integrator did not measure, or if the fields are invalid.

    For the commits in `not_measured`, which may tamper with test results, the effects are only as reported.
    """
    ranking = (outcome.model_extra or {}).get("ranking") if outcome else None
    try:
        effects = {effect.commit: effect for effect in _EFFECTS.validate_python(ranking or ())}
    except ValidationError:
        return {}
    for commit, doubts in (not_measured or {}).items():
        if commit in effects:
            why_not = plain(", ".join(doubts), 250)
            was_measured = effects[commit].is_measured
            changed = {"is_measured": False, "why_not": why_not}
            changed |= {"why": f"not measured: {why_not}"} if was_measured else {}
            effects[commit] = effects[commit].model_copy(update=changed)
    return effects


_SHORTEST_ID: Final = 7
_UNRANKED: Final = 1_000_000
_SQUASHED_PREFIXES: Final = ("[TEST/DOC]", "[IMPROVE_TEST]", "[FIX_TEST]", "[FIX_TUTORIAL]")


def branch_with_fixes(
    commits: Sequence[Commit],
    *,
    base: str,
    base_tree: str,
    outcome: IntegratorReport | None = None,
    agents: Mapping[str, str] | None = None,
    is_all: bool = False,
) -> IntegratedBranch:
    """Return the branch with its fixes: first those that the integrator ranked, then the others in branch order.

    `agents` maps each branch to its agent. `is_all` treats every commit as a fix.
    """
    report = outcome or IntegratorReport()
    branches_of, doubts = _branches_of_commits(report, commits)
    squashed = _find_commit(report.squashed_commit_hash, commits)
    if report.squashed_commit_hash and squashed is None:
        doubts.append(f"the commit of test and doc fixes {plain(report.squashed_commit_hash, 12)} is not on the branch")
    # `impl_commit_hashes` can name only one fix of a branch; the ranking names all of them.
    ranking = read_measured_effects(report)
    of_tests: list[str] = []
    if squashed is None:
        others = [commit for commit in commits if commit.id not in ranking]
        squashed, of_tests = _find_squashed(others)
    chosen = [
        (position, commit)
        for position, commit in enumerate(commits)
        if is_all or commit.id in branches_of or commit.id in ranking or commit.id in of_tests or _is_fix(commit)
    ]
    if squashed is not None and not is_all:
        chosen = [(position, commit) for position, commit in chosen if commit.id != squashed]
    notes = notes_of_integrator(report)
    makers = {commit: ranked.branches for commit, ranked in ranking.items()} | branches_of
    place_in_ranking = {commit: place for place, commit in enumerate(ranking)}
    priority = {branch: place for place, branch in enumerate(report.impl_priority)}

    def importance(item: tuple[int, Commit]) -> tuple[int, int]:
        position, commit = item
        places = (priority.get(branch, _UNRANKED) for branch in branches_of.get(commit.id, ()))
        return place_in_ranking.get(commit.id, min(places, default=_UNRANKED)), position

    fixes = tuple(
        replace(
            _fix(commit, position, rank, makers.get(commit.id, ()), agents or {}),
            by_integrator=notes.get(commit.id, ""),
        )
        for rank, (position, commit) in enumerate(sorted(chosen, key=importance), start=1)
    )
    tip, tip_tree = (commits[-1].id, commits[-1].tree) if commits else (base, base_tree)
    tests = next(
        (
            _fix(commit, place, 0, report.squashed_branches, agents or {})
            for place, commit in enumerate(commits)
            if commit.id == squashed and not is_all
        ),
        None,
    )
    return IntegratedBranch(base, base_tree, tip, tip_tree, tuple(commits), fixes, squashed, tests, tuple(doubts))


def _find_squashed(commits: Sequence[Commit]) -> tuple[str | None, list[str]]:
    """Return the one commit of all test and doc fixes, if there is one, and all other commits with the same mark.

    If several commits have the mark, none contains the work of the others, so all of them are rows like fixes.
    """
    for prefixes in (_SQUASHED_PREFIXES[:1], _SQUASHED_PREFIXES):
        marked = [commit.id for commit in commits if commit.subject.lstrip().startswith(prefixes)]
        if len(marked) == 1:
            rest = [commit.id for commit in commits if commit.subject.lstrip().startswith(_SQUASHED_PREFIXES)]
            return marked[0], [name for name in rest if name != marked[0]]
    return None, marked


def _is_fix(commit: Commit) -> bool:
    return commit.subject.lstrip().startswith(FIX_PREFIX)


def _branches_of_commits(
    report: IntegratorReport, commits: Sequence[Commit]
) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Return the branches that were folded into each commit, most important first, and inconsistencies."""
    doubts: list[str] = []
    found: dict[str, tuple[str, ...]] = {}
    for branch in dict.fromkeys((*report.impl_priority, *report.impl_commit_hashes)):
        claimed = report.impl_commit_hashes.get(branch)
        if claimed is None:
            doubts.append(f"{plain(branch, 80)} is ranked, but the report names no commit for it")
            continue
        commit = _find_commit(claimed, commits)
        if commit is None:
            doubts.append(f"the report names {plain(claimed, 12)} for {plain(branch, 80)}, which is not on the branch")
            continue
        found[commit] = (*found.get(commit, ()), branch)
    return found, doubts


def _find_commit(claimed: str | None, commits: Sequence[Commit]) -> str | None:
    """Return the commit with a full or abbreviated id, if there is exactly one."""
    prefix = (claimed or "").strip().lower()
    if len(prefix) < _SHORTEST_ID:
        return None
    fitting = [commit.id for commit in commits if commit.id.startswith(prefix)]
    return fitting[0] if len(fitting) == 1 else None


def _fix(commit: Commit, position: int, rank: int, branches: tuple[str, ...], agents: Mapping[str, str]) -> Change:
    title = plain(without_marks(commit.subject) if rank == 0 else commit.subject.lstrip().removeprefix(FIX_PREFIX), 300)
    makers = (agents.get(branch) or branch.rpartition("/")[2] for branch in branches)
    return Change(
        commit=commit,
        position=position,
        rank=rank,
        title=title.strip() or "(no title)",
        branch=plain(branches[0], 200) if branches else "",
        branches=tuple(plain(branch, 200) for branch in branches),
        agents=tuple(dict.fromkeys(plain(maker, 200) for maker in makers)),
    )
