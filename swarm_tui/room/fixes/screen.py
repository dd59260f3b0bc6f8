"""Screen 3: layout and actions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import ClassVar

from textual.containers import Container
from textual.widget import Widget
from textual.worker import Worker, WorkType

from swarm_tui.errors import SwarmError
from swarm_tui.journal.requests import RequestKind
from swarm_tui.model.commits import Diff
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain
from swarm_tui.review.changes import Change
from swarm_tui.review.open import hunk_text
from swarm_tui.review.review import Review
from swarm_tui.review.verdicts import Verdict
from swarm_tui.room.actions import action
from swarm_tui.room.dialog import Choosable, ConfirmScreen, PickScreen, ReadingScreen
from swarm_tui.room.draw.code import draw_ahead
from swarm_tui.room.draw.frame import LOW
from swarm_tui.room.draw.spans import Line, Span, wrap_text
from swarm_tui.room.external import run_in_terminal
from swarm_tui.room.fixes.dialogs import apply_with_question, open_plan_tree, resolve_conflict, swap_in
from swarm_tui.room.fixes.draw import (
    draw_effect,
    draw_evidence,
    draw_fix,
    draw_no_fixes,
    draw_plan,
    no_fixes_message,
)
from swarm_tui.room.fixes.session import ReviewSession, open_session
from swarm_tui.room.fixes.view import (
    effect_view,
    fix_evidence,
    fix_view,
    name_with_commit,
    no_fixes_view,
    plan_summary,
    plan_view,
    report_lines,
    why_no_report,
)
from swarm_tui.room.screen import RoomScreen
from swarm_tui.room.store import EngineState, SweepChanged
from swarm_tui.room.widgets.border import PanelBorder
from swarm_tui.room.widgets.diff import EMPTY, DiffLines
from swarm_tui.room.widgets.lines import Band, Lines, TextLines

EVIDENCE_ROWS = 34
"""From this height the evidence has a separate panel below the diff."""
LIST_ROWS = 14
"""Maximum height of the list when it is above the diff."""
CHECK_SECONDS = 2.0
"""Seconds between checks whether the branch was rewritten, or can be read again after an error."""
REST_SECONDS = 0.03
"""Seconds that the cursor must rest on a fix before more than its diff is computed."""


class FixLines(Lines):
    """The rows of a session."""

    def __init__(self, moved: Callable[[], None]) -> None:
        super().__init__(id="fixes")
        self._moved = moved
        self.session: ReviewSession | None = None
        self.rows: list[Change] = []

    def move_to(self, index: int) -> None:
        before = self.cursor
        super().move_to(index)
        if self.cursor != before:
            # A message would arrive after the cursor is drawn, and the diff would appear a frame later.
            self._moved()

    def line_count(self) -> int:
        return len(self.rows)

    def draw_line(self, index: int, width: int) -> Line:
        assert self.session is not None, "the list is empty without a review"
        return draw_fix(fix_view(self.session, self.rows[index]), width)


def of_fix(reason: Callable[[ReviewSession, Change], str]) -> Callable[[FixesScreen], str]:
    """Return a function that returns why an action on the fix under the cursor is unavailable."""
    return lambda screen: screen.why_no_fix() or reason(*screen.reviewed())


def of_review(reason: Callable[[ReviewSession], str]) -> Callable[[FixesScreen], str]:
    """Return a function that returns why an action on the review is unavailable."""
    return lambda screen: screen.why_no_fix() if screen.session is None else reason(screen.session)


class FixesScreen(RoomScreen):
    """The review of the integrated branch. Its `ReviewSession` decides; the screen shows."""

    NAME = "fixes"
    TITLE_WORD = "fixes"
    SIDE_BY_SIDE = 150
    can_filter: ClassVar[bool] = True
    shows_files: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.session: ReviewSession | None = None
        self.plan = Band(id="plan")
        self.no_fixes = TextLines(id="no-fixes")
        self.lines = FixLines(self._row_moved)
        self.lines.add_class("main")
        self.diff = DiffLines(id="diff")
        self.evidence = TextLines(id="evidence")
        self.reading = Container(self.diff, self.evidence, id="reading")
        self.effect = Band(id="effect")
        self.panel_border: PanelBorder = PanelBorder(self, self.reading)
        self.wants_evidence: bool | None = None
        self._shown_row: Change | None = None
        self._test_run: Worker[None] | None = None
        self._is_opening = False
        self._problem = ""
        self._opened_for: tuple[str | None, str] | None = None
        self._checked_at = float("-inf")
        self._closing_line = ""

    def compose_body(self) -> Iterable[Widget]:
        yield self.plan
        yield self.no_fixes
        yield Container(self.lines, self.reading, id="body")
        yield self.effect

    # The review.

    @property
    def current_fix(self) -> Change | None:
        return self.session.current if self.session is not None else None

    @property
    def closing_line(self) -> str:
        """Result of the review for scripts. It is still available after the screen is closed."""
        return self.session.review.closing_line() if self.session is not None else self._closing_line

    @property
    def _has_branch(self) -> bool:
        integration = self.store.state.integration
        return self.room.given_review is not None or bool(integration.branch or integration.tip)

    @property
    def is_loading(self) -> bool:
        return self.session is None and (super().is_loading or (self._has_branch and not self._problem))

    def why_no_fix(self) -> str:
        if self.session is None:
            return self._problem or ("the branch is being read" if self._is_opening else "no fixes yet")
        return "" if self.current_fix is not None else "no fix under the cursor"

    @property
    def _open_session(self) -> ReviewSession:
        """The review, for actions that are unavailable without one."""
        assert self.session is not None, "not available without a review"
        return self.session

    def reviewed(self) -> tuple[ReviewSession, Change]:
        """Return the review and the fix under the cursor. Call it only if `why_no_fix` returns ""."""
        assert self.session is not None, "not available without a review"
        assert self.session.current is not None, "not available without a fix"
        return self.session, self.session.current

    def start(self, work: Callable[[], Awaitable[None]], group: str) -> Worker[None]:
        """Start a worker in place of the worker of this group. Its error is shown as a message."""

        async def run() -> None:
            try:
                await work()
            except SwarmError as error:
                self.show_message(str(error), "error")

        # Pass the function and not its coroutine: a worker that is replaced before it starts would leave it un-awaited.
        return self.run_worker(run, group=f"fixes: {group}", exclusive=True, exit_on_error=False)

    def show_change(self, change: SweepChanged) -> None:
        self._update_review()
        if self.session is None:
            self._show_no_fixes()
        elif change.tests:
            self.lines.lines_changed(range(len(self.lines.rows)))

    def _update_review(self) -> None:
        """Open the review if there is a new branch. Read verdicts from other rooms."""
        if self.room.opened_review is not None:
            self._show_review(self.room.open_review())
            return
        integration = self.store.state.integration
        is_retry = self.session is None and self._problem != "" and self._is_check_due()
        is_due = is_retry or (integration.branch, integration.tip) != self._opened_for
        if self._has_branch and not self._is_opening and self.store.is_loaded and is_due:
            self._opened_for = (integration.branch, integration.tip)
            self._is_opening = True
            self.start(self._open_review, "open")
        elif self.session is not None:
            if self.session.review.refresh():
                self.session.change_plan()
            if not self._is_opening and self._is_check_due():
                self.start(self._check_branch, "check")

    def _is_check_due(self) -> bool:
        now = time.monotonic()
        if now - self._checked_at < CHECK_SECONDS:
            return False
        self._checked_at = now
        return True

    async def _check_branch(self) -> None:
        """Open the review again if the branch was rewritten."""
        session = self.session
        if session is not None and await asyncio.to_thread(session.review.is_rewritten) and session is self.session:
            self._is_opening = True
            await self._open_review()
            self.show_message("the branch was rewritten; verdicts on unchanged fixes are kept", "warning")

    async def _open_review(self) -> None:
        try:
            review = await asyncio.to_thread(self.room.open_review)
            await asyncio.to_thread(review.warm_up)
        except SwarmError as error:
            self._problem = str(error)
            await self._close_review()
            return
        finally:
            self._is_opening = False
        await self._close_review()
        self._show_review(review)

    def _show_review(self, review: Review) -> None:
        integration = self.store.state.integration
        self._opened_for = (integration.branch, integration.tip)
        self._problem = ""
        spec = self.store.opened.spec if self.room.given_review is None else None
        session = open_session(review, self, lambda: self.store.state, spec, self.store.clock, self.room.test_command)
        self.session = self.lines.session = session
        # The fix that was under the cursor last, else the first open one.
        last = session.row_in_place_of(self._shown_row) if self._shown_row is not None else None
        session.list_rows(last or session.current)
        if self.has_class("-bare"):
            self.remove_class("-bare")
            self.call_after_refresh(self.focus_main)
        # Draw the list first: colouring the first diff requires an import of its language.
        self._shown_row = session.current
        self.call_after_refresh(self._show_row)
        session.change_plan()
        self.draw_frame()
        self.room.key_queue.go_on_later()
        self.start(partial(self._load_rest, session), "rest")

    async def _load_rest(self, session: ReviewSession) -> None:
        await session.load_rest()
        # This runs until the review is closed.
        follow: WorkType[None] = session.follow_strength
        self.run_worker(follow, group="test strength", exclusive=True, exit_on_error=False)

    async def _close_review(self) -> None:
        session, self.session = self.session, None
        if session is None:
            return
        self._shown_row, self._closing_line = session.current, session.review.closing_line()
        if self._test_run is not None:
            self._test_run.cancel()
        self.lines.session, self.lines.rows = None, []
        self.lines.redraw()
        await session.close()

    async def on_unmount(self) -> None:
        await self._close_review()

    # Drawing.

    def show_session(self) -> None:
        """Draw the plan line, the rows, and the details of the row under the cursor."""
        session = self.session
        if session is None:
            return
        self._show_plan()
        is_same_row = session.current is self._shown_row
        place = session.rows.index(session.current) if session.current is not None else 0
        if self.lines.rows is not session.rows:
            self.lines.rows, self.lines.cursor = session.rows, place
            self.lines.redraw()
            self.lines.show_line(place)
            self._place_list()
        self.lines.lines_changed(range(len(session.rows)))
        self.lines.move_to(place)
        self._draw_title()
        if is_same_row:
            self._show_evidence(keeps_place=True)
            self._show_effect()
        elif self._shown_row is not session.current:
            self._show_row()

    def _row_moved(self) -> None:
        if self.session is not None:
            self.session.current = self.lines.rows[self.lines.cursor]
        self._draw_title()
        self._show_row()
        self.draw_footer()

    def _draw_title(self) -> None:
        if self.session is not None:
            shown = len(self.lines.rows)
            self.lines.title(self.session.title, f"{min(self.lines.cursor + 1, shown)} of {shown}")

    def _show_plan(self) -> None:
        if self.session is not None:
            self.plan.show([draw_plan(plan_view(self.session), self.app.size.width)])

    def _show_row(self) -> None:
        """Show the row under the cursor: its diff immediately if it is loaded, the rest when the cursor rests."""
        session, row = self.session, self.current_fix
        self._shown_row = row
        if session is None or row is None:
            self.diff.show(EMPTY)
            return
        diff = session.review.known_diff(row)
        if diff is not None:
            self._show_diff(diff, f"{name_with_commit(session, row)} {row.title}")
        self._show_evidence()
        self._show_effect()
        self.start(partial(self._load_around, session, row), "read")

    async def _load_around(self, session: ReviewSession, row: Change) -> None:
        """Load the diff of a row, its effect, and then the diffs of its neighbours."""
        diff = await asyncio.to_thread(session.review.diff, row)
        if session.current is row:
            self._show_diff(diff, f"{name_with_commit(session, row)} {row.title}")
        # Threads would slow down drawing, so loading ahead waits for the frame that shows this fix.
        await asyncio.sleep(REST_SECONDS)
        await session.compute_effect(row)
        self._show_effect()
        place = session.rows.index(row) if row in session.rows else 0
        for index in (place, place + 1, place - 1, place + 2, place + 3):
            if 0 <= index < len(session.rows):
                diff = await asyncio.to_thread(session.review.diff, session.rows[index])
                await asyncio.to_thread(draw_ahead, diff, self.diff.visible_rows)
                await asyncio.to_thread(session.review.content, session.rows[index])

    def _show_diff(self, diff: Diff, title: str) -> None:
        self.diff.show(diff)
        name = plain(diff.files[0].path, 200) if len(diff.files) == 1 else counted(len(diff.files), "file")
        self.diff.title(title, name)

    def _show_evidence(self, *, keeps_place: bool = False) -> None:
        """Show the evidence for the row under the cursor, from its beginning or from the last scroll position."""
        session, row = self.session, self.current_fix
        if session is None or row is None or not self.has_class("-evidence"):
            return
        self.evidence.show(draw_evidence(fix_evidence(session, row), max(20, self.evidence.text_width)))
        if not keeps_place:
            self.evidence.scroll_rows(0)
        agents = counted(len(row.agents), "agent") if row.agents else ""
        self.evidence.title(f"Evidence for {session.number(row.id)} {row.title}", agents)

    def _show_effect(self) -> None:
        """Show the effect of reverting the row under the cursor, if it is computed."""
        session, row = self.session, self.current_fix
        if session is not None and row is not None:
            width, height = self.app.size
            self.effect.show([draw_effect(effect_view(session, row), width)] if height >= LOW else [])

    def _show_no_fixes(self) -> None:
        """Show why the list of fixes is empty: the progress of the sweep, or the problem with its branch."""
        self.effect.show([])
        if self._is_opening or not self.store.is_loaded:
            self.plan.show([[Span(" reading the integrated branch …", "dim")]])
            return
        self.plan.show([])
        self.add_class("-bare")
        width = max(20, self.no_fixes.text_width)
        view = no_fixes_view(self.store)
        title, text, role = no_fixes_message(view)
        if self._problem and not view.is_simulated:
            title, text, role = "No fixes", self._problem, "warning"
        self.no_fixes.title(title)
        if self.room.given_review is None:
            self.no_fixes.show(draw_no_fixes(view, text, role, width))
        else:
            self.no_fixes.show([[Span(row, role)] for row in wrap_text(text, width, 12)])

    # The frame.

    @property
    def focused_lines(self) -> Lines | None:
        return self.no_fixes if self.has_class("-bare") else self.lines

    def on_resize(self, event: object) -> None:
        self.set_class(self.size.height >= EVIDENCE_ROWS, "-tall")
        self._place_evidence()
        self._place_list()
        self._show_plan()
        self._show_effect()

    def on_lines_resized(self, event: Lines.Resized) -> None:
        super().on_lines_resized(event)
        self._show_evidence(keeps_place=True)

    def border_moved(self) -> None:
        self._place_list()

    def _place_list(self) -> None:
        """Size the list: next to the diff the same height, above the diff the minimum. A dragged border wins."""
        rows = len(self.session.unfiltered_rows) + 2 if self.session is not None else LIST_ROWS
        is_alone = self.has_class("-wide") or self.has_class("-low")
        styles, is_dragged = self.lines.styles, self.panel_border.has_share
        styles.height = "1fr" if is_alone or is_dragged else min(LIST_ROWS, rows)
        for rule, value in (("width", "1fr"), ("max_width", "100%"), ("max_height", "100%")):
            if is_dragged:
                setattr(styles, rule, value)
            else:
                styles.clear_rule(rule)

    def _place_evidence(self) -> None:
        is_shown = self.size.height >= EVIDENCE_ROWS if self.wants_evidence is None else self.wants_evidence
        self.set_class(is_shown, "-evidence")

    def draw_frame(self) -> None:
        if self.room.given_review is None:
            super().draw_frame()
            return
        # A branch outside a sweep has no other screens.
        title = [Span(" "), Span(plain(self.store.opened.spec.sweep, 100), "strong"), Span(" · ", "faint")]
        self.header.show([[*title, Span("fixes", "accent")]])
        self.draw_footer()

    def current_tests(self) -> tuple[str, ...]:
        session, fix = self.session, self.current_fix
        if session is None or fix is None or fix is session.tests_row:
            return ()
        return tuple(record.test for record in session.records_of(fix))

    def name_to_copy(self) -> str:
        return self.current_fix.id if self.current_fix else ""

    @property
    def filter_words(self) -> str:  # type: ignore[override]
        return self.session.filter_words if self.session is not None else ""

    def set_filter(self, words: str) -> None:
        if self.session is not None:
            self.session.set_filter(words)
            self.show_session()

    def leave_inner(self) -> bool:
        return self.session is not None and self.session.leave_split()

    # Verdicts.

    @action("y", "fixes.keep", "keep", "Keep this fix, test change or hunk; go to the next open one",
            why_no_fix, (Verdict.KEEP,))  # fmt: skip
    @action("n", "fixes.revert", "revert", "Revert this fix or hunk, or leave out this test change; go to the next",
            why_no_fix, (Verdict.REVERT,))  # fmt: skip
    @action("l", "fixes.later", "later", "Decide later; go to the next open one", why_no_fix, (Verdict.LATER,))
    @action("u", "fixes.clear", "", "Remove the verdict on this fix", why_no_fix, (Verdict.CLEAR,))
    def decide(self, verdict: Verdict) -> None:
        session, fix = self.reviewed()
        session.decide(fix, verdict)

    def why_not_undo(self) -> str:
        return "" if self.session is not None else "nothing to undo"

    @action("z", "fixes.undo", "undo", "Undo your last verdicts", why_not_undo, rank=6)
    def undo(self) -> None:
        self._open_session.undo()

    @action("Z", "fixes.redo", "", "Redo the verdicts that you undid", why_not_undo)
    def redo(self) -> None:
        self._open_session.redo()

    @action("H", "fixes.hunks", "hunks", "Keep or revert this fix hunk by hunk", of_fix(ReviewSession.why_not_split),
            rank=6)  # fmt: skip
    def split(self) -> None:
        session, fix = self.reviewed()
        self.start(partial(session.split, fix), "parts")

    # The plan.

    @action("A", "fixes.apply", "apply", "Apply the plan on a separate branch; asks first",
            of_review(ReviewSession.why_not_apply))  # fmt: skip
    def apply(self) -> None:
        session = self._open_session
        words, detail = plan_summary(session)
        entries = [
            Choosable("revert", "revert commits on top", detail, "r"),
            Choosable("drop", "a new branch without them", "a history without these commits", "d"),
        ]

        def apply(value: str) -> None:
            # Keys typed before the question is shown are not verdicts.
            self.room.key_queue.hold()
            self.start(partial(apply_with_question, self, session, is_drop=value == "drop"), "apply")

        self.choose(f"Apply: {words}", entries, apply)

    async def confirm(self, question: str, details: Iterable[str] = ()) -> bool:
        """Ask a question in a dialog. Call it from a worker."""
        return await self.room.push_screen(ConfirmScreen(question, details), wait_for_dismiss=True)

    async def pick(self, title: str, entries: Iterable[Choosable]) -> str:
        """Let the user choose an entry. Return its value, or "". Call it from a worker."""
        values = await self.room.push_screen(PickScreen(title, list(entries)), wait_for_dismiss=True)
        return values[0] if values else ""

    @action("e", "fixes.evidence", "evidence", "Show or hide the evidence: message, agents, tests, block", why_no_fix)
    def switch_evidence(self) -> None:
        self.wants_evidence = not self.has_class("-evidence")
        self._place_evidence()
        self.call_after_refresh(self._show_evidence)

    @action("c", "fixes.resolve", "conflict", "Resolve a conflict between this revert and a kept fix",
            of_fix(ReviewSession.why_not_resolve))  # fmt: skip
    def resolve(self) -> None:
        session, fix = self.reviewed()
        self.show_message(f"searching for conflicts of {session.number(fix.id)} …")
        self.start(partial(resolve_conflict, self, session, fix), "resolve")

    # Sending back.

    def why_not_send(self) -> str:
        not_now = self.store.why_no_requests() if self.store.engine is EngineState.ELSEWHERE else ""
        return self.why_no_fix() or ReviewSession.why_not_send_back(*self.reviewed()) or not_now

    @action("r", "fixes.send_back", "send back", "Send this fix or hunk back to its agent, with a comment",
            why_not_send, opens_box=True)  # fmt: skip
    def send_back(self) -> None:
        session, fix = self.reviewed()
        record = session.records_of(fix)[0]

        async def deliver(comment: str) -> str:
            try:
                self._send_back(session, fix, comment.strip())
            except SwarmError as error:
                return str(error)
            return ""

        self.write_text([record], deliver, "nothing was sent back")

    def _send_back(self, session: ReviewSession, fix: Change, comment: str) -> None:
        """Request that the engine sends a fix back. Resume an engine that has exited."""
        record = session.records_of(fix)[0]
        hunk = hunk_text(session.review, fix) or None
        commit = session.fix_of(fix).id
        self.store.send_request(RequestKind.SEND_BACK, tests=[record.test], text=comment, fix=commit, hunk=hunk)
        session.decide_all([(fix, Verdict.LATER)], comment)
        started = "" if self.store.engine is EngineState.RUNNING else f": {self.room.resume_sweep()}"
        self.show_message(f"{session.number(fix.id)}: requested to send it back to {record.agent}{started}")

    @action("v", "fixes.versions", "", "Show what its agent changed after it was sent back",
            of_fix(ReviewSession.why_no_difference))  # fmt: skip
    def show_difference(self) -> None:
        self.start(partial(self._show_difference, *self.reviewed()), "net")

    async def _show_difference(self, session: ReviewSession, fix: Change) -> None:
        diff = await asyncio.to_thread(session.difference, fix)
        if diff is None or not diff.files:
            gone = "the previous commit is missing" if diff is None else "no difference to the previous version"
            self.show_message(gone, "warning")
        else:
            self._show_diff(diff, f"#{fix.rank} since it was sent back")

    # Test runs. One runs at a time.

    def why_not_run(self) -> str:
        return (self.session.why_no_run() if self.session is not None else "") or self.why_no_fix()

    @action("T", "fixes.test", "test", "Run the tests of this fix without it, to see which fail", why_not_run)
    def run_without_fix(self) -> None:
        session, fix = self.reviewed()
        self._test_run = self.start(partial(session.run_without, fix), "tests")

    @action("V", "fixes.test_plan", "", "Run all tests of the sweep on the plan", why_not_run)
    def run_plan(self) -> None:
        self._test_run = self.start(self._open_session.run_plan, "tests")

    @action("W", "fixes.strength", "weaker", "Measure whether changed tests detect fewer bugs than before",
            lambda screen: screen.why_not_run() or screen.session.why_not_measure())  # fmt: skip
    def measure_strength(self) -> None:
        self._test_run = self.start(self._open_session.measure_strength, "tests")

    def why_not_stop(self) -> str:
        return "" if self.session is not None and self.session.running else "no test run in the background"

    @action("X", "fixes.stop", "", "Stop the test run in the background", why_not_stop)
    def stop_run(self) -> None:
        """Stop the test run of this room, or else a measurement in another process. Results so far are kept."""
        if self._test_run is not None and self._open_session.running_here:
            self._test_run.cancel()
            self.show_message("stopped")
        else:
            self._open_session.changed_tests.stop_elsewhere()
            self.show_message("stopped: press W to continue")

    # Views of the branch.

    @action("s", "fixes.swap", "", "Swap a left-out fix in for the fixes it conflicts with, or out again",
            of_fix(ReviewSession.why_not_swap))  # fmt: skip
    def swap(self) -> None:
        session, fix = self.reviewed()
        if fix in session.review.taken:
            session.swap_out(fix)
        else:
            self.show_message(f"searching for conflicts of #{fix.rank} …")
            self.start(partial(swap_in, self, session, fix), "swap")

    @action("R", "fixes.report", "report", "Show the integrator's report: left out, normalized, questions",
            of_review(why_no_report))  # fmt: skip
    def open_report(self) -> None:
        self.room.push_screen(ReadingScreen("The integrator's report", partial(report_lines, self._open_session)))

    @action("D", "fixes.net", "", "Show the plan as one diff against the base, until you move", why_no_fix)
    def show_net_diff(self) -> None:
        self.start(partial(self._show_net_diff, self._open_session), "net")

    async def _show_net_diff(self, session: ReviewSession) -> None:
        diff = await asyncio.to_thread(session.review.net_diff)
        if diff.files:
            self._show_diff(diff, "The plan against the base")
            return
        is_conflicting = session.preview is not None and not session.preview.is_clean
        self.show_message("the plan has conflicts, so it has no diff" if is_conflicting else "no difference")

    @action("o", "fixes.pager", "", "Open the commit in git's pager", why_no_fix)
    def open_commit(self) -> None:
        session, fix = self.reviewed()
        if fix in session.review.known_parts:
            self.show_message("test changes have no commit: press o on row 0 to open the whole commit", "warning")
            return
        words = ("git", "--paginate", "show", "--stat", "--patch", "--no-ext-diff", fix.hunk_of or fix.id, "--")
        # By default git tells less to exit at once if everything fits on the screen.
        problem = run_in_terminal(self.room, words, session.review.repository.root, {"LESS": "R"})
        if problem:
            self.show_message(problem, "error")

    @action("O", "fixes.tree", "", "Open the tree of the plan in your editor, in a scratch folder", why_no_fix)
    def open_tree(self) -> None:
        self.start(partial(open_plan_tree, self, self._open_session.review), "tree")

    @action("J", "fixes.diff_down", "diff", "Scroll the diff down", None, (3,), is_listed=False)
    @action("K", "fixes.diff_up", "", "Scroll the diff up", None, (-3,), is_listed=False)
    def scroll_reading(self, rows: int) -> None:
        has_evidence_only = self.has_class("-evidence") and not self.has_class("-tall")
        lines = self.evidence if has_evidence_only else self.diff
        lines.move(rows)

    @action("]", "fixes.next_hunk", "", "Go to the next hunk", None, (1,))
    @action("[", "fixes.previous_hunk", "", "Go to the previous hunk", None, (-1,))
    def go_to_hunk(self, direction: int) -> None:
        if not self.diff.move_hunk(direction):
            self.show_message(f"this is the {'last' if direction > 0 else 'first'} hunk")

    @action("ctrl+n", "fixes.next_match", "", "Go to the next fix that matches the filter", None, (1,), is_listed=False)
    @action("ctrl+p", "fixes.previous_match", "", "Go to the previous match", None, (-1,), is_listed=False)
    def go_to_match(self, step: int) -> None:
        if self.lines.rows:
            self.lines.move_to((self.lines.cursor + step) % len(self.lines.rows))

    def why_not_open(self) -> str:
        is_tests_row = self.session is not None and self.current_fix is not None and self.current_fix.rank == 0
        return "" if is_tests_row or self.current_tests() else "no test of this sweep is linked to this fix"

    @action("enter", "fixes.open", "open", "Review the test changes of row 0; else show the test of this fix",
            why_not_open, is_listed=False)  # fmt: skip
    def open_row(self) -> None:
        session, fix = self.reviewed()
        if fix is session.tests_row:
            self.split()
        else:
            self.room.show_test(self.current_tests()[0])
