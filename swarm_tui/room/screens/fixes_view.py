"""The merge view's panels: opens the review, shows the plan, the ranked fixes, the diff and the evidence.

What takes longer than a frame is computed in threads, each kind in a group of its own, so that a later wish
replaces an earlier one. `screens.fixes` adds what a person does here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import ClassVar

from textual import work
from textual.containers import Container
from textual.widget import Widget

from swarm_tui.errors import SwarmError
from swarm_tui.model.fixes import Fix
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain
from swarm_tui.room.draw.arrange import fits_words
from swarm_tui.room.draw.fixes import draw_effect, draw_evidence, draw_plan
from swarm_tui.room.draw.no_fixes import draw_standing, tell_standing
from swarm_tui.room.draw.parts import Part, wrap_text
from swarm_tui.room.merge_state import MergeState
from swarm_tui.room.no_fixes_facts import standing_facts
from swarm_tui.room.screens.base import RoomScreen
from swarm_tui.room.store import Changes
from swarm_tui.room.test_runs import trials_of_sweep, trials_without_sweep
from swarm_tui.room.widgets.band import Band
from swarm_tui.room.widgets.diff import EMPTY, DiffLines
from swarm_tui.room.widgets.fix_lines import FixLines
from swarm_tui.room.widgets.lines import Lines, TextLines
from swarm_tui.triage.apply import applied_branch

REST_SECONDS = 0.03
"""How long the cursor rests on a fix before more is computed about it than its diff."""
WATCH_SECONDS = 2.0
"""How often it is looked whether the branch is still the one under review."""
EVIDENCE_ROWS = 34
"""From this height on the evidence has a place of its own under the diff."""
LIST_ROWS = 14
"""So high is the list at most where it stands above the diff."""


class FixesView(RoomScreen):
    """The panels of the merge view."""

    NAME = "fixes"
    TITLE_WORD = "fixes"
    SIDE_BY_SIDE = 150
    can_filter: ClassVar[bool] = True
    DEFAULT_CSS = """
    FixesView #plan, FixesView #effect { height: 1; }
    FixesView #effect { dock: bottom; margin-bottom: 1; }
    FixesView #body { height: 1fr; }
    FixesView #fixes { width: 1fr; max-height: 40%; }
    FixesView #reading { width: 1fr; height: 1fr; layout: vertical; }
    FixesView.-wide #fixes { width: 40%; max-width: 84; max-height: 100%; }
    FixesView #diff, FixesView #evidence { width: 1fr; height: 1fr; }
    FixesView.-tall #evidence { height: 40%; }
    FixesView #evidence { display: none; }
    FixesView.-evidence #evidence { display: block; }
    FixesView.-evidence #diff { display: none; }
    FixesView.-tall.-evidence #diff { display: block; }
    FixesView #standing { height: 1fr; display: none; }
    FixesView.-bare #standing { display: block; }
    FixesView.-bare #body { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.plan = Band(id="plan")
        self.effect = Band(id="effect")
        self.lines = FixLines(self._cursor_moved)
        self.lines.add_class("main")
        self.diff = DiffLines(id="diff")
        self.evidence = TextLines(id="evidence")
        self.standing = TextLines(id="standing")
        self.merge: MergeState | None = None
        self.trouble = ""
        self.wants_evidence: bool | None = None
        self._opened_for: tuple[str | None, str] | None = None
        self.closing_line = ""
        """What the review has come to, for scripts; it outlives the screen."""
        self.is_opening = False
        self._watched_at = 0.0

    def compose_body(self) -> Iterable[Widget]:
        yield self.plan
        yield self.standing
        yield Container(self.lines, Container(self.diff, self.evidence, id="reading"), id="body")
        yield self.effect

    @property
    def list(self) -> Lines | None:
        return self.standing if self.has_class("-bare") else self.lines

    def on_resize(self, event: object) -> None:
        self.set_class(self.size.height >= EVIDENCE_ROWS, "-tall")
        self.place_evidence()
        self._place_list()

    def _place_list(self) -> None:
        """Beside the diff the list is as high as that; above it, no higher than it must be."""
        needed = min(LIST_ROWS, len(self.merge.fixes) + 2 if self.merge is not None else LIST_ROWS)
        self.lines.styles.height = "1fr" if self.has_class("-wide") else needed

    def place_evidence(self) -> None:
        is_shown = self.size.height >= EVIDENCE_ROWS if self.wants_evidence is None else self.wants_evidence
        self.set_class(is_shown, "-evidence")

    def draw_frame(self) -> None:
        if self.room.given_review is None:
            super().draw_frame()
            return
        title = [Part(" "), Part(plain(self.store.opened.spec.sweep, 100), "strong"), Part(" · ", "faint")]
        self.header.show([[*title, Part("fixes", "accent")]])
        self.draw_foot()

    # The review.

    def show_changes(self, changes: Changes) -> None:
        integration = self.store.state.integration
        wanted = (integration.branch, integration.tip)
        is_there = self.room.given_review is not None or any(wanted)
        is_due = wanted != self._opened_for or self._tries_again()
        if is_there and not self.is_opening and self.store.is_loaded and is_due:
            self._opened_for = wanted
            self.is_opening = True
            self.run_worker(self._open_review(), group="fixes: open", exclusive=True, exit_on_error=False)
        elif self.merge is not None:
            if self.merge.review.refresh():
                self.verdicts_changed()
            self._watch_branch(self.merge)
        if self.merge is None:
            self._show_standing()

    def _tries_again(self) -> bool:
        """Whether a branch that could not be read is to be looked at again: it may be back."""
        now = self.store.clock()
        if self.merge is not None or not self.trouble or now - self._watched_at < WATCH_SECONDS:
            return False
        self._watched_at = now
        return True

    def _watch_branch(self, merge: MergeState) -> None:
        """Look now and then whether the branch was rewritten under the room, and if so begin anew."""
        now = self.store.clock()
        if now - self._watched_at < WATCH_SECONDS or self.is_opening:
            return
        self._watched_at = now

        async def look() -> None:
            if await asyncio.to_thread(merge.review.is_rewritten) and merge is self.merge:
                self.is_opening = True
                await self._open_review()
                self.say("the branch was rewritten; verdicts of fixes that have not changed are kept", "warning")

        self.run_worker(look(), group="fixes: watch", exclusive=True, exit_on_error=False)

    async def _open_review(self) -> None:
        before = self.lines.current
        try:
            review = await asyncio.to_thread(self.room.open_review)
            await asyncio.to_thread(review.warm_up)
        except SwarmError as error:
            self.trouble = str(error)
            await self._close_review()
            self.is_opening = False
            self._show_standing()
            return
        finally:
            self.is_opening = False
        await self._close_review()
        self.trouble = ""
        sweep = "" if self.room.given_review is not None else self.store.opened.spec.sweep
        trials = (
            trials_of_sweep(review, self.store.opened.spec, self.store.state)
            if sweep
            else trials_without_sweep(review, review.repository)
        )
        self.merge = MergeState(review, lambda: self.store.state, sweep, self.store.clock, trials)
        self.lines.merge = self.merge
        self.show_fixes()
        # Where the person was; at first, and when that fix is gone, where there is something to decide.
        there = [fix.id for fix in self.lines.shown]
        wanted = [fix.id for fix in (*((before,) if before is not None else ()), *review.open_fixes)]
        self.lines.cursor = next((there.index(fix) for fix in wanted if fix in there), 0)
        self.lines.show_line(self.lines.cursor)
        self._show_title()
        if self.has_class("-bare"):
            self.remove_class("-bare")
            self.call_after_refresh(self.focus_main)
        self.verdicts_changed()
        self.fix_changed()
        self.run_worker(self._try_each_alone(), group="fixes: alone", exclusive=True, exit_on_error=False)

    async def _close_review(self) -> None:
        merge, self.merge = self.merge, None
        self.lines.merge = None
        self.lines.shown = []
        self.lines.redraw()
        if merge is not None:
            await merge.trials.close()
            merge.review.close()

    async def on_unmount(self) -> None:
        if self.merge is not None:
            await self.merge.trials.close()
            self.merge.review.close()

    def _show_standing(self) -> None:
        """There are no fixes yet, or none any more: say how things stand."""
        self.effect.show([])
        if self.is_opening or not self.store.is_loaded:
            self.plan.show([[Part(" reading the integrated branch …", "dim")]])
            return
        self.plan.show([])
        self.add_class("-bare")
        width = max(20, self.standing.text_width)
        facts = standing_facts(self.store)
        if self.trouble and not facts.is_simulated:
            title, text, role = "No fixes", self.trouble, "warning"
        else:
            title, text, role = tell_standing(facts)
        self.standing.title(title)
        if self.room.given_review is None:
            self.standing.show(draw_standing(facts, text, role, width))
        else:
            self.standing.show([[Part(row, role)] for row in wrap_text(text, width, 12)])

    def show_fixes(self) -> None:
        assert self.merge is not None, "only called with a review"
        fixes = self.merge.fixes
        self.lines.shown = [
            fix for fix in fixes if not self.filter_words or fits_words(self.filter_words, _words_of(fix))
        ]
        self.lines.redraw()
        self._place_list()
        self._show_title()

    def _show_title(self) -> None:
        total, shown = len(self.merge.fixes) if self.merge else 0, len(self.lines.shown)
        title = f"Ranked {total}" + (f" · {shown} match /{self.filter_words}" if self.filter_words else "")
        self.lines.title(title, f"{min(self.lines.cursor + 1, shown)} of {shown}")

    # What follows the cursor.

    def _cursor_moved(self) -> None:
        self._show_title()
        self.fix_changed()
        self.draw_foot()

    def fix_changed(self) -> None:
        """Another fix is under the cursor: its diff at once when it was read ahead, the rest when the cursor rests."""
        merge, fix = self.merge, self.lines.current
        if merge is None or fix is None:
            self.diff.show(EMPTY)
            return
        diff = merge.known_diff(fix)
        if diff is not None:
            self._show_diff(fix)
        self.show_evidence(fix)
        self.show_effect()
        self._read_around(merge, fix)

    @work(group="fixes: read", exclusive=True, exit_on_error=False)
    async def _read_around(self, merge: MergeState, fix: Fix) -> None:
        await self._read_diff(merge, fix)
        if self.lines.current is fix:
            self._show_diff(fix)
        # Threads take turns with the drawing: what is read ahead waits for the frame that shows this fix.
        await asyncio.sleep(REST_SECONDS)
        await self._compute_effect(merge, fix)
        for near in self._around(fix):
            await self._read_diff(merge, near)
            await asyncio.to_thread(merge.review.content, near)

    async def _read_diff(self, merge: MergeState, fix: Fix) -> None:
        if merge.known_diff(fix) is None:
            merge.keep_diff(fix, await asyncio.to_thread(merge.review.diff, fix))

    def _around(self, fix: Fix) -> tuple[Fix, ...]:
        """Return the fix and its neighbours, the likelier next ones first."""
        place = self.lines.shown.index(fix)
        places = (place, place + 1, place - 1, place + 2, place + 3)
        return tuple(self.lines.shown[near] for near in places if 0 <= near < len(self.lines.shown))

    async def _compute_effect(self, merge: MergeState, fix: Fix) -> None:
        reverted = merge.with_it_reverted(fix)
        if merge.known_effect(fix) is None:
            merge.keep_effect(fix, reverted, await asyncio.to_thread(merge.review.preview_of, reverted))
        self.show_effect()

    def _show_diff(self, fix: Fix) -> None:
        assert self.merge is not None, "a fix is only current in a review"
        diff = self.merge.known_diff(fix)
        if diff is None:
            return
        self.diff.show(diff)
        self.diff.title(f"#{fix.rank} {fix.id[:9]} {fix.title}", counted(len(diff.files), "file"))

    async def show_net_diff(self, merge: MergeState) -> None:
        """Show what the plan as a whole does to the base, until the cursor moves on."""
        diff = await asyncio.to_thread(merge.review.net_diff)
        if not diff.files:
            self.say("the plan does not build yet" if merge.preview and not merge.preview.is_clean else "no difference")
            return
        self.diff.show(diff)
        self.diff.title("The plan as a whole, against the base", counted(len(diff.files), "file"))

    def show_evidence(self, fix: Fix, *, is_kept: bool = False) -> None:
        assert self.merge is not None, "a fix is only current in a review"
        self.evidence.show(draw_evidence(self.merge.evidence(fix), max(20, self.evidence.text_width)))
        if not is_kept:
            self.evidence.scroll_rows(0)
        self.evidence.title(
            f"Evidence for #{fix.rank} {fix.title}", counted(len(fix.agents), "agent") if fix.agents else ""
        )

    def on_lines_resized(self, event: Lines.Resized) -> None:
        super().on_lines_resized(event)
        fix = self.lines.current
        if self.merge is not None and fix is not None:
            self.show_evidence(fix, is_kept=True)

    def show_effect(self) -> None:
        fix = self.lines.current
        if self.merge is not None and fix is not None:
            self.effect.show([draw_effect(self.merge.effect_facts(fix), self.size.width)])

    async def _try_each_alone(self) -> None:
        """Find out in the background which fixes could not be reverted alone."""
        merge = self.merge
        while merge is not None and merge is self.merge and (fix := merge.first_unknown_alone()) is not None:
            merge.keep_alone(fix, await asyncio.to_thread(merge.review.alone, fix))
            if fix in self.lines.shown:
                self.lines.lines_changed((self.lines.shown.index(fix),))

    # The plan.

    def verdicts_changed(self) -> None:
        """Draw what was decided, and compute what it gives."""
        merge = self.merge
        if merge is None:
            return
        merge.applied = ""
        merge.preview = None
        self.closing_line = merge.review.closing_line()
        self.lines.lines_changed(range(len(self.lines.shown)))
        self.show_plan()
        self.show_effect()
        fix = self.lines.current
        if fix is not None:
            self.show_evidence(fix)
        self._compute_plan(merge)

    @work(group="fixes: plan", exclusive=True, exit_on_error=False)
    async def _compute_plan(self, merge: MergeState) -> None:
        try:
            merge.preview = await asyncio.to_thread(merge.review.preview)
            merge.applied = await asyncio.to_thread(applied_branch, merge.review, merge.preview, merge.sweep)
        except SwarmError as error:
            self.say(str(error), "error")
            return
        self.lines.lines_changed(range(len(self.lines.shown)))
        self.show_plan()
        fix = self.lines.current
        if fix is not None:
            await self._compute_effect(merge, fix)

    def show_plan(self) -> None:
        if self.merge is not None:
            self.plan.show([draw_plan(self.merge.plan_facts(), self.size.width)])


def _words_of(fix: Fix) -> str:
    paths = " ".join(change.path for change in fix.commit.changes)
    return f"{fix.title} {' '.join(fix.agents)} {paths} {fix.id}"
