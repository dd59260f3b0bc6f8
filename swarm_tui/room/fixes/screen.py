"""Screen 3: layout and actions: verdicts, undo, load."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import ClassVar, Final

from textual.containers import Container
from textual.widget import Widget
from textual.worker import Worker, WorkType

from swarm_tui.agents.types import agent_type_of_sweep
from swarm_tui.errors import SwarmError
from swarm_tui.model.results import Result, State
from swarm_tui.model.text import plain
from swarm_tui.review.changes import Fix
from swarm_tui.review.review import Review
from swarm_tui.review.verdicts import Verdict
from swarm_tui.room.actions import Action, FixesServices, ScreenServices
from swarm_tui.room.draw.spans import Line, Span, wrap_text
from swarm_tui.room.fixes.apply import PlanApplication, PlanPanel, SendingBack
from swarm_tui.room.fixes.conflict import ConflictResolution, Swapping
from swarm_tui.room.fixes.detail import ExternalView, FixDetails, PartsWalk
from swarm_tui.room.fixes.draw import NoFixesFacts, draw_fix, draw_no_fixes, no_fixes_message
from swarm_tui.room.fixes.session import (
    ReviewState,
    runner_of_sweep,
    runner_without_sweep,
    tests_of_sweep,
    tests_without_sweep,
)
from swarm_tui.room.fixes.tests import TestRunCommands
from swarm_tui.room.grid.draw import short_name
from swarm_tui.room.grid.draw_layout import fits_words
from swarm_tui.room.notifications import FINISHED_MARKS
from swarm_tui.room.screen import RoomScreen
from swarm_tui.room.store import EngineState, Store, SweepChanged
from swarm_tui.room.widgets.border import PanelBorder
from swarm_tui.room.widgets.lines import Lines, TextLines


class NoFixesPanel:
    """Shows why the list of fixes is empty."""

    def __init__(self, screen: ScreenServices) -> None:
        self._screen = screen
        self.lines = TextLines(id="no-fixes")

    def show(self, problem: str) -> None:
        """Show the progress of the sweep, or the problem with its branch."""
        width = max(20, self.lines.text_width)
        facts = no_fixes_facts(self._screen.store)
        if problem and not facts.is_simulated:
            title, text, role = "No fixes", problem, "warning"
        else:
            title, text, role = no_fixes_message(facts)
        self.lines.title(title)
        if self._screen.room.given_review is None:
            self.lines.show(draw_no_fixes(facts, text, role, width))
        else:
            self.lines.show([[Span(row, role)] for row in wrap_text(text, width, 12)])


def no_fixes_facts(store: Store) -> NoFixesFacts:
    """Return the progress of the sweep."""
    state, spec = store.state, store.opened.spec
    integration, counts = state.integration, state.counts
    return NoFixesFacts(
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
            (short_name(record), plain(record.harvest.summary, 200))
            for record in state.tests()
            if record.result is Result.IMPL_FIX
        ),
    )


CHECK_SECONDS = 2.0
"""Seconds between checks whether the branch was rewritten, or can be read again after an error."""


class ReviewLoader:
    """Holds the open review, if there is one."""

    def __init__(self, screen: FixesServices, on_opened: Callable[[], None], on_closed: Callable[[], None]) -> None:
        self._screen = screen
        self._on_opened = on_opened
        self._on_closed = on_closed
        self.state: ReviewState | None = None
        self.is_opening = False
        self.problem = ""
        """Why the branch could not be read, or ""."""
        self._opened_for: tuple[str | None, str] | None = None
        self._checked_at = 0.0

    @property
    def _has_branch(self) -> bool:
        integration = self._screen.store.state.integration
        return self._screen.room.given_review is not None or bool(integration.branch or integration.tip)

    @property
    def is_coming(self) -> bool:
        """Whether a review is being opened or will be opened for the first time."""
        return self.state is None and self._has_branch and not self.problem

    def update(self) -> None:
        """Open the review if there is a new branch. Read verdicts from other rooms."""
        if self._screen.room.opened_review is not None:
            self._show(self._screen.room.open_review())
            return
        store = self._screen.store
        integration = store.state.integration
        branch_and_tip = (integration.branch, integration.tip)
        has_branch = self._has_branch
        is_due = branch_and_tip != self._opened_for or (
            self.state is None and self.problem != "" and self._is_check_due()
        )
        if has_branch and not self.is_opening and store.is_loaded and is_due:
            self._opened_for = branch_and_tip
            self.is_opening = True
            self._screen.start(self._open, "open")
        elif self.state is not None:
            if self.state.review.refresh():
                self._screen.show_verdicts()
            if not self.is_opening and self._is_check_due():
                self._screen.start(self._check_branch, "check")

    def _is_check_due(self) -> bool:
        now = self._screen.store.clock()
        if now - self._checked_at < CHECK_SECONDS:
            return False
        self._checked_at = now
        return True

    async def _check_branch(self) -> None:
        """Open the review again if the branch was rewritten."""
        state = self.state
        if state is not None and await asyncio.to_thread(state.review.is_rewritten) and state is self.state:
            self.is_opening = True
            await self._open()
            self._screen.show_message("the branch was rewritten; verdicts on unchanged fixes are kept", "warning")

    async def _open(self) -> None:
        try:
            review = await asyncio.to_thread(self._screen.room.open_review)
            await asyncio.to_thread(review.warm_up)
        except SwarmError as error:
            self.problem = str(error)
            await self.close()
            return
        finally:
            self.is_opening = False
        await self.close()
        self._show(review)

    def _show(self, review: Review) -> None:
        integration = self._screen.store.state.integration
        self._opened_for = (integration.branch, integration.tip)
        self.problem = ""
        self.state = self._state_of(review)
        self._on_opened()

    def _state_of(self, review: Review) -> ReviewState:
        store = self._screen.store
        spec, command = store.opened.spec, self._screen.room.test_command
        if self._screen.room.given_review is not None:
            runner = runner_without_sweep(review, review.repository, command)
            changed = tests_without_sweep(review, review.repository)
            return ReviewState(review, lambda: store.state, "", store.clock, runner, changed)
        runner = runner_of_sweep(review, spec, store.state, command)
        changed = tests_of_sweep(review, spec, store.state)
        return ReviewState(review, lambda: store.state, spec.sweep, store.clock, runner, changed)

    async def close(self) -> None:
        state, self.state = self.state, None
        self._on_closed()
        if state is not None:
            await state.test_runner.close()
            state.review.close()


class FixLines(Lines):
    def __init__(self, moved: Callable[[], None]) -> None:
        super().__init__(id="fixes")
        self._moved = moved
        self.state: ReviewState | None = None
        self.shown: list[Fix] = []

    def move_to(self, index: int) -> None:
        before = self.cursor
        super().move_to(index)
        if self.cursor != before:
            # A message would arrive after the cursor is drawn, and the diff would appear a frame later.
            self._moved()

    def line_count(self) -> int:
        return len(self.shown)

    def draw_line(self, index: int, width: int) -> Line:
        assert self.state is not None, "the list is empty without a review"
        return draw_fix(self.state.fix_facts(self.shown[index]), width)

    @property
    def current(self) -> Fix | None:
        return self.shown[self.cursor] if self.cursor < len(self.shown) else None


_WORDS: Final[dict[Verdict | None, str]] = {
    Verdict.KEEP: "kept",
    Verdict.REVERT: "reverted",
    Verdict.LATER: "for later",
    Verdict.PARTLY: "kept in part",
}


class VerdictCommands:
    """Actions that change the plan."""

    def __init__(self, screen: FixesServices, lines: FixLines, walk: PartsWalk) -> None:
        self._screen = screen
        self._lines = lines
        self._walk = walk

    def actions(self) -> tuple[Action, ...]:
        return (
            self._verdict_action(
                Verdict.KEEP, "y", "keep", "Keep this fix, test change, hunk or all of row 0; go to the next open one"
            ),
            self._verdict_action(
                Verdict.REVERT,
                "n",
                "revert",
                "Revert this fix or hunk, or leave out this test change; go to the next open one",
            ),
            self._verdict_action(Verdict.LATER, "l", "later", "Decide later; go to the next open one"),
            self._verdict_action(Verdict.CLEAR, "u", "", "Remove the verdict on this fix"),
            Action("fixes.undo", ("z",), "undo", "Undo your last verdicts", self.undo,
                   self.why_not_undo, rank=6),
            Action("fixes.redo", ("Z",), "", "Redo them", self.redo, self.why_not_undo),
        )  # fmt: skip

    def _verdict_action(self, verdict: Verdict, key: str, label: str, description: str) -> Action:
        handler = partial(self.decide, verdict)
        return Action(f"fixes.{verdict.value}", (key,), label, description, handler, self._screen.why_no_fix)

    def decide(self, verdict: Verdict) -> None:
        """Record a verdict on the fix under the cursor and go to the next open one."""
        state, fix = self._screen.reviewed_fix()
        state.review.set_verdict(fix, verdict)
        if verdict is not Verdict.CLEAR:
            self._go_to_next_open(fix)
        self._screen.show_verdicts()

    def _go_to_next_open(self, fix: Fix) -> None:
        still_open = self._walk.still_open()
        shown = self._lines.shown
        place = shown.index(fix)
        following = (*range(place + 1, len(shown)), *range(place))
        target = next((index for index in following if shown[index].id in still_open), None)
        if target is not None:
            self._lines.move_to(target)
        elif not still_open:
            self._screen.show_message(self._walk.nothing_open(), "good")

    def why_not_undo(self) -> str:
        return "" if self._screen.review_state is not None else "nothing to undo"

    def undo(self) -> None:
        self._step(lambda review: review.undo(), "undone", "nothing to undo: you have given no verdict")

    def redo(self) -> None:
        self._step(lambda review: review.redo(), "again", "nothing was undone")

    def _step(self, step: Callable[[Review], tuple[Fix, ...]], word: str, nothing: str) -> None:
        state = self._screen.review_state
        fixes = step(state.review) if state is not None else ()
        if state is None or not fixes:
            self._screen.show_message(nothing)
            return
        if self._screen.current_fix not in fixes:
            self._screen.show_fix(fixes[0])
        self._screen.show_verdicts()
        self._screen.show_message(f"{word}: {_words_for_verdicts(state, fixes)}")


def _words_for_verdicts(state: ReviewState, fixes: Iterable[Fix]) -> str:
    """Return the current verdicts of fixes: `#2+#6 are open, #9 is out`."""
    by_word: dict[str, list[str]] = {}
    for fix in sorted(fixes, key=lambda fix: fix.rank):
        by_word.setdefault(_word_for_verdict(state, fix), []).append(fix.id)
    return ", ".join(
        f"{state.named(fixes)} {'is' if len(fixes) == 1 else 'are'} {word}" for word, fixes in by_word.items()
    )


def _word_for_verdict(state: ReviewState, fix: Fix) -> str:
    verdict = state.review.verdict(fix)
    if fix in state.review.left_out:
        return "swapped in" if fix in state.review.taken else "out"
    if fix in state.review.known_parts and verdict is Verdict.REVERT:
        return "left out"
    return _WORDS.get(verdict, "open")


EVIDENCE_ROWS = 34
"""From this height the evidence has a separate panel below the diff."""
LIST_ROWS = 14
"""Maximum height of the list when it is above the diff."""


class FixesScreen(RoomScreen):
    NAME = "fixes"
    TITLE_WORD = "fixes"
    SIDE_BY_SIDE = 150
    can_filter: ClassVar[bool] = True
    shows_files: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.lines = FixLines(self._cursor_moved)
        self.lines.add_class("main")
        self.details = FixDetails(self)
        self.panel_border: PanelBorder = PanelBorder(self, self.details.reading)
        self.plan = PlanPanel(self, self.details, self._redraw_fixes)
        self.no_fixes = NoFixesPanel(self)
        self.loader = ReviewLoader(self, self._review_opened, self._review_closed)
        self.parts = PartsWalk(self, self._show_rows)
        self.verdicts = VerdictCommands(self, self.lines, self.parts)
        self.test_runs = TestRunCommands(self, self._show_test_run)
        self.conflict = ConflictResolution(self)
        self.swapping = Swapping(self)
        self.application = PlanApplication(self, self.plan)
        self.external = ExternalView(self)
        self.sending_back = SendingBack(self, self.details)
        self.wants_evidence: bool | None = None
        self._last_fix: Fix | None = None

    def compose_body(self) -> Iterable[Widget]:
        yield self.plan.band
        yield self.no_fixes.lines
        yield Container(self.lines, self.details.reading, id="body")
        yield self.details.effect

    def own_actions(self) -> tuple[Action, ...]:
        why_no_fix = self.why_no_fix
        return (
            *self.verdicts.actions(),
            *self.parts.actions(),
            Action("fixes.apply", ("A",), "apply", "Apply the plan on a separate branch; asks first",
                   self.application.offer, self.application.why_not),
            Action("fixes.evidence", ("e",), "evidence",
                   "Show or hide the evidence: message, agents, tests, block", self.switch_evidence, why_no_fix),
            Action("fixes.resolve", ("c",), "conflict",
                   "Resolve a conflict between this revert and a kept fix", self.conflict.offer,
                   self.conflict.why_not),
            *self.sending_back.actions(),
            *self.test_runs.actions(),
            *self.swapping.actions(),
            Action("fixes.report", ("R",), "report", "Show the integrator's report: left out, normalized, questions",
                   self.open_report, self.why_no_report),
            Action("fixes.net", ("D",), "", "Show the plan as one diff against the base, until you move",
                   self.plan.show_net_diff, why_no_fix),
            Action("fixes.pager", ("o",), "", "Open the commit in git's pager", self.external.open_commit, why_no_fix),
            Action("fixes.tree", ("O",), "", "Open the tree of the plan in your editor, in a scratch folder",
                   self.external.open_tree, why_no_fix),
            Action("fixes.diff_down", ("J",), "diff", "Scroll the diff down", partial(self._scroll_reading, 3),
                   is_listed=False),
            Action("fixes.diff_up", ("K",), "", "Scroll the diff up", partial(self._scroll_reading, -3),
                   is_listed=False),
            Action("fixes.next_hunk", ("]",), "", "Go to the next hunk", partial(self._go_to_hunk, 1)),
            Action("fixes.previous_hunk", ("[",), "", "Go to the previous hunk", partial(self._go_to_hunk, -1)),
            Action("fixes.next_match", ("ctrl+n",), "", "Go to the next fix that matches the filter",
                   partial(self._go_to_match, 1), is_listed=False),
            Action("fixes.previous_match", ("ctrl+p",), "", "Go to the previous match", partial(self._go_to_match, -1),
                   is_listed=False),
            Action("fixes.open", ("enter",), "open", "Review the test changes of row 0; else show the test of this fix",
                   self.open_row, self.why_not_open, is_listed=False),
        )  # fmt: skip

    # For the controllers.

    @property
    def review_state(self) -> ReviewState | None:
        return self.loader.state

    @property
    def current_fix(self) -> Fix | None:
        return self.lines.current

    def why_no_fix(self) -> str:
        if self.review_state is None:
            reading = "the branch is being read" if self.loader.is_opening else "no fixes yet"
            return self.loader.problem or reading
        return "" if self.current_fix is not None else "no fix under the cursor"

    def reviewed_fix(self) -> tuple[ReviewState, Fix]:
        state, fix = self.review_state, self.current_fix
        assert state is not None, "not available without a review"
        assert fix is not None, "not available without a fix"
        return state, fix

    def show_fix(self, fix: Fix) -> None:
        if fix in self.lines.shown:
            self.lines.move_to(self.lines.shown.index(fix))

    def show_verdicts(self) -> None:
        self.plan.show_verdicts()

    def start(self, work: WorkType[None], group: str, *, is_exclusive: bool = True) -> Worker[None]:
        # Pass the function and not its coroutine: a worker that is replaced before it starts would leave it un-awaited.
        return self.run_worker(work, group=f"fixes: {group}", exclusive=is_exclusive, exit_on_error=False)

    # Contents.

    def show_change(self, change: SweepChanged) -> None:
        self.loader.update()
        if self.review_state is None:
            self._show_no_fixes()
        elif change.tests:
            self._redraw_fixes()

    def _show_no_fixes(self) -> None:
        self.details.effect.show([])
        if self.loader.is_opening or not self.store.is_loaded:
            self.plan.band.show([[Span(" reading the integrated branch …", "dim")]])
            return
        self.plan.band.show([])
        self.add_class("-bare")
        self.no_fixes.show(self.loader.problem)

    @property
    def is_loading(self) -> bool:
        return self.review_state is None and (super().is_loading or self.loader.is_coming)

    def _review_opened(self) -> None:
        state = self.review_state
        assert state is not None, "fixes opened"
        self.lines.state = state
        self._show_fixes()
        # The fix that was under the cursor last, else the first open one.
        shown = [fix.id for fix in self.lines.shown]
        last = state.row_in_place_of(self._last_fix) if self._last_fix is not None else None
        fixes = (*((last,) if last is not None else ()), *state.review.open_fixes, *state.fixes)
        self.lines.cursor = next((shown.index(fix.id) for fix in fixes if fix.id in shown), 0)
        self.lines.show_line(self.lines.cursor)
        self._draw_title()
        if self.has_class("-bare"):
            self.remove_class("-bare")
            self.call_after_refresh(self.focus_main)
        self.show_verdicts()
        # Draw the list first: colouring the first diff requires an import of its language.
        self.call_after_refresh(lambda: self.details.show(self.lines.shown))
        self.draw_frame()
        self.room.deliver_held_keys()
        self.start(partial(self._preview_each_alone, state), "alone")

    def _review_closed(self) -> None:
        self._last_fix = self.current_fix
        self.test_runs.end()
        self.parts.of = None
        self.lines.state = None
        self.lines.shown = []
        self.lines.redraw()

    async def _preview_each_alone(self, state: ReviewState) -> None:
        await state.preview_each_alone(lambda: state is self.review_state, self._redraw_fix)
        if await self.parts.load(state) and state is self.review_state:
            self.show_verdicts()
        await self.test_runs.load_teeth(state)
        # These run until the review is closed.
        follow: WorkType[None] = partial(self.test_runs.follow_teeth, state)
        self.run_worker(follow, group="test strength elsewhere", exclusive=True, exit_on_error=False)

    def _redraw_fix(self, fix: Fix) -> None:
        if fix in self.lines.shown:
            self.lines.lines_changed((self.lines.shown.index(fix),))

    def _redraw_fixes(self) -> None:
        self.lines.lines_changed(range(len(self.lines.shown)))

    def _show_fixes(self) -> None:
        fixes = self.parts.rows()
        self.lines.shown = [fix for fix in fixes if fits_words(self.filter_words, _searched_text(fix))]
        self.lines.redraw()
        self._place_list()
        self._draw_title()

    def _draw_title(self) -> None:
        shown = len(self.lines.shown)
        title = self.parts.title() + (f" · {shown} match /{self.filter_words}" if self.filter_words else "")
        self.lines.title(title, f"{min(self.lines.cursor + 1, shown)} of {shown}")

    def _show_rows(self) -> None:
        """Show other rows, with the cursor on the first."""
        self.lines.cursor = 0
        self.filter_words = ""
        self._show_fixes()
        self.lines.show_line(0)
        self._cursor_moved()

    def close_something(self) -> bool:
        return super().close_something() or self.parts.leave()

    def go_back(self) -> None:
        if not self.parts.leave():
            super().go_back()

    def _cursor_moved(self) -> None:
        self._draw_title()
        self.details.show(self.lines.shown)
        self.draw_footer()

    def _show_test_run(self) -> None:
        self.plan.show()
        self._redraw_fixes()
        self.details.show_effect()
        if self.has_class("-evidence"):
            self.details.show_evidence(keeps_place=True)

    # The frame.

    @property
    def focused_lines(self) -> Lines | None:
        return self.no_fixes.lines if self.has_class("-bare") else self.lines

    def on_resize(self, event: object) -> None:
        self.set_class(self.size.height >= EVIDENCE_ROWS, "-tall")
        self._place_evidence()
        self._place_list()
        self.plan.show()
        self.details.show_effect()

    def on_lines_resized(self, event: Lines.Resized) -> None:
        super().on_lines_resized(event)
        self.details.show_evidence(keeps_place=True)

    def border_moved(self) -> None:
        self._place_list()

    def _place_list(self) -> None:
        """Size the list: next to the diff the same height, above the diff the minimum. A dragged border wins."""
        needed = min(LIST_ROWS, len(self.parts.rows()) + 2 if self.review_state is not None else LIST_ROWS)
        is_alone = self.has_class("-wide") or self.has_class("-low")
        styles, is_dragged = self.lines.styles, self.panel_border.has_share
        styles.height = "1fr" if is_alone or is_dragged else needed
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

    async def on_unmount(self) -> None:
        await self.loader.close()

    def current_tests(self) -> tuple[str, ...]:
        state, fix = self.review_state, self.current_fix
        if state is None or fix is None or self.parts.is_at_row_0():
            return ()
        return tuple(record.test for record in state.records_of(fix))

    def name_to_copy(self) -> str:
        return self.current_fix.id if self.current_fix else ""

    def set_filter(self, words: str) -> None:
        fix = self.current_fix
        self.filter_words = words
        if self.review_state is None:
            return
        self._show_fixes()
        if fix is not None:
            self.show_fix(fix)
        self.details.show(self.lines.shown)

    # Actions.

    def switch_evidence(self) -> None:
        self.wants_evidence = not self.has_class("-evidence")
        self._place_evidence()
        self.call_after_refresh(self.details.show_evidence)

    def _scroll_reading(self, rows: int) -> None:
        has_evidence_only = self.has_class("-evidence") and not self.has_class("-tall")
        lines = self.details.evidence if has_evidence_only else self.details.diff
        lines.scroll_rows(lines.first_visible + rows)

    def _go_to_hunk(self, direction: int) -> None:
        if not self.details.diff.move_hunk(direction):
            self.show_message(f"this is the {'last' if direction > 0 else 'first'} hunk")

    def _go_to_match(self, step: int) -> None:
        if self.lines.shown:
            self.lines.move_to((self.lines.cursor + step) % len(self.lines.shown))

    def why_not_open(self) -> str:
        if self.parts.is_at_row_0():
            return ""
        return "" if self.current_tests() else "no test of this sweep is linked to this fix"

    def open_row(self) -> None:
        if self.parts.is_at_row_0():
            self.parts.enter()
            return
        self.room.show_test(self.current_tests()[0])

    def why_no_report(self) -> str:
        if self.review_state is None:
            return self.why_no_fix()
        has_report = self.review_state.draw_report(80)
        return "" if has_report else "the integrator reported nothing except its fixes"

    def open_report(self) -> None:
        from swarm_tui.room.dialog import ReadingScreen

        if self.review_state is not None:
            self.room.push_screen(ReadingScreen("The integrator's report", self.review_state.draw_report))


def _searched_text(fix: Fix) -> str:
    paths = " ".join(change.path for change in fix.commit.changes)
    return f"{fix.title} {' '.join(fix.agents)} {paths} {fix.id}"
