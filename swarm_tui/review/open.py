"""Open the review of a sweep; read its kept fixes without a repository."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, ValidationError

from swarm_tui.adapters.git import GitError, Repository
from swarm_tui.errors import UsageError
from swarm_tui.files import open_regular
from swarm_tui.journal.compare import KeptFix
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import OpenedSweep, open_sweep
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import SweepState
from swarm_tui.model.commits import Diff
from swarm_tui.model.pulled import INTEGRATOR_OUTCOME_FILE, ChangeKind
from swarm_tui.model.report import (
    INTEGRATOR_OUTCOME_SIZE_LIMIT,
    IntegratorReport,
    InvalidReport,
    parse_integrator_report,
)
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.review.changes import AgentBranch, Change
from swarm_tui.review.picking import pick
from swarm_tui.review.ranking import Effect, read_measured_effects, sentences_about_branch
from swarm_tui.review.review import ExpectedOrigin, Review
from swarm_tui.review.test_changes import read_commit
from swarm_tui.review.verdicts import Verdict, VerdictStore, applied_plans, review_of_sweep


class RevisedChange(BaseModel):
    """A fix that was sent back, and the commit that replaces it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    old: str
    new: str
    comment: Annotated[str, AfterValidator(plain_lines)] = ""
    by: Annotated[str, AfterValidator(lambda name: plain(name, 80))] = ""
    agent: Annotated[str, AfterValidator(lambda name: plain(name, 200))] = ""


_HUNK_LIMIT: Final = 8_000
_RETURNED = TypeAdapter(tuple[RevisedChange, ...])


def revised_changes(outcome: IntegratorReport) -> dict[str, RevisedChange]:
    """Return the revised fixes by their current commits; for a fix with several revisions, the last one."""
    try:
        found = _RETURNED.validate_python((outcome.model_extra or {}).get("revisions") or ())
    except ValidationError:
        return {}
    return {returned.new: returned for returned in found}


def hunk_text(review: Review, hunk: Change) -> str:
    """Return a hunk as shown to its agent: the file, the header and the lines; "" for a whole fix."""
    if not hunk.hunk_of:
        return ""
    diff = review.diff(hunk)
    shown = []
    for file in diff.files:
        body = diff.lines[file.hunks[0] : file.end] if file.hunks else diff.lines[file.start : file.end]
        shown += [file.path, *body]
    return "\n".join(shown)[:_HUNK_LIMIT]


def difference_of(review: Review, fix: Change, returned: RevisedChange) -> Diff | None:
    """Return the difference between a fix before and after its revision; None if the old commit is missing."""
    space, commit = review.space, fix.commit
    try:
        old = read_commit(space, returned.old)
    except (GitError, KeyError):
        return None
    # Earlier commits may have changed, so the old fix is moved to the position of the new one.
    step = pick(space, old, commit.parent_tree)
    old_tree = old.tree if step.is_conflict else step.tree
    return review.diff_of(old_tree, commit.tree)


def review_sweep(folder: SweepFolder, *, is_all: bool = False, by: str | None = None) -> Review:
    """Open the review of a sweep's integrated branch. In a tutorial sweep, each block's commit is a fix."""
    opened = open_sweep(folder)
    integration = opened.state.integration
    if not (integration.branch or integration.tip):
        raise _not_integrated(opened)
    repository = _repository_of(folder, Path(opened.spec.repository))
    outcome, doubts = read_integrator_outcome(folder)
    doubts = [*sentences_about_branch(outcome), *doubts, *opened.integrity_warnings]
    tip = integration.branch or integration.tip
    found = repository.find(tip)
    if found is None:
        if repository.find(integration.tip or tip) is None:
            raise UsageError(
                f"the integrated branch {plain(tip, 80)} is missing from {repository.root}",
                f"`swarm-tui integrate {folder.name}` creates it again",
            )
        doubts.append(f"the branch {plain(tip, 80)} is missing; this is a review of its last commit")
        tip = integration.tip
    elif integration.tip and found != integration.tip:
        doubts.append(f"the branch {plain(tip, 80)} was moved after integration")
    return Review.open(
        repository,
        opened.spec.base,
        tip,
        folder=review_of_sweep(folder.root),
        outcome=outcome,
        doubts=doubts,
        is_all=is_all or opened.spec.kind != "tests",
        by=by,
        sources=[
            AgentBranch(record.branch, record.agent, record.test, record.pulled.tip, bool(record.pulled.weaker))
            for record in opened.state.records.values()
            if record.branch
        ],
        origin=ExpectedOrigin(*opened.spec.identity, opened.spec.created_at),
    )


