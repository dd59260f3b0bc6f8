"""What the Fixes screen shows of a session: rows, the plan line, effects, evidence, the integrator's report."""

from __future__ import annotations

from functools import partial
from typing import Final

from swarm_tui.agents.types import agent_type_of_sweep
from swarm_tui.model.formatting import counted
from swarm_tui.model.pulled import without_marks
from swarm_tui.model.report import LeftOut
from swarm_tui.model.results import Result, State
from swarm_tui.model.test_strength import TestStrength
from swarm_tui.model.text import plain
from swarm_tui.money.forecast import cost_of_each
from swarm_tui.review.apply import ApplyPlan, subject_without
from swarm_tui.review.changes import Change
from swarm_tui.review.ranking import problem_in_short
from swarm_tui.review.verdicts import Verdict
from swarm_tui.room.draw.spans import Line
from swarm_tui.room.fixes.draw import EffectView, FixEvidence, FixView, NoFixesView, PlanView, draw_report
from swarm_tui.room.fixes.session import ReviewSession
from swarm_tui.room.fixes.tests import PASSED, TestRun
from swarm_tui.room.grid.draw import short_name
from swarm_tui.room.notifications import FINISHED_MARKS
from swarm_tui.room.store import EngineState, Store

TRAILERS: Final = ("Agent: ", "Test: ", "Sweep: ")


def fix_view(session: ReviewSession, fix: Change) -> FixView:
    verdict = session.review.verdict(fix)
    measured = session.measured.get(fix.id)
    blocked = {item.commit for item in session.preview.conflicts} if session.preview is not None else set()
    tests = [strength for strength in session.strength_of(fix) if fix.rank or _stays(session, strength, fix)]
    in_conflict = (fix.hunk_of or fix.id) in blocked and (not fix.hunk_of or fix.id in session.review.reverted)
    return FixView(
        rank=_row_number(session, fix),
        title=_row_title(session, fix),
        verdict=_way_back(session, fix) or (verdict.value if verdict else _verdict_of_parts(session, fix)),
        hunks_reverted=len(session.hunks_reverted(fix)),
        is_part=fix in session.review.known_parts,
        is_left_out=fix in session.review.left_out,
        weaker=sum(strength.is_weaker for strength in tests),
        renamed=sum(strength.is_renamed and not strength.is_weaker for strength in tests),
        added=fix.added,
        without_lines=fix.change_without_lines,
        removed=fix.removed,
        greens=len(measured.turned_green) if measured and (measured.is_measured or measured.turned_green) else None,
        reds=len(measured.broken) if measured else 0,
        agents=len(fix.agents),
        is_conflicting=in_conflict,
        is_stuck=session.alone.get(fix.id) is not None,
        origin=fix.origin,
        is_risky=bool(session.review.branch.risks_of(fix.id)),
    )


def name_with_commit(session: ReviewSession, fix: Change) -> str:
    """Return the title above the diff of a row. Test changes and hunks have no commit id."""
    is_piece = bool(fix.hunk_of) or fix in session.review.known_parts
    return session.number(fix.id) if is_piece else f"#{fix.rank} {fix.id[:9]}"


def _row_number(session: ReviewSession, fix: Change) -> int:
    parts = session.review.known_parts
    return parts.index(fix) + 1 if fix in parts else fix.position + 1 if fix.hunk_of else fix.rank


def _row_title(session: ReviewSession, fix: Change) -> str:
    if fix is not session.tests_row:
        return fix.title
    parts = session.review.known_parts
    out = [part.id for part in parts if session.review.verdict(part) is Verdict.REVERT]
    words = (counted(len(parts), "test change") if parts else "", f"{len(out)} left out" if out else "")
    title = fix.title
    if session.review.parts is not None and 0 < len(out) < len(parts):
        title = without_marks(subject_without(session.review.parts, out))
    return f"[TEST/DOC] {': '.join(filter(None, (' · '.join(filter(None, words)), title)))}"


def _way_back(session: ReviewSession, fix: Change) -> str:
    """Return the state of a fix that was sent back: `sent`, `back` (unchanged), `new`, or ""."""
    record = session.sent_back(fix)
    if record is not None:
        return (
            ""
            if session.review.verdict(fix) in (Verdict.KEEP, Verdict.REVERT) and record.is_finished
            else ("back" if record.is_finished else "sent")
        )
    return "new" if session.returned(fix) is not None and session.review.verdict(fix) is None else ""


def _verdict_of_parts(session: ReviewSession, fix: Change) -> str:
    """Return the verdict of row 0 if each of its test changes has one."""
    is_row_0 = fix is session.tests_row and bool(session.review.known_parts)
    return "keep" if is_row_0 and not session.review.open_parts else ""


