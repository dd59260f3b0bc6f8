"""App: follows the sweep, opens screens."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from rich.text import Text
from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen

from swarm_tui import __version__
from swarm_tui.adapters.file_notices import FileNotices, NoticedFile
from swarm_tui.adapters.processes.run import start_detached
from swarm_tui.agents.types import agent_type_of_sweep
from swarm_tui.journal.user_files import state_folder
from swarm_tui.model.formatting import counted
from swarm_tui.model.masking import mask_secrets
from swarm_tui.model.text import plain_lines
from swarm_tui.room.actions import screen_entry
from swarm_tui.room.colours import ThemeStyles
from swarm_tui.room.dialog import RefusedScreen
from swarm_tui.room.external import leave_on_signals
from swarm_tui.room.grid.draw_layout import Zoom, saved_options
from swarm_tui.room.grid.session import SweepView
from swarm_tui.room.keys import KeyQueue
from swarm_tui.room.notifications import POP_TITLE, PUSH_TITLE, LastVisitSummary, TerminalNotifications
from swarm_tui.room.screen import RoomScreen
from swarm_tui.room.settings import TERMINAL_THEME, ProjectChoices, Settings, first_theme
from swarm_tui.room.store import EngineState, Store, SweepChanged
from swarm_tui.room.time_travel import TimeTravel

if TYPE_CHECKING:
    from swarm_tui.review.review import Review
    from swarm_tui.room.agent.screen import AgentScreen
    from swarm_tui.room.agent_access import AgentAccess
    from swarm_tui.room.fixes.screen import FixesScreen
    from swarm_tui.room.fixes.session import ReviewSession


DUE: Final = 10
"""A full collection is due after this number of young collections. The room then waits for a pause in typing."""
OVERDUE: Final = 300
"""After this number of young collections the room does not wait. At 1000 events a second that is two minutes."""
REST_SECONDS: Final = 1.0
_NEVER: Final = 1 << 30


def is_due(collections: int, since_key: float) -> bool:
    """Return whether a full collection is due after this number of young collections."""
    return collections >= OVERDUE or (collections >= DUE and since_key >= REST_SECONDS)


class Garbage:
    """Controls Python's garbage collector while a room is open."""

    def __init__(self) -> None:
        self._usual = gc.get_threshold()

    def begin(self) -> None:
        """Exclude all existing objects from collection: objects created at startup stay alive."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(*self._usual[:2], _NEVER)
        gc.enable()

    def collect(self, since_key: float) -> None:
        """Run a full collection if it is due and the last key is this number of seconds ago."""
        if is_due(gc.get_count()[2], since_key):
            gc.collect()

    def end(self) -> None:
        gc.set_threshold(*self._usual)


GRID = "sweep"

FLUSH_SECONDS = 0.1
"""Seconds between reads of the journal without file notifications, and between screen updates under load."""
PART_FOR_LOADING = 0.1
"""Share of time for drawing while a long journal is being loaded."""
SHORTEST_PAUSE = 0.015
STILL_SECONDS = 10.0
PAUSE_FOR_TEST = 0.003
"""Seconds added to the pause before the next read for each changed test, so that keys are handled fast."""
ONLY_NOW = frozenset({"fixes", "tail"})
"""Screens that show files and commits. They are unavailable while an earlier moment is shown."""


class RoomApp(App[str]):
    """The room of one sweep. Returns a sentence to print after it has closed, or None."""

    CSS_PATH = "room.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        # Textual binds ctrl+q to quit. In an agent's tmux session ctrl+q destroys the agent, so the room does not use
        # it.
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
        # NO_COLOR: use no colours. Textual alone would show shades of grey.
        is_colourless = os.environ.get("NO_COLOR") is not None
        super().__init__(ansi_color=True if is_colourless else None)
        self.store = store
        self.home = home
        self.given_review = given_review
        """Opens the review of a branch outside a sweep. The room then has only the Fixes screen."""
        self.opened_review: Review | None = None
        """The same review if it was opened before the room, so that the first frame can show it."""
        self.test_command = test_command
        """Command that the Fixes screen runs instead of pytest."""
        self.first_moment = at
        """The earlier moment to show first; None for the present."""
        self.settings = settings
        self.is_ascii = is_ascii
        self.drafts: dict[str, str] = {}
        """Unsent messages."""
        self.sending = asyncio.Lock()
        """Keeps messages that are sent without an engine in order."""
        remembered = settings.remembered
        self.is_first_time = settings.state_file is not None and not remembered.is_taught
        """Whether to show the introduction for new users. It is shown in one room only."""
        self.remember(is_taught=True)
        spec = store.opened.spec
        self.project = spec.repository or spec.title or spec.sweep
        """Saved view settings belong to this name."""
        chosen = settings.choices_for(self.project)
        options = saved_options(chosen.zoom, chosen.group, chosen.sort, is_watch=store.is_watch)
        self.view = SweepView(store, options, is_zoom_chosen=chosen.zoom in list(Zoom), changed=self._apply_change)
        self.current_test: str | None = chosen.test if chosen.sweep == spec.sweep else None
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
        # Watched agents have no saved position.
        self.absence = LastVisitSummary(store, None if store.is_watch else settings.personal_folder)
        self.time_travel = TimeTravel(self)
        self.notices = TerminalNotifications(
            self.write_to_terminal, settings.notify, store.opened.spec.sweep, store.noun
        )

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
        """Open a screen. `go_back` returns to the previous one."""
        here = self.room_screen
        if here is None or name == here.NAME:
            return
        if self.given_review is not None and name != self.home:
            here.show_message("not available in the review of a branch outside a sweep")
            return
        if self.store.is_watch and not screen_entry(name).is_for_watch:
            here.show_message("not available for agents outside a sweep")
            return
        if self.store.past is not None and name in ONLY_NOW:
            entry = screen_entry(name)
            self.refuse_in_past(f"{entry.title}: files and commits in their present state")
            return
        self._history = [*[screen for screen in self._history if screen != name][-20:], here.NAME]
        self._bring_up(name)

    def refuse_in_past(self, what: str) -> None:
        """Show a dialog: the action is available only in the present. Keys typed after it are ignored."""
        self.refuse(what, self.store.why_only_now(), title="Only in the present")

    def refuse(self, what: str, reason: str, title: str = "Not available") -> None:
        """Show in a dialog why an action is unavailable. Keys typed after it are ignored."""
        self.push_screen(RefusedScreen(title, what, reason))

    def _bring_up(self, name: str) -> None:
        # The home screen is always at the bottom of the stack, with at most one other screen above it.
        if name == self.home:
            self.pop_screen()
        elif len(self.screen_stack) > 1:
            self.switch_screen(self._screen_of(name))
        else:
            self.push_screen(self._screen_of(name))

    def go_back(self) -> None:
        """Return to the previous screen; on the home screen, leave the room."""
        here = self.room_screen
        if here is not None and self.home == here.NAME:
            self.leave()
        else:
            self._bring_up(self._history.pop() if self._history else self.home)

    @property
    def room_screen(self) -> RoomScreen | None:
        """The current screen of the room, even if a dialog covers it."""
        return next((screen for screen in reversed(self.screen_stack) if isinstance(screen, RoomScreen)), None)

    def show_test(self, test: str) -> None:
        """Show a test in the grid. If a filter hides the test, the filter is cleared."""
        self.open_screen(GRID)
        self._screen_of(GRID).go_to(test)

    def show_only(self, tests: Iterable[str], name: str) -> None:
        self.view.show_only(tests, name)
        self.open_screen(GRID)

    def resume_sweep(self) -> str:
        """Start an engine that resumes this sweep and outlives the room. Return a message for the user."""
        folder = self.store.folder
        words = [sys.executable, "-m", "swarm_tui", "resume", str(folder.root), "--headless"]
        start_detached(words, cwd=Path.cwd(), environment=os.environ, log=folder.engine_log)
        return f"engine started, output in {folder.engine_log.name}"

    def open_review(self) -> Review:
        # Late: 170 ms, for git and pydantic.
        from swarm_tui.review.open import review_sweep

        if self.given_review is None:
            return review_sweep(self.store.folder)
        review, self.opened_review = self.opened_review, None
        return review or self.given_review()

    def closing_line(self) -> str:
        screen = self._fixes_screen
        return screen.closing_line if screen is not None else ""

    @property
    def _fixes_screen(self) -> FixesScreen | None:
        return cast("FixesScreen | None", self._screens.get("fixes"))

    @property
    def review_session(self) -> ReviewSession | None:
        """The review on the Fixes screen, or None."""
        return self._fixes_screen.session if self._fixes_screen is not None else None

    def leave(self) -> None:
        state = self.store.live_state
        is_simulated = agent_type_of_sweep(self.store.opened.spec).is_simulated
        if state.ended_why is not None or not state.records or is_simulated or self.store.is_watch:
            self.exit("")
        else:
            self.exit(
                "You left the room. The agents keep running. "
                "To come back: `swarm-tui`. To stop the sweep: `swarm-tui stop`."
            )

    def show_transcript(self, test: str) -> None:
        self._agent_screen(test).show_transcript()

    def show_changes(self, test: str) -> None:
        self._agent_screen(test).show_changes()

    def _agent_screen(self, test: str) -> AgentScreen:
        self.current_test = test
        self.open_screen("agent")
        return cast("AgentScreen", self._screens["agent"])

    # The agent under the cursor.

    @cached_property
    def agents(self) -> AgentAccess:
        # Late: 130 ms, for mngr, the hosts and pydantic.
        from swarm_tui.room.agent_access import AgentAccess

        return AgentAccess(self.store.opened.spec, self.store.folder, lambda: self.store.live_state.hosts)

    def move_grid_to(self, test: str) -> None:
        """Move the cursor of the grid to a test without opening the grid."""
        self.current_test = test
        screen = self._screens.get(GRID)
        if screen is not None and screen.is_mounted and test in self.view.order:
            screen.go_to(test)

    # Following the sweep.

    async def on_mount(self) -> None:
        leave_on_signals(self)
        self.write_to_terminal(PUSH_TITLE)
        # The rest of a long journal is read after the first frame.
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
                # Draw the first frame before loading everything else.
                await asyncio.sleep(FLUSH_SECONDS)
                self.garbage.begin()
                journal = self.file_notices.follow(self.store.folder.events, self._has_news.set)
            await self._wait_for_news(changed, is_told=journal.is_noticed)

    async def _wait_for_news(self, changed: int, *, is_told: bool) -> None:
        """Wait until the journal grows or a second has passed. After many changed tests, wait longer."""
        await asyncio.sleep(min(SHORTEST_PAUSE + changed * PAUSE_FOR_TEST, FLUSH_SECONDS))
        left = self._engine_checked_at + 1.0 - time.monotonic()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left if is_told else min(left, FLUSH_SECONDS)):
                await self._has_news.wait()
        self._has_news.clear()

    def _flush_changes(self, now: float) -> int:
        """Update the screen. Return the number of changed tests."""
        is_second, is_different = now - self._engine_checked_at >= 1.0, False
        if is_second:
            self._engine_checked_at = now
            self.garbage.collect(self.store.live_clock() - self.key_at)
            is_different = self.store.check_engine()
        change = self.store.drain()
        screen = self.room_screen
        if screen is None or not screen.is_mounted:
            return 0
        # Without a running engine only the time since its last event changes.
        is_moving = self.store.engine is EngineState.RUNNING or self.store.is_watch or screen.shows_files
        is_due = is_second and (is_moving or is_different or now - self._flushed_at >= STILL_SECONDS)
        if change.tests or change.scopes or is_due:
            self._flushed_at = now
            screen.apply_change(change)
            self._show_answers(screen, change)
        if is_second and self.store.is_loaded:
            if alert := self.notices.update(self.store.live_state):
                screen.show_message(f"{alert} · press 4 for details", "warning")
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
            self.room_screen.show_message(f"{self.absence.line} · press S for details", stays=True)

    def _show_answers(self, screen: RoomScreen, change: SweepChanged) -> None:
        for answer in change.answers:
            if answer.is_done:
                screen.show_message(answer.text, "good")
            else:
                self.store.note("error", answer.text)
                screen.show_message(f"{answer.text} (details: 6)", "error")

    # View settings, theme.

    def _apply_change(self, change: SweepChanged) -> None:
        if self.room_screen is not None:
            self.room_screen.apply_change(change)

    def remember(self, **changes: Any) -> None:
        self.settings = self.settings.remember(**changes)

    @property
    def chosen(self) -> ProjectChoices:
        """The user's view settings for the project of this sweep."""
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
        """Disable the app's own keys while an agent's terminal is open in the room."""
        return not (action in ("hint_leave", "copy_or_hint") and getattr(self.screen, "TAKES_ALL_KEYS", False))

    def action_hint_leave(self) -> None:
        self._show_message("ctrl+q is disabled: in an agent's tmux it destroys the agent. Press q to leave the room.")

    def action_copy_or_hint(self) -> None:
        selection = self.screen.get_selected_text()
        if selection:
            self.copy_to_clipboard(selection)
            self._show_message("copied")
        else:
            self._show_message("press q to leave the room; the agents keep running")

    def _show_message(self, text: str) -> None:
        if self.room_screen is not None:
            self.room_screen.show_message(text)

    # The terminal.

    def write_to_terminal(self, text: str) -> None:
        """Write control sequences to the terminal. Never pass text of an agent that was not sanitized with `plain`."""
        if self._driver is not None and not self.is_headless:
            self._driver.write(text)

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key) and not event.is_forwarded:
            self.key_at = self.store.live_clock()
            if self.key_queue.held and event.key == "escape":
                self._show_message(f"dropped {counted(self.key_queue.drop(), 'waiting key')}")
            else:
                await self.key_queue.put(event)
        else:
            await super().on_event(event)

    def _takes_key(self, event: events.Key) -> bool:
        screen = self.screen
        if isinstance(screen, RoomScreen):
            return not self.key_queue.is_holding and screen.takes(event)
        return screen.is_mounted

    def on_unmount(self) -> None:
        self.garbage.end()
        self.file_notices.close()
        if self._is_absence_read:
            self.absence.keep()
        if self.current_test is not None and self.given_review is None:
            self.remember_for_project(sweep=self.store.opened.spec.sweep, test=self.current_test)
        self.write_to_terminal(f"\x1b]2;\x07{POP_TITLE}")

    def _fatal_error(self) -> None:
        # Textual would print a traceback with all local variables, including text from agents. Errors after the first
        # one happen during shutdown and are not reported.
        if self._exit_renderables:
            return

        report = write_crash_report(state_folder(), traceback.format_exc())
        self._exit_renderables.append(
            Text(f"swarm-tui: the room has crashed. The agents keep running. Crash report: {report}")
        )
        self._close_messages_no_wait()


def write_crash_report(folder: Path, trace: str) -> str:
    """Write the report. Return its path, or why it could not be written."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    path = folder / "crashes" / f"{stamp}.txt"
    head = f"swarm-tui {__version__}, Python {platform.python_version()}, {platform.system()}\n\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(head + mask_secrets(plain_lines(trace)), encoding="utf-8")
    except OSError as error:
        return f"not written ({error.strerror or error}): {mask_secrets(plain_lines(trace.strip().splitlines()[-1]))}"
    return str(path)
