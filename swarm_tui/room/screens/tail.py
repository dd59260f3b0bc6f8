"""Screen 7: what all marked or shown agents write, as one stream; the same from many is one line."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from swarm_tui.model.formatting import counted
from swarm_tui.model.states import State
from swarm_tui.room.actions import Action
from swarm_tui.room.draw.cells import short_name
from swarm_tui.room.draw.parts import Line
from swarm_tui.room.draw.streams import draw_tail_line
from swarm_tui.room.followed_files import FollowedFiles
from swarm_tui.room.screens.stream import StreamLines, StreamScreen
from swarm_tui.room.store import SweepChanged
from swarm_tui.room.widgets.lines import Lines
from swarm_tui.transcripts.filters import EntryFilter
from swarm_tui.transcripts.locate import find_transcript
from swarm_tui.transcripts.merged import MergedEntry, MergedTail
from swarm_tui.transcripts.window import FileSource

LOOK_SECONDS: Final = 0.2
NEWS_PAUSE: Final = 0.05
SEARCH_SECONDS: Final = 2.0
"""How often a transcript is looked for that was not there."""
AGENTS_AT_MOST: Final = 300
"""Each has a file open."""


class TailLines(StreamLines[MergedEntry]):
    """The lines of the stream."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self._agent_names = names

    def draw_item(self, item: MergedEntry, width: int) -> Line:
        return draw_tail_line(item, self._agent_names.get(item.first.agent, ""), width)


class TailScreen(StreamScreen[MergedEntry]):
    """The merged tail."""

    NAME = "tail"
    TITLE_WORD = "tail"

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        super().__init__(TailLines(self.names))
        self._tail = MergedTail({}, 0.0)
        self._sources: dict[str, FileSource] = {}
        self._tests: tuple[str, ...] = ()
        self._search_at = 0.0
        """When transcripts are looked for again that were not there yet."""
        self._left_out = 0
        self._is_errors_only = False
        self._followed = FollowedFiles(self, self._read_new, pause=NEWS_PAUSE, look_seconds=LOOK_SECONDS)

    def own_actions(self) -> tuple[Action, ...]:
        agent = self.agent_commands
        return (
            Action("tail.open", ("enter",), "transcript", "The transcript of the agent of this line",
                   agent.open_transcript, agent.why_not_transcript, is_listed=False),
            *self.stream_actions("errors"),
            Action("tail.errors_only", ("!",), "", "Only lines with errors; again: all", self.switch_errors_only),
        )  # fmt: skip

    def on_unmount(self) -> None:
        self._followed.close()
        self._tail.close()

    def show_change(self, change: SweepChanged) -> None:
        tests = self._tests_to_follow()
        if tests != self._tests or change.is_everything:
            self._tests = tests
            self._find_transcripts()
            self._show()
        self.draw_title()

    def _tests_to_follow(self) -> tuple[str, ...]:
        """Return the marked tests, or all that the grid shows; those at work first when they are too many."""
        marked = self.room.marks.tests
        order = self.room.shown_order() or list(self.store.state.records)
        records = self.store.records_of(order)
        chosen = [record for record in records if record.test in marked] or records
        chosen = [record for record in chosen if record.launched_at is not None]
        self._left_out = max(0, len(chosen) - AGENTS_AT_MOST)
        if self._left_out:
            chosen.sort(key=lambda record: record.state not in (State.RUNNING, State.WAITING))
        return tuple(record.test for record in chosen[:AGENTS_AT_MOST])

    def _find_transcripts(self) -> bool:
        """Follow the transcripts of the agents that are there now; return whether they are others than before."""
        self._search_at = time.monotonic() + SEARCH_SECONDS
        sources = {}
        agents = self.room.agents
        for record in self.store.records_of(self._tests):
            sources_of = agents.kind_of(record).transcript_sources
            path = find_transcript(record.state_dir_here, agents.folder_of(record), sources_of, record.agent_id)
            if path is not None:
                known = self._sources.get(record.test)
                sources[record.test] = known if known is not None and known.path == path else FileSource(path)
                self.names[record.test] = short_name(record)
        has_others = sources != self._sources
        self._sources = sources
        self._tail.follow(sources, time.monotonic())
        self._followed.show(source.path for source in sources.values())
        return has_others

    def _read_new(self) -> None:
        if not self.is_current:
            return
        now = time.monotonic()
        is_search_due = now >= self._search_at and len(self._sources) < len(self._tests)
        has_others = is_search_due and self._find_transcripts()
        if self._tail.poll(now) or has_others:
            self._show()
            self.draw_title()

    def _show(self) -> None:
        words = self.filter_words.removeprefix("!")
        choice = EntryFilter(words, bool(words) and self.filter_words.startswith("!"), errors_only=self._is_errors_only)
        self.show_items(self._tail.merged(choice), self._why_empty())

    def _why_empty(self) -> str:
        if not self._tests:
            return "no agent has been launched yet"
        if not self._sources:
            return "no agent here has written a transcript yet; what an agent shows is on its own screen (2)"
        return "no line with an error" if self._is_errors_only else "nothing was written yet"

    def key_of(self, item: MergedEntry) -> object:
        return item.first.number

    def is_error(self, item: MergedEntry) -> bool:
        return item.first.entry.is_error

    def draw_title(self) -> None:
        title = f"Tail of {counted(len(self._tests), 'agent')}"
        if self.room.marks.tests:
            title += " (marked)"
        if self._left_out:
            title += f", {self._left_out:,} more left out"
        if self.filter_words or self._is_errors_only:
            title += f" · {len(self.lines.shown):,} match"
            title += f" /{self.filter_words}" if self.filter_words else " errors only"
        self.lines.title(title, self.mode)

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        self.agent_commands.open_transcript()

    def current_tests(self) -> tuple[str, ...]:
        current = self.current()
        return current.agents if current is not None else ()

    def set_filter(self, words: str) -> None:
        self.filter_words = words
        self._show()
        self.draw_title()

    def switch_errors_only(self) -> None:
        self._is_errors_only = not self._is_errors_only
        self._show()
        self.draw_title()
