"""Screen 3: the merge view. The ranked fixes, each with its diff and its evidence; one key gives a verdict.

Verdicts change no branch until the plan is applied; previews are computed without changing the repository.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import ClassVar

from textual.containers import Container
from textual.widget import Widget
from textual.worker import Worker, WorkType

from swarm_tui.model.fixes import Fix
from swarm_tui.model.text import plain
from swarm_tui.room.actions import Action
from swarm_tui.room.draw.arrange import fits_words
from swarm_tui.room.draw.parts import Part
from swarm_tui.room.review_state import ReviewState
from swarm_tui.room.screens.applying import PlanApplication
from swarm_tui.room.screens.base import RoomScreen
from swarm_tui.room.screens.conflict import ConflictResolution
from swarm_tui.room.screens.external_view import ExternalView
from swarm_tui.room.screens.fix_details import FixDetails
from swarm_tui.room.screens.no_fixes_panel import NoFixesPanel
from swarm_tui.room.screens.panel_border import PanelBorder
from swarm_tui.room.screens.parts_walk import PartsWalk
from swarm_tui.room.screens.plan_panel import PlanPanel
from swarm_tui.room.screens.review_loader import ReviewLoader
from swarm_tui.room.screens.sending_back import SendingBack
from swarm_tui.room.screens.swapping import Swapping
from swarm_tui.room.screens.test_run_commands import TestRunCommands
from swarm_tui.room.screens.verdict_commands import VerdictCommands
from swarm_tui.room.store import SweepChanged
from swarm_tui.room.widgets.fix_lines import FixLines
from swarm_tui.room.widgets.lines import Lines

EVIDENCE_ROWS = 34
"""From this height on the evidence has a place of its own under the diff."""
LIST_ROWS = 14
"""So high is the list at most where it stands above the diff."""


class FixesScreen(RoomScreen):
    """The ranked fixes and the plan of verdicts on them."""

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
            Action("fixes.apply", ("A",), "apply", "Make the plan so, on a branch of its own; asks first",
                   self.application.offer, self.application.why_not),
            Action("fixes.evidence", ("e",), "evidence",
                   "Show or hide what speaks for it: message, agents, tests, block", self.switch_evidence, why_no_fix),
            Action("fixes.resolve", ("c",), "conflict",
                   "What can be done when its revert conflicts with a fix that stays", self.conflict.offer,
                   self.conflict.why_not),
            *self.sending_back.actions(),
            *self.test_runs.actions(),
            *self.swapping.actions(),
            Action("fixes.report", ("R",), "report", "What the integrator left out, made uniform, and asks about",
                   self.open_report, self.why_no_report),
            Action("fixes.net", ("D",), "", "What the plan as a whole does to the base, until you move",
                   self.plan.show_net_diff, why_no_fix),
            Action("fixes.pager", ("o",), "", "Open the commit in git's pager", self.external.open_commit, why_no_fix),
            Action("fixes.tree", ("O",), "", "Open the tree of the plan in your editor, in a scratch folder",
                   self.external.open_tree, why_no_fix),
            Action("fixes.diff_down", ("J",), "diff", "Scroll the diff down", partial(self._scroll_reading, 3),
                   is_listed=False),
            Action("fixes.diff_up", ("K",), "", "Scroll the diff up", partial(self._scroll_reading, -3),
                   is_listed=False),
            Action("fixes.next_hunk", ("]",), "", "To the next hunk", partial(self._go_to_hunk, 1)),
            Action("fixes.previous_hunk", ("[",), "", "To the previous hunk", partial(self._go_to_hunk, -1)),
            Action("fixes.next_match", ("ctrl+n",), "", "To the next fix that matches the filter",
                   partial(self._go_to_match, 1), is_listed=False),
            Action("fixes.previous_match", ("ctrl+p",), "", "To the previous one", partial(self._go_to_match, -1),
                   is_listed=False),
            Action("fixes.open", ("enter",), "open", "Walk the parts of row 0; else show the test whose agent made it",
                   self.open_row, self.why_not_open, is_listed=False),
        )  # fmt: skip

    # Services for the controllers.

    @property
    def review_state(self) -> ReviewState | None:
        return self.loader.state

    @property
    def current_fix(self) -> Fix | None:
        return self.lines.current

    def why_no_fix(self) -> str:
        if self.review_state is None:
            reading = "the branch is still being read" if self.loader.is_opening else "there are no fixes yet"
            return self.loader.problem or reading
        return "" if self.current_fix is not None else "there is no fix under the cursor"

    def reviewed_fix(self) -> tuple[ReviewState, Fix]:
        state, fix = self.review_state, self.current_fix
        assert state is not None, "not possible without a review"
        assert fix is not None, "not possible without a fix"
        return state, fix

    def show_fix(self, fix: Fix) -> None:
        if fix in self.lines.shown:
            self.lines.move_to(self.lines.shown.index(fix))

    def show_verdicts(self) -> None:
        self.plan.show_verdicts()

    def start(self, work: WorkType[None], group: str, *, is_exclusive: bool = True) -> Worker[None]:
        # A function, not its coroutine: a worker that is replaced before it begins leaves nothing unawaited.
        return self.run_worker(work, group=f"fixes: {group}", exclusive=is_exclusive, exit_on_error=False)

    # What is shown.

    def show_change(self, change: SweepChanged) -> None:
        self.loader.update()
        if self.review_state is None:
            self._show_no_fixes()
        elif change.tests:
            self._redraw_fixes()

    def _show_no_fixes(self) -> None:
        self.details.effect.show([])
        if self.loader.is_opening or not self.store.is_loaded:
            self.plan.band.show([[Part(" reading the integrated branch …", "dim")]])
            return
        self.plan.band.show([])
        self.add_class("-bare")
        self.no_fixes.show(self.loader.problem)

    @property
    def is_loading(self) -> bool:
        return self.review_state is None and (super().is_loading or self.loader.is_coming)

    def _review_opened(self) -> None:
        state = self.review_state
        assert state is not None, "it was opened"
        self.lines.state = state
        self._show_fixes()
        # The last fix under the cursor, else the first open one.
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
        # The list is drawn first: to colour the first diff, its language must be imported.
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
        # As long as the review is open: no part of what is computed once.
        follow: WorkType[None] = partial(self.test_runs.follow_teeth, state)
        self.run_worker(follow, group="teeth elsewhere", exclusive=True, exit_on_error=False)

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
        """Show the other rows, the cursor on the first."""
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
        """Beside the diff the list is as high as that; above it, no higher than it must be. A dragged border rules."""
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
        # One branch and nothing around it: there are no other screens to go to.
        title = [Part(" "), Part(plain(self.store.opened.spec.sweep, 100), "strong"), Part(" · ", "faint")]
        self.header.show([[*title, Part("fixes", "accent")]])
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
            self.show_message(f"this was the {'last' if direction > 0 else 'first'} hunk")

    def _go_to_match(self, step: int) -> None:
        if self.lines.shown:
            self.lines.move_to((self.lines.cursor + step) % len(self.lines.shown))

    def why_not_open(self) -> str:
        if self.parts.is_at_row_0():
            return ""
        return "" if self.current_tests() else "no test of this sweep is known to have led to this fix"

    def open_row(self) -> None:
        if self.parts.is_at_row_0():
            self.parts.enter()
            return
        self.room.show_test(self.current_tests()[0])

    def why_no_report(self) -> str:
        if self.review_state is None:
            return self.why_no_fix()
        has_report = self.review_state.draw_report(80)
        return "" if has_report else "the integrator has reported nothing besides its fixes"

    def open_report(self) -> None:
        from swarm_tui.room.screens.dialog import ReadingScreen

        if self.review_state is not None:
            self.room.push_screen(ReadingScreen("The integrator's report", self.review_state.draw_report))


def _searched_text(fix: Fix) -> str:
    paths = " ".join(change.path for change in fix.commit.changes)
    return f"{fix.title} {' '.join(fix.agents)} {paths} {fix.id}"