def plan_view(session: ReviewSession) -> PlanView:
    review, preview = session.review, session.preview
    verdicts = [review.verdict(fix) for fix in session.fixes]
    kept, tests = verdicts.count(Verdict.KEEP), _plan_test_result(session)
    changes = session.plan_changes()
    return PlanView(
        total=len(verdicts),
        kept=kept,
        partly=verdicts.count(Verdict.PARTLY),
        reverted=verdicts.count(Verdict.REVERT),
        is_known=preview is not None,
        conflicts=tuple(
            " with ".join(filter(None, [session.number(item.commit), session.named(item.opponents)]))
            for item in (preview.conflicts if preview else ())
        ),
        commits=len(review.branch.commits) + changes.reverts - (len(preview.unchanging) if preview else 0),
        has_tests=review.branch.squashed is not None,
        parts=_parts_words(changes.parts_out, len(review.open_parts)),
        applied=session.applied,
        running=session.applying or session.running_here,
        elsewhere=session.changed_tests.elsewhere,
        tests=tests,
        problem="" if tests else problem_in_short(review.outcome),
        doubt=next(iter((*review.branch.risk_lines, *review.branch.doubts)), ""),
        cost=cost_of_each(session.state.spending, kept, len(verdicts)),
    )


def _parts_words(out: int, still_open: int) -> str:
    """Return the number of test changes left out of row 0, or else of those without a verdict."""
    if out:
        return f"{counted(out, 'test change')} out"
    return f"{counted(still_open, 'test change')} open" if still_open else ""


def plan_summary(session: ReviewSession) -> tuple[str, str]:
    """What would be applied, and the number of revert commits."""
    changes = session.plan_changes()
    words = f"{changes.reverted} reverted" + (f", {changes.in_part} in part" if changes.in_part else "")
    words += f" and {counted(changes.parts_out, 'test change')} left out" if changes.parts_out else ""
    words += f", {len(session.review.taken)} swapped in" if session.review.taken else ""
    commits = counted(changes.reverts + bool(changes.parts_out), "commit")
    return words, f"{commits}, each with the reason and your name"


def proposal_details(session: ReviewSession, proposal: ApplyPlan) -> list[str]:
    """Return what the user must know before applying the plan."""
    details = _doubts_of_plan(session)
    if session.review.open_fixes:
        details.append(f"{counted(len(session.review.open_fixes), 'fix', 'fixes')} still open, will be kept")
    if proposal.replaces:
        details.append(f"replaces the branch of an earlier apply ({proposal.replaces[:9]})")
    signed = ", signed" if proposal.is_signed else ""
    details.append(f"as {proposal.author.name} <{proposal.author.email}>{signed}")
    return details + [f"+ {subject}" for subject in proposal.subjects]


def _doubts_of_plan(session: ReviewSession) -> list[str]:
    """Return warnings about this plan to show before it is applied."""
    found = []
    for fix in session.fixes:
        measured = session.measured.get(fix.id)
        if measured and measured.is_measured and measured.broken and fix.id not in session.review.reverted:
            more = f" and {len(measured.broken) - 1} more" if len(measured.broken) > 1 else ""
            found.append(f"! #{fix.rank} is kept and breaks {plain(measured.broken[0], 100)}{more}")
    weaker = [strength for strength in session.changed_tests.weaker if _stays(session, strength)]
    if weaker:
        found.append(f"! {counted(len(weaker), 'weaker test')}, first {plain(weaker[0].test, 100)}")
    reverted = (session.measured[commit] for commit in session.review.reverted if commit in session.measured)
    given_up = {test for measured in reverted for test in measured.turned_green}
    if given_up:
        found.append(f"! reverted fixes had turned {counted(len(given_up), 'test')} green")
    run = session.test_runner.run_of_plan
    if run is not None and run.is_over and run.reverted == session.review.reverted and run.went_red:
        red = counted(len(run.went_red), "test")
        found.append(f"! without the reverted fixes {red} went red: {plain(run.went_red[0], 100)}")
    return found


def _stays(session: ReviewSession, strength: TestStrength, row: Change | None = None) -> bool:
    """Return whether every test change of this test is kept. The row itself is ignored."""
    out = (part for part in session.review.known_parts if part.id in session.review.reverted and part is not row)
    return not any(strength.test == each.test for part in out for each in session.strength_of(part))


def _plan_test_result(session: ReviewSession) -> str:
    run = session.test_runner.run_of_plan
    if run is None or not run.is_over or run.reverted != session.review.reverted or not run.after:
        return ""
    passed = sum(outcome == PASSED for outcome in run.after.values())
    red = len(run.went_red)
    return f"{passed} of {len(run.tests)} tests pass" + (f", {red} went red" if red else "")


def effect_view(session: ReviewSession, fix: Change) -> EffectView:
    effect = session.known_effect(fix)
    conflict = session.conflict_of(fix)
    measured = session.measured.get(fix.id)
    run = _finished_run_of(session, fix)
    return EffectView(
        is_reverted=fix.id in session.review.reverted,
        is_part=fix.rank == 0,
        is_left_out=fix in session.review.left_out,
        is_known=effect is not None,
        conflict_with=tuple(session.number(other) for other in conflict.opponents) if conflict else (),
        conflict_paths=conflict.paths if conflict else (),
        is_unchanging=effect is not None and (fix.hunk_of or fix.id) in effect.unchanging,
        tests_red=len(run.went_red) if run else None,
        tests_run=len(run.after) if run else 0,
        why_rank="" if fix.rank == 0 else f"rank {fix.rank}: {measured.why}" if measured and measured.why else "",
    )


