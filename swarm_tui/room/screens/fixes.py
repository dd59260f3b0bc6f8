"""Screen 3: the merge view. One ranked fix after the other: its diff, its evidence, and a verdict by one key.

Verdicts are a plan until it is applied; what the plan gives is computed in threads, beside the repository.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import ClassVar

from textual.containers import Container
from textual.widget import Widget

from swarm_tui.errors import SwarmError
from swarm_tui.model.fixes import Fix
from swarm_tui.model.text import plain
from swarm_tui.model.verdicts import Verdict
from swarm_tui.room.draw.arrange import fits_words
from swarm_tui.room.draw.fixes import draw_effect, draw_evidence, draw_fix, draw_plan
from swarm_tui.room.draw.parts import Line, Part
from swarm_tui.room.merge import Merge
from swarm_tui.room.screens.base import RoomScreen
from swarm_tui.room.store import Changes
from swarm_tui.room.widgets.band import Band
from swarm_tui.room.widgets.diff import EMPTY, DiffLines
from swarm_tui.room.widgets.lines import Lines, TextLines
from swarm_tui.triage.apply import Proposal, apply_proposal, checkout_words, propose, reviewed_branch

REST_SECONDS = 0.03
"""How long the cursor rests on a fix before more is computed about it than its diff."""
EVIDENCE_ROWS = 40
"""From this height on the evidence has a place of its own under the diff."""


class FixLines(Lines):
    """The ranked fixes."""

    def __init__(self) -> None:
        super().__init__(id="fixes")
        self.merge: Merge | None = None
        self.shown: list[Fix] = []

    def line_count(self) -> int:
        return len(self.shown)

    def draw_line(self, index: int, width: int) -> Line:
        assert self.merge is not None, "there are no lines without a review"
        return draw_fix(self.merge.fix_facts(self.shown[index]), width)

    @property
    def current(self) -> Fix | None:
        return self.shown[self.cursor] if self.cursor < len(self.shown) else None


class FixesScreen(RoomScreen):
    """The walk through the ranked fixes."""

    NAME = "fixes"
    TITLE_WORD = "fixes"
    can_filter: ClassVar[bool] = True
    DEFAULT_CSS = """
    FixesScreen #plan, FixesScreen #effect { height: 1; }
    FixesScreen #effect { dock: bottom; margin-bottom: 1; }
    FixesScreen #body { height: 1fr; }
    FixesScreen #fixes { width: 1fr; height: 40%; max-height: 14; }
    FixesScreen #reading { width: 1fr; height: 1fr; layout: vertical; }
    FixesScreen.-wide #fixes { width: 42%; min-width: 46; max-width: 84; height: 1fr; max-height: 100%; }
    FixesScreen #diff, FixesScreen #evidence { width: 1fr; height: 1fr; }
    FixesScreen.-tall #evidence { height: 30%; }
    FixesScreen #evidence { display: none; }
    FixesScreen.-evidence #evidence { display: block; }
    FixesScreen.-evidence #diff { display: none; }
    FixesScreen.-tall.-evidence #diff { display: block; }
    FixesScreen.-bare #diff, FixesScreen.-bare #effect { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.plan = Band(id="plan")
        self.effect = Band(id="effect")
        self.lines = FixLines()
        self.lines.add_class("main")
        self.diff = DiffLines(id="diff")
        self.evidence = TextLines(id="evidence")
        self.merge: Merge | None = None
        self.trouble = ""
        self.words = ""
        self._wants_evidence: bool | None = None
        self._opened_for: tuple[str | None, str] | None = None
        self.closing_line = ""
        """What the review has come to, for scripts; it outlives the screen."""
        self._is_opening = False

    def compose_body(self) -> Iterable[Widget]:
        yield self.plan
        yield Container(self.lines, Container(self.diff, self.evidence, id="reading"), id="body")
        yield self.effect

    @property
    def list(self) -> Lines | None:
        return self.lines

    def on_resize(self, event: object) -> None:
        self.set_class(self.size.height >= EVIDENCE_ROWS, "-tall")
        self._place_evidence()

    def _place_evidence(self) -> None:
        is_shown = self.size.height >= EVIDENCE_ROWS if self._wants_evidence is None else self._wants_evidence
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
        if not self._is_opening and self.store.is_loaded and wanted != self._opened_for:
            self._opened_for = wanted
            self._is_opening = True
            self.run_worker(self._open_review(), group="fixes: open", exclusive=True, exit_on_error=False)
        elif self.merge is not None and self.merge.review.refresh():
            self._verdicts_changed()
        if self.merge is None:
            self._show_nothing()

    async def _open_review(self) -> None:
        before = self.lines.current
        try:
            review = await asyncio.to_thread(self.room.open_review)
        except SwarmError as error:
            self.trouble = str(error)
            self._close_review()
            return
        finally:
            self._is_opening = False
        self._close_review()
        self.trouble = ""
        sweep = "" if self.room.given_review is not None else self.store.opened.spec.sweep
        self.merge = Merge(review, lambda: self.store.state, sweep, self.store.clock)
        self.lines.merge = self.merge
        self._show_fixes()
        if before is not None:
            contents = [fix.id for fix in self.lines.shown]
            self.lines.cursor = contents.index(before.id) if before.id in contents else 0
        self.remove_class("-bare")
        self._verdicts_changed()
        self._fix_changed()
        self.run_worker(self._try_each_alone(), group="fixes: alone", exclusive=True, exit_on_error=False)

    def _close_review(self) -> None:
        merge, self.merge = self.merge, None
        self.lines.merge = None
        self.lines.shown = []
        self.lines.redraw()
        if merge is not None:
            merge.review.close()
        self._show_nothing()

    def on_unmount(self) -> None:
        if self.merge is not None:
            self.merge.review.close()

    def _show_nothing(self) -> None:
        self.add_class("-bare")
        text = self.trouble or "reading the integrated branch…"
        if self.store.state.integration.state == "integrating":
            text = "the integrator is at work; its fixes will be here when it has finished"
        self.plan.show([[Part(" "), Part(text, "warning" if self.trouble else "dim")]])
        self.effect.show([])

    def _show_fixes(self) -> None:
        assert self.merge is not None, "only called with a review"
        fixes = self.merge.fixes
        self.lines.shown = [fix for fix in fixes if not self.words or fits_words(self.words, _words_of(fix))]
        self.lines.redraw()
        self._show_title()

    def _show_title(self) -> None:
        total, shown = len(self.merge.fixes) if self.merge else 0, len(self.lines.shown)
        title = f"Ranked {total}" + (f" · {shown} match /{self.words}" if self.words else "")
        self.lines.title(title, f"{min(self.lines.cursor + 1, shown)} of {shown}")

    # What follows the cursor.

    def on_lines_cursor_moved(self, event: Lines.CursorMoved) -> None:
        event.stop()
        if event.lines is self.lines:
            self._show_title()
            self._fix_changed()
            self.draw_foot()

    def _fix_changed(self) -> None:
        """Another fix is under the cursor: its diff at once when it was read ahead, the rest when the cursor rests."""
        merge, fix = self.merge, self.lines.current
        if merge is None or fix is None:
            self.diff.show(EMPTY)
            return
        diff = merge.known_diff(fix)
        if diff is not None:
            self._show_diff(fix)
        self._show_evidence(fix)
        self._show_effect()
        self.run_worker(self._read_around(merge, fix), group="fixes: read", exclusive=True, exit_on_error=False)

    async def _read_around(self, merge: Merge, fix: Fix) -> None:
        for near in self._around(fix):
            if merge.known_diff(near) is None:
                merge.keep_diff(near, await asyncio.to_thread(merge.review.diff, near))
            if near is fix and self.lines.current is fix:
                self._show_diff(fix)
                await asyncio.sleep(REST_SECONDS)
                await self._compute_effect(merge, fix)
            await asyncio.to_thread(merge.review.content, near)

    def _around(self, fix: Fix) -> tuple[Fix, ...]:
        """Give the fix and its neighbours, the likelier next ones first."""
        place = self.lines.shown.index(fix)
        places = (place, place + 1, place - 1, place + 2, place + 3)
        return tuple(self.lines.shown[near] for near in places if 0 <= near < len(self.lines.shown))

    async def _compute_effect(self, merge: Merge, fix: Fix) -> None:
        reverted = merge.with_it_reverted(fix)
        if merge.known_effect(fix) is None:
            merge.keep_effect(fix, reverted, await asyncio.to_thread(merge.review.preview_of, reverted))
        self._show_effect()

    def _show_diff(self, fix: Fix) -> None:
        assert self.merge is not None, "a fix is only current in a review"
        diff = self.merge.known_diff(fix)
        if diff is None:
            return
        self.diff.show(diff)
        files = len(diff.files)
        self.diff.title(f"#{fix.rank} {fix.id[:9]} {fix.title}", f"{files} file{'' if files == 1 else 's'}")

    def _show_evidence(self, fix: Fix) -> None:
        assert self.merge is not None, "a fix is only current in a review"
        self.evidence.show(draw_evidence(self.merge.evidence(fix), max(20, self.evidence.size.width or 80)))
        self.evidence.scroll_rows(0)
        self.evidence.title("Evidence", ", ".join(fix.agents[:2]) + ("…" if len(fix.agents) > 2 else ""))

    def _show_effect(self) -> None:
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

    # Verdicts.

    def _verdicts_changed(self) -> None:
        """Draw what was decided, and compute what it gives."""
        merge = self.merge
        if merge is None:
            return
        merge.applied = ""
        merge.preview = None
        self.closing_line = merge.review.closing_line()
        self.lines.lines_changed(range(len(self.lines.shown)))
        self._show_plan()
        self._show_effect()
        fix = self.lines.current
        if fix is not None:
            self._show_evidence(fix)
        self.run_worker(self._compute_plan(merge), group="fixes: plan", exclusive=True, exit_on_error=False)

    async def _compute_plan(self, merge: Merge) -> None:
        try:
            merge.preview = await asyncio.to_thread(merge.review.preview)
        except SwarmError as error:
            self.say(str(error), "error")
            return
        self.lines.lines_changed(range(len(self.lines.shown)))
        self._show_plan()
        fix = self.lines.current
        if fix is not None:
            await self._compute_effect(merge, fix)

    def _show_plan(self) -> None:
        if self.merge is not None:
            self.plan.show([draw_plan(self.merge.plan_facts(), self.size.width)])

    def _why_no_verdict(self) -> str:
        if self.merge is None:
            return self.trouble or "there is no integrated branch yet"
        return "" if self.lines.current is not None else "there is no fix under the cursor"

    why_not_keep = why_not_revert = why_not_later = why_not_clear = why_not_evidence = _why_no_verdict

    def _give(self, verdict: Verdict) -> None:
        merge, fix = self.merge, self.lines.current
        assert merge is not None, "asked for by why_not"
        assert fix is not None, "asked for by why_not"
        merge.review.give(fix, verdict)
        if verdict is not Verdict.CLEAR:
            self._to_next_open(fix)
        self._verdicts_changed()

    def _to_next_open(self, fix: Fix) -> None:
        assert self.merge is not None, "only called with a review"
        still_open = {found.id for found in self.merge.review.open_fixes}
        place = self.lines.shown.index(fix)
        after = [
            number for number in range(place + 1, len(self.lines.shown)) if self.lines.shown[number].id in still_open
        ]
        before = [number for number in range(place) if self.lines.shown[number].id in still_open]
        if after or before:
            self.lines.move_to((after or before)[0])
        elif not still_open:
            self.say("every fix has its verdict: A applies the plan", "good")

    def do_keep(self) -> None:
        self._give(Verdict.KEEP)

    def do_revert(self) -> None:
        self._give(Verdict.REVERT)

    def do_later(self) -> None:
        self._give(Verdict.LATER)

    def do_clear(self) -> None:
        self._give(Verdict.CLEAR)

    def why_not_undo(self) -> str:
        return "" if self.merge is not None else "there is nothing to undo"

    why_not_redo = why_not_undo

    def do_undo(self) -> None:
        self._step(is_undo=True)

    def do_redo(self) -> None:
        self._step(is_undo=False)

    def _step(self, *, is_undo: bool) -> None:
        assert self.merge is not None, "asked for by why_not"
        fix = self.merge.review.undo() if is_undo else self.merge.review.redo()
        if fix is None:
            self.say("you have given no verdict to undo" if is_undo else "nothing was undone")
            return
        if fix in self.lines.shown:
            self.lines.move_to(self.lines.shown.index(fix))
        self._verdicts_changed()

    # Looking.

    def do_evidence(self) -> None:
        self._wants_evidence = not self.has_class("-evidence")
        self._place_evidence()
        fix = self.lines.current
        if fix is not None:
            self.call_after_refresh(self._show_evidence, fix)

    def _reading(self) -> Lines:
        return self.evidence if self.has_class("-evidence") and not self.has_class("-tall") else self.diff

    def do_diff_down(self) -> None:
        self._reading().scroll_rows(self._reading().first_visible + 3)

    def do_diff_up(self) -> None:
        self._reading().scroll_rows(self._reading().first_visible - 3)

    def do_diff_page(self) -> None:
        self._reading().scroll_rows(self._reading().first_visible + self._reading().visible_rows - 1)

    def do_next_hunk(self) -> None:
        if not self.diff.move_hunk(1):
            self.say("this was the last hunk")

    def do_previous_hunk(self) -> None:
        if not self.diff.move_hunk(-1):
            self.say("this was the first hunk")

    @property
    def filter_words(self) -> str:  # type: ignore[override]
        return self.words

    def set_filter(self, words: str) -> None:
        fix = self.lines.current
        self.words = words
        if self.merge is None:
            return
        self._show_fixes()
        if fix in self.lines.shown:
            self.lines.move_to(self.lines.shown.index(fix))
        self._fix_changed()

    def _search(self, step: int) -> None:
        if self.lines.shown:
            self.lines.move_to((self.lines.cursor + step) % len(self.lines.shown))

    def do_next_match(self) -> None:
        self._search(1)

    def do_previous_match(self) -> None:
        self._search(-1)

    def current_tests(self) -> tuple[str, ...]:
        fix = self.lines.current
        return tuple(record.test for record in self.merge.records_of(fix)) if self.merge and fix else ()

    def name_to_copy(self) -> str:
        fix = self.lines.current
        return fix.id if fix else ""

    def why_not_open(self) -> str:
        return "" if self.current_tests() else "no test of this sweep is known to have led to this fix"

    def do_open(self) -> None:
        self.room.show_test(self.current_tests()[0])

    # What stands in the way of a revert, and the end of the review.

    def why_not_resolve(self) -> str:
        fix = self.lines.current
        if self.merge is None or fix is None:
            return self._why_no_verdict()
        return "" if self.merge.conflict_of(fix) is not None else "nothing stands in the way of reverting this fix"

    def do_resolve(self) -> None:
        from swarm_tui.room.screens.conflict import offer_resolutions

        assert self.merge is not None, "asked for by why_not"
        assert self.lines.current is not None, "asked for by why_not"
        offer_resolutions(self, self.merge, self.lines.current)

    def plan_changed(self) -> None:
        """Take in that verdicts or resolutions were changed by a dialog."""
        self._verdicts_changed()

    def why_not_apply(self) -> str:
        if self.merge is None:
            return self._why_no_verdict()
        if not self.merge.review.reverted:
            return f"nothing is reverted: {self.merge.review.tip_name} is the result as it stands"
        return ""

    def do_apply(self) -> None:
        assert self.merge is not None, "asked for by why_not"
        self.run_worker(self._propose(self.merge), group="fixes: apply", exclusive=True, exit_on_error=False)

    async def _propose(self, merge: Merge) -> None:
        from swarm_tui.room.screens.dialog import Choosable, PickScreen

        def picked(values: tuple[str, ...] | None) -> None:
            if values:
                self.run_worker(
                    self._confirm(merge, is_drop=values[0] == "drop"),
                    group="fixes: apply",
                    exclusive=True,
                    exit_on_error=False,
                )

        number = len(merge.review.reverted)
        entries = [
            Choosable("revert", "revert commits on top", f"{number} commits that say which fix, why and by whom", "r"),
            Choosable("drop", "a clean branch without them", "the history never had them", "d"),
        ]
        self.app.push_screen(PickScreen(f"Apply: {number} reverted", entries), picked)

    async def _confirm(self, merge: Merge, *, is_drop: bool) -> None:
        from swarm_tui.room.screens.dialog import ConfirmScreen

        branch = reviewed_branch(merge.review, merge.sweep)
        try:
            proposal = await asyncio.to_thread(propose, merge.review, branch, is_drop=is_drop)
        except SwarmError as error:
            self.say(str(error), "error")
            return
        still_open = len(merge.review.open_fixes)
        details = [
            f"as {proposal.author.name} <{proposal.author.email}>" + (", signed" if proposal.is_signed else ""),
            *(f"+ {subject}" for subject in proposal.subjects),
        ]
        if proposal.replaces:
            details.insert(0, f"it replaces what an earlier apply made ({proposal.replaces[:9]})")
        if still_open:
            details.insert(0, f"{still_open} fixes are still open: they stay")
        question = f"Make {branch}? Your checkout is not touched."

        def answered(is_yes: bool | None) -> None:
            if is_yes:
                self.run_worker(self._apply(merge, proposal), group="fixes: apply", exclusive=True, exit_on_error=False)
            else:
                self.say("nothing was made")

        self.app.push_screen(ConfirmScreen(question, details), answered)

    async def _apply(self, merge: Merge, proposal: Proposal) -> None:
        try:
            applied = await asyncio.to_thread(apply_proposal, merge.review, proposal, sweep=merge.sweep)
            words = await asyncio.to_thread(checkout_words, merge.review.repository, applied)
        except SwarmError as error:
            self.say(str(error), "error")
            return
        merge.applied = applied.branch
        self._show_plan()
        self.store.note("info", f"applied on {applied.branch}: {merge.review.closing_line()}")
        self.say(f"{applied.branch} is made. To get it: {words}", "good")


def _words_of(fix: Fix) -> str:
    paths = " ".join(change.path for change in fix.commit.changes)
    return f"{fix.title} {' '.join(fix.agents)} {paths} {fix.id}"
