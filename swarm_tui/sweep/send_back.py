"""Replace a fix that was sent back: the agent's new commits get its place and rank on the integrated branch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from swarm_tui.adapters.git.history import read_commits
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.processes.run import finish_in_thread
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.integrator.branches import classify_commit
from swarm_tui.integrator.events import Integrated, Revision
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.commit_messages import SQUASH_PREFIX
from swarm_tui.model.commits import FIX_PREFIX, Commit
from swarm_tui.model.report import IntegratorReport
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.review.open import read_integrator_outcome
from swarm_tui.review.picking import CommitBuilder, pick_all
from swarm_tui.sweep.agent_context import before_refs
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.integrate import count_fixes, integrated_branch, set_branch, write_outcome

COMMENT_LIMIT: Final = 8_000
_MESSAGE_LIMIT: Final = 20_000


def revision_error(context: SweepContext, test: str, fix: str, comment: str) -> str:
    """Return why a fix cannot be sent back, or ""."""
    record, repository = context.state.record_of(test), context.repository
    if not comment:
        return "the comment is empty"
    if context.spec.kind != "tests":
        return "fixes of a tutorial sweep cannot be sent back"
    if not record.is_finished:
        return "its agent is already working"
    if not record.pulled.tip or repository.find(record.pulled.tip) is None:
        return "its agent's commits are gone: retry its test instead"
    if repository.is_shallow:
        return "in a shallow clone, no agent can continue from another's commits"
    if fix not in repository.list_commits(context.spec.base, context.state.integration.tip):
        return "that fix is not on the integrated branch any more"
    return ""


async def integrate_revision(context: SweepContext, test: str) -> bool:
    """Put the result of a fix that was sent back onto the branch; return False if this test's fix was not."""
    record = context.state.record_of(test)
    if record.revision is None:
        return False
    try:
        await finish_in_thread(lambda: _replace_fix(context, record, record.revision))
    except (SwarmError, OSError) as error:
        context.note(f"the revised fix cannot be integrated: {error}", level="warning", test=test)
    return True


async def integrate_pending(context: SweepContext) -> None:
    """Include results of fixes that were sent back, if an earlier engine was killed before it could."""
    waiting = [
        record.test
        for record in context.state.tests()
        if record.revision is not None and record.is_finished and record.pulled.tip not in ("", record.revision.tip)
    ]
    if not waiting or not context.state.integration.tip:
        return
    on_branch = set(context.repository.list_commits(context.spec.base, context.state.integration.tip))
    for test in waiting:
        revision = context.state.record_of(test).revision
        if revision is not None and revision.fix in on_branch:
            await integrate_revision(context, test)


@dataclass(frozen=True, slots=True)
class _Place:
    """One commit of the new branch: its changes, and the commit whose message it has."""

    commit: Commit
    picks: tuple[Commit, ...]
    message: str


def _replace_fix(context: SweepContext, record: TestRecord, revision: Revision | None) -> None:
    """Rebuild the branch with the agent's new commits in the place of the fix, and pick all later commits again."""
    assert revision is not None, "it was sent back"
    repository, spec, old_tip = context.repository, context.spec, context.state.integration.tip
    commits = read_commits(repository, spec.base, old_tip)
    made = read_commits(repository, revision.tip, record.pulled.tip) if record.pulled.tip != revision.tip else ()
    if not made:
        raise UsageError(f"its agent has no new commit: {plain(record.pulled.summary, 300)}")
    files = frozenset(known.file for known in context.state.tests() if known.file)
    places = _places(commits, revision.fix, made, files)
    with ObjectSpace(repository) as space:
        new_ids, tip = _build(space, spec.base, repository.tree_of(spec.base), places)
        space.copy_to_repository(tip, known=[old_tip, record.pulled.tip])
    # The old commits stay until the sweep is cleaned, because reviews show the difference to them.
    repository.update_ref(f"{before_refs(spec)}{old_tip[:12]}", old_tip, old=None)
    set_branch(repository, spec, tip)
    outcome = _with_new_ids(_read_outcome(context), new_ids, revision, record, made)
    write_outcome(context, outcome)
    context.record(
        Integrated(
            branch=integrated_branch(spec),
            tip=tip,
            fixes=count_fixes(context, outcome, tip),
            left_out=len(outcome.failed),
            detail=f"a fix came back from {record.agent}",
            by=context.state.integration.by,
            refused=context.state.integration.refused,
            # They are valid until the branch is built and measured again.
            problems=context.state.integration.problems,
        )
    )