def report_lines(session: ReviewSession, width: int) -> list[Line]:
    return draw_report(session.review.outcome, session.review.branch, partial(_maker_of, session), width)


def why_no_report(session: ReviewSession) -> str:
    return "" if report_lines(session, 80) else "the integrator reported nothing except its fixes"


def _maker_of(session: ReviewSession, left: LeftOut) -> str:
    """Return the source of a left-out change: the test, else the branch or the commit."""
    record = session.record_of(left.branch)
    return record.test if record else left.branch or left.commit[:12]


def _finished_run_of(session: ReviewSession, fix: Change) -> TestRun | None:
    """Return the test run without a fix, if it has finished and still matches this plan."""
    run = session.test_runner.run_of_fix(fix)
    is_usable = run is not None and run.is_over and run.after and run.reverted == session.with_it_reverted(fix)
    return run if is_usable else None


def _runs_of(session: ReviewSession, fix: Change) -> tuple[tuple[str, bool | None, str], ...]:
    run = session.test_runner.run_of_fix(fix)
    if run is None:
        return ()
    runs: list[tuple[str, bool | None, str]] = []
    for test in run.tests:
        outcome, before = run.after.get(test), run.before.get(test)
        passed = None if outcome is None else outcome == PASSED
        was_red = before not in (None, PASSED)
        runs.append((test, passed, "red with it too" if was_red and not passed else ""))
    if run.complaint:
        runs.append(("", False, run.complaint))
    return tuple(runs)


def _way_back_words(session: ReviewSession, fix: Change) -> tuple[str, str]:
    """Return who sent a fix back and the result in one line, and the comment."""
    record, returned = session.sent_back(fix), session.returned(fix)
    if record is not None and record.revision is not None:
        came = "its agent has changed nothing" if record.is_finished else "its agent is working on it"
        return f"sent back by {record.revision.by}: {came}", record.revision.comment
    if returned is not None:
        return f"revised by its agent, sent back by {returned.by}: press v to see the difference", returned.comment
    return "", ""


def fix_evidence(session: ReviewSession, fix: Change) -> FixEvidence:
    line = session.review.verdict_line(fix)
    measured = session.measured.get(fix.id)
    return FixEvidence(
        message=body_of(fix.commit.message),
        author=f"{fix.commit.author_name} <{fix.commit.author_email}>",
        verdict=line.verdict.value if line else "",
        verdict_by=line.by if line else "",
        verdict_age=session.now - line.at if line else None,
        verdict_why=line.why if line else "",
        turned_green=measured.turned_green[:20] if measured else (),
        broken=measured.broken[:20] if measured else (),
        source=measured.source if measured else "",
        agents=() if fix is session.tests_row else tuple(session.records_of(fix)),
        runs=_runs_of(session, fix),
        strength=session.strength_of(fix),
        sent_back=_way_back_words(session, fix),
        risks=session.review.branch.risks_of(fix.hunk_of or fix.id),
        origin=f"{fix.origin}: {fix.by_integrator}" if fix.origin else "",
        hunks_reverted=tuple(f"{session.number(hunk.id)} {hunk.title}" for hunk in session.hunks_reverted(fix)),
    )


def body_of(message: str) -> str:
    """Return a commit's message without its subject and the integrator's trailers, which are shown elsewhere."""
    lines = message.strip().split("\n")[1:]
    while lines and (not lines[-1].strip() or lines[-1].startswith(TRAILERS)):
        lines.pop()
    return "\n".join(lines).strip("\n")


def no_fixes_view(store: Store) -> NoFixesView:
    """Return the progress of the sweep."""
    state, spec = store.state, store.opened.spec
    integration, counts = state.integration, state.counts
    return NoFixesView(
        sweep=plain(spec.sweep, 60),
        integration=integration.state,
        detail=integration.detail,
        progress=store.integration_progress(),
        integrating_for=store.clock() - integration.started_at if integration.started_at is not None else 0.0,
        done=sum(counts[mark] for mark in FINISHED_MARKS),
        total=len(state.records),
        working=state.active,
        waiting=counts[State.WAITING.value],
        queued=counts[State.QUEUED.value],
        is_living=store.engine in (EngineState.RUNNING, EngineState.ELSEWHERE),
        has_integrator=spec.integrator != "none",
        is_simulated=agent_type_of_sweep(spec).is_simulated,
        coming=tuple(
            (short_name(record), plain(record.pulled.summary, 200))
            for record in state.tests()
            if record.result is Result.IMPL_FIX
        ),
    )