def _not_integrated(opened: OpenedSweep) -> UsageError:
    """Return an error about why there is nothing to review, with a hint."""
    name, integration = opened.folder.name, opened.state.integration
    again = f"run `swarm-tui integrate {name}`"
    match integration.state:
        case "done":
            return UsageError(
                f"sweep {name} has no fixes: no agent submitted a usable change",
                f"run `swarm-tui status {name}` to see the result of each test",
            )
        case "integrating" if opened.has_running_engine:
            return UsageError(f"sweep {name} is being integrated", f"run `swarm-tui open {name}` to see the progress")
        case "failed":
            return UsageError(f"integration of sweep {name} failed", plain(integration.detail) or again)
        case _:
            return UsageError(f"sweep {name} is not integrated yet", again)


def read_integrator_outcome(folder: SweepFolder) -> tuple[IntegratorReport | None, list[str]]:
    """Return the integrator's report, or None and the reason. A branch can be reviewed without it."""
    path = folder.integrator / INTEGRATOR_OUTCOME_FILE
    try:
        with open_regular(path) as file:
            return parse_integrator_report(file.read(INTEGRATOR_OUTCOME_SIZE_LIMIT + 1)), []
    except FileNotFoundError:
        return None, []
    except OSError as error:
        return None, [f"cannot read {path.name}: {error.strerror or error}"]
    except InvalidReport as error:
        return None, [f"invalid report of the integrator: {plain(str(error), 300)}"]


def _repository_of(folder: SweepFolder, recorded: Path) -> Repository:
    """Open the repository of a sweep. If the sweep is from another machine, look for it around the sweep folder."""
    for place in (recorded, folder.root, Path.cwd()):
        if place.is_dir():
            try:
                return Repository.open(place)
            except UsageError:
                continue
    raise UsageError(f"repository of sweep {folder.name} not found: it was {plain(str(recorded), 200)}")


def kept_fixes(folder: SweepFolder, state: SweepState) -> tuple[KeptFix, ...]:
    """Return the fixes with the verdict keep. If the plan was applied, also return those without a verdict."""
    outcome, _ = read_integrator_outcome(folder)
    review = review_of_sweep(folder.root)
    verdicts = {line.commit: line.verdict for line in VerdictStore(review).lines}
    is_applied = any(entry.get("branch") for entry in applied_plans(review))
    records = {record.branch: record for record in state.tests() if record.branch}
    fixes = []
    for effect in _effects(outcome):
        verdict = verdicts.get(effect.commit, Verdict.CLEAR)
        if verdict is Verdict.KEEP or (is_applied and verdict is not Verdict.REVERT):
            made_by = [records[branch] for branch in effect.branches if branch in records]
            tests = effect.turned_green if effect.is_measured else ()
            tests = tests or tuple(record.test for record in made_by)
            fixes.append(KeptFix(effect.commit, effect.title or _title(made_by), tests, is_applied))
    return tuple(fixes)


def _effects(outcome: IntegratorReport | None) -> list[Effect]:
    """Return the measured effects of all fixes of a branch; for unmeasured fixes only their branches."""
    measured = read_measured_effects(outcome)
    branches: dict[str, list[str]] = {}
    for branch, commit in outcome.impl_commit_hashes.items() if outcome is not None else ():
        branches.setdefault(commit, []).append(branch)
    named = [Effect(commit=commit, branches=tuple(found)) for commit, found in branches.items()]
    return [*measured.values(), *(effect for effect in named if effect.commit not in measured)]


def _title(made_by: list[TestRecord]) -> str:
    """Return the summary of the first agent's report."""
    for record in made_by:
        for change in record.pulled.changes:
            if change.kind == ChangeKind.FIX_IMPL.value and change.summary.strip():
                return plain(change.summary.strip().partition("\n")[0], 160)
    return ""