def _places(commits: Sequence[Commit], fix: str, made: Sequence[Commit], files: frozenset[str]) -> list[_Place]:
    """Return the commits of the new branch, oldest first."""
    is_fix = {commit.id: classify_commit(commit.message, commit.paths, test_files=files).is_fix for commit in made}
    tests = [commit for commit in made if not is_fix[commit.id]]
    fixes = [commit for commit in made if is_fix[commit.id]]
    squashed = next((commit.id for commit in commits if commit.subject.startswith(SQUASH_PREFIX)), None)
    places = []
    for commit in commits:
        if commit.id == fix:
            # Without a commit of tests and docs, changes of tests become part of the fix.
            added = made if squashed is None else fixes
            places.append(_Place(commit, (commit, *added), _revised_message(commit, fixes)))
        elif commit.id == squashed:
            places.append(_Place(commit, (commit, *tests), commit.message))
        else:
            places.append(_Place(commit, (commit,), commit.message))
    return places


def _revised_message(old: Commit, made: Sequence[Commit]) -> str:
    """Return the message of the newest commit, with the trailers of the fix that it replaces."""
    if not made:
        return old.message
    subject, _, body = plain_lines(made[-1].message[:_MESSAGE_LIMIT]).strip().partition("\n")
    if not subject.startswith(FIX_PREFIX):
        subject = f"{FIX_PREFIX} {subject}"
    last = old.message.rstrip().rpartition("\n\n")[2]
    trailers = last if last.startswith(("Agent: ", "Test: ", "Sweep: ")) else ""
    return "\n\n".join(part for part in (subject, body.strip(), trailers) if part) + "\n"


def _build(space: ObjectSpace, base: str, base_tree: str, places: Sequence[_Place]) -> tuple[dict[str, str], str]:
    """Build the commits; return the new id of each old one, and the last id."""
    builder, tree = CommitBuilder(space, base), base_tree
    new_ids: dict[str, str] = {}
    for place in places:
        steps, commit = pick_all(space, place.picks, tree), place.commit
        blocked = next((step.merge for step in steps if step.merge is not None), None)
        if blocked is not None:
            paths = ", ".join(plain(path, 80) for path in blocked.conflict_paths[:3])
            raise SwarmError(
                f"with it {plain(commit.subject, 80)!r} conflicts in {paths}",
                "`swarm-tui integrate` builds a new branch",
            )
        tree = steps[-1].tree
        if builder.tip == commit.parent and tree == commit.tree and place.message == commit.message:
            builder.tip = commit.id
        else:
            new_ids[commit.id] = builder.add(tree, place.message, like=commit)
    return new_ids, builder.tip


def _read_outcome(context: SweepContext) -> IntegratorReport:
    return read_integrator_outcome(context.folder)[0] or IntegratorReport()


def _with_new_ids(
    outcome: IntegratorReport,
    new_ids: dict[str, str],
    revision: Revision,
    record: TestRecord,
    made: Sequence[Commit],
) -> IntegratorReport:
    """Return the report with the commits of the new branch, and the entry of the fix that was sent back."""
    extra = dict(outcome.model_extra or {})
    fix = new_ids.get(revision.fix, revision.fix)
    ranking = [_renamed(entry, new_ids, fix) for entry in extra.get("ranking") or () if isinstance(entry, dict)]
    earlier = [
        {**entry, "new": new_ids.get(str(entry.get("new")), entry.get("new"))}
        for entry in extra.get("revisions") or ()
        if isinstance(entry, dict)
    ]
    entry = {"old": revision.fix, "new": fix, "comment": revision.comment, "by": revision.by, "agent": record.agent}
    squashed = list(extra.get("squashed_commits") or ())
    if any(not commit.subject.startswith(FIX_PREFIX) for commit in made) and squashed:
        squashed += [
            {"branch": record.branch, "commit": commit.id}
            for commit in made
            if not commit.subject.startswith(FIX_PREFIX)
        ]
    update: dict[str, Any] = {
        "squashed_commit_hash": new_ids.get(outcome.squashed_commit_hash or "", outcome.squashed_commit_hash),
        "impl_commit_hashes": {
            branch: new_ids.get(commit, commit) for branch, commit in outcome.impl_commit_hashes.items()
        },
        "ranking": ranking,
        "revisions": [*earlier, entry],
        "squashed_commits": squashed,
        # The tests were run on the branch before this change.
        "final_run": None,
        "by_integrator": _renamed_notes(extra.get("by_integrator"), new_ids, revision.fix),
    }
    return IntegratorReport.model_validate(outcome.model_dump() | update)


def _renamed_notes(notes: Any, new_ids: dict[str, str], revised: str) -> dict[str, str]:
    """Return the integrator's own changes by the new commits. A revised fix is the agent's."""
    known = notes if isinstance(notes, dict) else {}
    return {new_ids.get(str(commit), str(commit)): str(note) for commit, note in known.items() if commit != revised}


def _renamed(entry: dict[str, Any], new_ids: dict[str, str], revised: str) -> dict[str, Any]:
    commit = new_ids.get(str(entry.get("commit")), entry.get("commit"))
    is_revised = commit == revised
    # The measured effects are those of the old commit.
    why_not = "it was sent back"
    forgotten = {"turned_green": [], "broken": [], "is_measured": False, "why_not": why_not}
    forgotten["why"] = f"not measured: {why_not}"
    return entry | {"commit": commit} | (forgotten if is_revised else {})
