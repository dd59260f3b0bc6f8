"""The room's app: follows the sweep, passes on what changed, opens screens. What they show is theirs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen

from swarm_tui.adapters.file_notices import FileNotices, NoticedFile
from swarm_tui.journal.personal_files import state_folder
from swarm_tui.model.formatting import counted
from swarm_tui.room.absence import Absence
from swarm_tui.room.actions import screen_entry
from swarm_tui.room.colours import ThemeStyles
from swarm_tui.room.draw.arrange import SORTINGS, GridOptions, Zoom, is_grouping
from swarm_tui.room.garbage import Garbage
from swarm_tui.room.key_queue import KeyQueue
from swarm_tui.room.marks import Marks
from swarm_tui.room.notices import POP_TITLE, PUSH_TITLE, Notices
from swarm_tui.room.screens.base import RoomScreen
from swarm_tui.room.settings import TERMINAL_THEME, ProjectChoices, Settings, first_theme
from swarm_tui.room.store import EngineState, Store, SweepChanged
from swarm_tui.room.suspend import leave_on_signals
from swarm_tui.room.time_travel import TimeTravel

GRID = "sweep"
if TYPE_CHECKING:
    from swarm_tui.room.agent_access import AgentAccess
    from swarm_tui.room.review_state import ReviewState
    from swarm_tui.room.screens.agent import AgentScreen
    from swarm_tui.triage.review import Review

FLUSH_SECONDS = 0.1
"""How often the journal is looked at where nobody says when it grows, and how often much is shown."""
PART_FOR_LOADING = 0.1
"""While a long journal is read, showing what there is so far takes this part of the time at most."""
SHORTEST_PAUSE = 0.015
STILL_SECONDS = 10.0
PAUSE_FOR_TEST = 0.003
"""The more tests changed at once, the longer until the next look: keys find the room at rest."""
ONLY_NOW = frozenset({"fixes", "tail"})
"""Screens that show files and commits: of an earlier moment they know nothing."""


class RoomApp(App[str]):
    """The room on one sweep. It ends with a sentence for the terminal, or with none."""

    CSS_PATH = "room.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        # Textual binds ctrl+q to quit. In an agent's tmux it destroys the agent, so it must not become a habit.
        Binding("ctrl+q", "hint_leave", show=False, priority=True),
        Binding("ctrl+c", "copy_or_hint", show=False, priority=True),
    ]

    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        is_ascii: bool = False,
        home: str = GRID,
        given_review: Callable[[], Review] | None = None,
        test_command: str = "",
        at: float | None = None,
    ) -> None:
        # Without colours: none at all, where Textual would give shades of grey.
        is_colourless = os.environ.get("NO_COLOR") is not None
        super().__init__(ansi_color=True if is_colourless else None)
        self.store = store
        self.home = home
        self.given_review = given_review
        """Opens the review of a branch that no sweep made; then the merge view is the whole room."""
        self.opened_review: Review | None = None
        """That review, if it was opened before the room: the first frame shows it."""
        self.test_command = test_command
        """What the merge view runs in place of pytest."""
        self.first_moment = at
        """The earlier moment that is shown first; None for now."""
        self.settings = settings
        self.is_ascii = is_ascii
        self.marks = Marks()
        self.current_test: str | None = None
        self.drafts: dict[str, str] = {}
        """Messages that were written and not sent."""
        self.sending = asyncio.Lock()
        """Messages that are sent without an engine keep their order."""
        remembered = settings.remembered
        self.is_first_time = settings.state_file is not None and not remembered.is_taught
        """Whether the lines for somebody who has never seen the room are shown; they are for one room only."""
        self.remember(is_taught=True)
        spec = store.opened.spec
        self.project = spec.repository or spec.title or spec.sweep
        """Choices belong to it."""
        chosen = settings.choices_for(self.project)
        self.is_zoom_chosen = chosen.zoom in list(Zoom)
        """Else the grid takes the largest zoom in which all tests are seen."""
        self.choice = GridOptions(
            zoom=Zoom(chosen.zoom) if self.is_zoom_chosen else Zoom.DOTS,
            group=chosen.group
            if is_grouping(chosen.group, is_watch=store.is_watch)
            else ("project" if store.is_watch else "file"),
            sort=chosen.sort if chosen.sort in SORTINGS else "file",
        )
        if chosen.sweep == spec.sweep:
            self.current_test = chosen.test
        self.key_at = 0.0
        self.key_queue = KeyQueue(self, super().on_event, self._takes_key)
        self._screens: dict[str, RoomScreen] = {}
        self._history: list[str] = []
        self._engine_checked_at = 0.0
        self._flushed_at = 0.0
        self.file_notices = FileNotices()
        self.garbage = Garbage()
        self._has_news = asyncio.Event()
        store.wake = self._has_news.set
        self._is_absence_read = False
        self.theme = self._first_theme()
        self.theme_styles = ThemeStyles(self, is_ascii)
        self.set_class(is_ascii, "-ascii")
        self.set_class(self.no_color, "-colourless")
        # A watch begins anew each time: nothing was seen of it before.
        self.absence = Absence(store, None if store.is_watch else settings.personal_folder)
        self.time_travel = TimeTravel(self)
        self.notices = Notices(self.write_to_terminal, settings.notify, store.opened.spec.sweep, store.noun)

    def _first_theme(self) -> str:
        if self.no_color:
            return TERMINAL_THEME
        for name in (self.settings.theme, self.settings.remembered.theme):
            if name in self.available_themes:
                return name
        return first_theme(self)

    # Screens.

    def get_default_screen(self) -> Screen[Any]:
        return self._screen_of(self.home)

    def _screen_of(self, name: str) -> RoomScreen:
        screen = self._screens.get(name)
        if screen is None:
            screen = self._screens[name] = screen_entry(name).load()()
            self.install_screen(screen, name)
        return screen

    def open_screen(self, name: str) -> None:
        """Bring up a screen; `go_back` leads back to the one before."""
        here = self.room_screen
        if here is None or name == here.NAME:
            return
        if self.given_review is not None and name != self.home:
            here.show_message("this is the review of a branch: there is no sweep to show")
            return
        if self.store.is_watch and not screen_entry(name).is_for_watch:
            here.show_message("these agents are of no sweep: there is nothing to show")
            return
        if self.store.past is not None and name in ONLY_NOW:
            entry = screen_entry(name)
            self.refuse_in_past(f"{entry.title}: files and commits as they are now")
            return
        self._history = [*[seen for seen in self._history if seen != name][-20:], here.NAME]
        self._bring_up(name)

    def refuse_in_past(self, what: str) -> None:
        """Say why something is of now only, so that no key which follows acts."""
        from swarm_tui.room.screens.only_now import OnlyNowScreen

        self.push_screen(OnlyNowScreen(what, self.store.why_only_now()))

    def _bring_up(self, name: str) -> None:
        # The home screen always is at the bottom of the stack, with at most one other screen above it.
        if name == self.home:
            self.pop_screen()
        elif len(self.screen_stack) > 1:
            self.switch_screen(self._screen_of(name))
        else:
            self.push_screen(self._screen_of(name))

    def go_back(self) -> None:
        """Go back to the screen before; at home that is the way out."""
        here = self.room_screen
        if here is not None and self.home == here.NAME:
            self.leave()
        else:
            self._bring_up(self._history.pop() if self._history else self.home)

    @property
    def room_screen(self) -> RoomScreen | None:
        """The screen of the room that is shown, also below a dialog."""
        return next((screen for screen in reversed(self.screen_stack) if isinstance(screen, RoomScreen)), None)

    def show_test(self, test: str) -> None:
        """Go to a test in the grid; a filter that hides it is taken off."""
        from swarm_tui.room.screens.sweep import SweepScreen

        self.open_screen(GRID)
        screen = self._screen_of(GRID)
        assert isinstance(screen, SweepScreen)
        screen.tests.go_to(test)

    def show_only(self, tests: Iterable[str], name: str) -> None:
        self.choice = replace(self.choice, only=frozenset(tests), only_name=name, words="", pills=frozenset())
        self.open_screen(GRID)

    def resume_sweep(self) -> str:
        """Start an engine that goes on with this sweep and outlives the room; return a sentence about it."""
        from swarm_tui.adapters.process import start_detached

        folder = self.store.folder
        words = [sys.executable, "-m", "swarm_tui", "resume", str(folder.root), "--headless"]
        start_detached(words, cwd=Path.cwd(), environment=os.environ, log=folder.engine_log)
        return f"an engine is started; {folder.engine_log.name} tells what it does"

    def open_review(self) -> Review:
        from swarm_tui.triage.sweep_review import review_sweep

        if self.given_review is None:
            return review_sweep(self.store.folder)
        review, self.opened_review = self.opened_review, None
        return review or self.given_review()

    def closing_line(self) -> str:
        from swarm_tui.room.screens.fixes import FixesScreen

        screen = self._screens.get("fixes")
        return screen.plan.closing_line if isinstance(screen, FixesScreen) else ""

    @property
    def review_state(self) -> ReviewState | None:
        """The review that the merge view has open, if it has one."""
        screen = self._screens.get("fixes")
        return getattr(screen, "review_state", None)

    def leave(self) -> None:
        from swarm_tui.agents.kinds import kind_of_sweep

        state = self.store.live_state
        is_simulated = kind_of_sweep(self.store.opened.spec).is_simulated
        if state.ended_why is not None or not state.records or is_simulated or self.store.is_watch:
            self.exit("")
        else:
            self.exit(
                "You have left the room; the agents go on. `swarm-tui` brings you back, `swarm-tui stop` stops them."
            )

    def show_transcript(self, test: str) -> None:
        self._agent_screen(test).show_transcript()

    def show_changes(self, test: str) -> None:
        self._agent_screen(test).show_changes()

    def _agent_screen(self, test: str) -> AgentScreen:
        from swarm_tui.room.screens.agent import AgentScreen

        self.current_test = test
        self.open_screen("agent")
        screen = self._screens["agent"]
        assert isinstance(screen, AgentScreen)
        return screen

    # Agents, for the screens that have one under their cursor.

    @cached_property
    def agents(self) -> AgentAccess:
        from swarm_tui.room.agent_access import AgentAccess

        return AgentAccess(self.store.opened.spec, self.store.folder, lambda: self.store.live_state.hosts)

    def shown_order(self) -> list[str]:
        from swarm_tui.room.screens.sweep import SweepScreen

        screen = self._screens.get(GRID)
        return screen.grid.order() if isinstance(screen, SweepScreen) else []

    def move_grid_to(self, test: str) -> None:
        """Put the grid's cursor on a test without going there: one key back leads to it."""
        from swarm_tui.room.screens.sweep import SweepScreen

        self.current_test = test
        screen = self._screens.get(GRID)
        if isinstance(screen, SweepScreen) and screen.is_mounted:
            screen.grid.go_to(test)

    # Following the sweep.

    async def on_mount(self) -> None:
        leave_on_signals(self)
        self.write_to_terminal(PUSH_TITLE)
        # The rest of a long journal is read after the first frame, so as not to delay it.
        self.call_after_refresh(self.run_worker, self._follow, group="follow", name="follow the journal")

    async def _follow(self) -> None:
        journal: NoticedFile | None = None
        pause = 0.0
        while True:
            has_more = self.store.read_new_events()
            now, changed = time.monotonic(), 0
            if not has_more or now - self._flushed_at > pause:
                changed = self._flush_changes(now)
                pause = max(FLUSH_SECONDS, (time.monotonic() - now) / PART_FOR_LOADING)
            if has_more:
                await asyncio.sleep(0)
                continue
            if self.first_moment is not None:
                self.time_travel.go_to(self.first_moment)
                self.first_moment = None
            if journal is None:
                # The first frame comes before all that is of use later.
                await asyncio.sleep(FLUSH_SECONDS)
                self.garbage.begin()
                journal = self.file_notices.follow(self.store.folder.events, self._has_news.set)
            await self._wait_for_news(changed, is_told=journal.is_noticed)

    async def _wait_for_news(self, changed: int, *, is_told: bool) -> None:
        """Wait until the journal grows or a second is over, but some time after so many tests have changed."""
        await asyncio.sleep(min(SHORTEST_PAUSE + changed * PAUSE_FOR_TEST, FLUSH_SECONDS))
        left = self._engine_checked_at + 1.0 - time.monotonic()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left if is_told else min(left, FLUSH_SECONDS)):
                await self._has_news.wait()
        self._has_news.clear()

    def _flush_changes(self, now: float) -> int:
        """Show what has changed; return how many tests have."""
        is_second, is_different = now - self._engine_checked_at >= 1.0, False
        if is_second:
            self._engine_checked_at = now
            self.garbage.collect(self.store.live_clock() - self.key_at)
            is_different = self.store.check_engine()
        change = self.store.drain()
        screen = self.room_screen
        if screen is None or not screen.is_mounted:
            return 0
        # Where no engine works, nothing gets older but the time since then.
        is_moving = self.store.engine is EngineState.RUNNING or self.store.is_watch or screen.shows_files
        is_due = is_second and (is_moving or is_different or now - self._flushed_at >= STILL_SECONDS)
        if change.tests or change.scopes or is_due:
            self._flushed_at = now
            screen.apply_change(change)
            self._show_answers(screen, change)
        if is_second and self.store.is_loaded:
            if alarm := self.notices.update(self.store.live_state):
                screen.show_message(f"{alarm} · 4 shows it", "warning")
            self._keep_seen()
        return len(change.tests)

    def _keep_seen(self) -> None:
        if not self._is_absence_read:
            self._is_absence_read = True
            self.run_worker(self._show_absence(), group="absence", exit_on_error=False)
        elif self.absence.is_due():
            self.run_worker(asyncio.to_thread(self.absence.keep), group="seen", exit_on_error=False)

    async def _show_absence(self) -> None:
        await self.absence.read()
        if self.absence.line and self.room_screen is not None:
            self.room_screen.show_message(f"{self.absence.line} · S lists it", stays=True)

    def _show_answers(self, screen: RoomScreen, change: SweepChanged) -> None:
        for answer in change.answers:
            if answer.is_done:
                screen.show_message(answer.text, "good")
            else:
                self.store.note("error", answer.text)
                screen.show_message(f"{answer.text} (6 tells more)", "error")

    # Marks, remembered choices, theme.

    def change_marks(self, marks: Marks) -> None:
        changed = self.marks.tests ^ marks.tests
        self.marks = marks
        if self.room_screen is not None:
            self.room_screen.apply_change(SweepChanged(tests=changed))

    @property
    def shown_pills(self) -> frozenset[str]:
        return self.choice.pills

    def remember(self, **changes: Any) -> None:
        self.settings = self.settings.remember(**changes)

    @property
    def chosen(self) -> ProjectChoices:
        """What a person has chosen for the project of this sweep."""
        return self.settings.choices_for(self.project)

    def remember_for_project(self, **changes: str) -> None:
        self.settings = self.settings.remember_for(self.project, **changes)

    def watch_theme(self, theme: str) -> None:
        if hasattr(self, "theme_styles"):
            self.theme_styles = ThemeStyles(self, self.is_ascii)
            self.remember(theme=theme)
            for screen in self._screens.values():
                for lines in screen.query("Lines, Band"):
                    lines.notify_style_update()
                    lines.refresh()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the keys of the app itself to an agent's pane while one is open."""
        return not (action in ("hint_leave", "copy_or_hint") and getattr(self.screen, "TAKES_ALL_KEYS", False))

    def action_hint_leave(self) -> None:
        self._show_message("ctrl+q does nothing here, for in an agent's tmux it destroys the agent. q leaves the room.")

    def action_copy_or_hint(self) -> None:
        selection = self.screen.get_selected_text()
        if selection:
            self.copy_to_clipboard(selection)
            self._show_message("copied")
        else:
            self._show_message("q leaves the room; the agents go on")

    def _show_message(self, text: str) -> None:
        if self.room_screen is not None:
            self.room_screen.show_message(text)

    # The terminal.

    def write_to_terminal(self, text: str) -> None:
        """Write control sequences of our own; never text of an agent that was not made plain."""
        if self._driver is not None and not self.is_headless:
            self._driver.write(text)

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key) and not event.is_forwarded:
            self.key_at = self.store.live_clock()
            if self.key_queue.held and event.key == "escape":
                self._show_message(f"dropped: {counted(self.key_queue.held, 'key')} that waited")
                self.key_queue.drop()
            else:
                await self.key_queue.put(event)
        else:
            await super().on_event(event)

    def _takes_key(self, event: events.Key) -> bool:
        screen = self.screen
        if isinstance(screen, RoomScreen):
            return screen.takes(event)
        return screen.is_mounted

    def deliver_held_keys(self) -> None:
        """Deliver keys that waited for a screen, if it is loaded by now."""
        if self.key_queue.held:
            self.call_later(self.key_queue.go_on)

    def on_unmount(self) -> None:
        self.garbage.end()
        self.file_notices.close()
        if self._is_absence_read:
            self.absence.keep()
        if self.current_test is not None and self.given_review is None:
            self.remember_for_project(sweep=self.store.opened.spec.sweep, test=self.current_test)
        self.write_to_terminal(f"\x1b]2;\x07{POP_TITLE}")

    def _fatal_error(self) -> None:
        # Textual would print a traceback with all locals, agents' text among them. What fails after the first
        # failure, during shutdown, is no information.
        if self._exit_renderables:
            return
        from swarm_tui.room.crash import write_crash_report

        report = write_crash_report(state_folder(), traceback.format_exc())
        self._exit_renderables.append(
            Text(f"swarm-tui: the room has crashed; the agents go on. The report is in {report}")
        )
        self._close_messages_no_wait()
