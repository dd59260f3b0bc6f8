"""Terminals inside the room: the pane of an agent, and recordings with pause, speed and seek."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.geometry import Region
from textual.message import Message
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget

from swarm_tui.adapters.processes.terminal import TerminalProgram
from swarm_tui.hosts.attach import Attacher, PreparedAttach
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.formatting import clock
from swarm_tui.model.text import plain
from swarm_tui.room.colours import segments_strip
from swarm_tui.room.draw.spans import Line, Span, spread
from swarm_tui.room.emulator import Emulator
from swarm_tui.room.keys import bytes_of_key
from swarm_tui.room.widgets.lines import Band, Lines
from swarm_tui.transcripts.cast import Playback, Recording, parse_size

LEAVING_KEY = "ctrl+backslash"
START_AGAIN_SECONDS = 0.02


class TerminalPane(Widget, can_focus=True, inherit_bindings=False):
    """Runs a program in a terminal of the widget's size. All keys but one are sent to the program."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "TerminalPane { height: 1fr; width: 1fr; }"

    class Closed(Message):
        """The program has exited, or the user has left the pane."""

        def __init__(self, is_ended: bool) -> None:
            self.is_ended = is_ended
            super().__init__()

    def __init__(self, start: Callable[[int, int], TerminalProgram]) -> None:
        super().__init__()
        self._start = start
        self._program: TerminalProgram | None = None
        self._emulator: Emulator | None = None

    def on_resize(self, event: events.Resize) -> None:
        width, height = event.size
        if not width or not height:
            return
        if self._program is None or self._emulator is None:
            self._program = self._start(height, width)
            self._emulator = Emulator(height, width, self._type)
            asyncio.get_running_loop().add_reader(self._program.descriptor, self._read)
        else:
            self._program.resize(height, width)
            self._emulator.resize(height, width)
        self.refresh()

    def on_unmount(self) -> None:
        self.close()

    def close(self) -> None:
        if self._program is not None:
            asyncio.get_running_loop().remove_reader(self._program.descriptor)
            self._program.close()
            self._program = None

    def _read(self) -> None:
        """Read some output. Large output is read in slices, so that keys are handled in between."""
        if self._program is None or self._emulator is None:
            return
        content = self._program.read()
        if content is None:
            asyncio.get_running_loop().remove_reader(self._program.descriptor)
            self.post_message(self.Closed(is_ended=True))
            return
        changed = self._emulator.feed(content)
        width = self.size.width
        if len(changed) >= self._emulator.rows:
            self.refresh()
        elif changed:
            self.refresh(*(Region(0, row, width, 1) for row in changed))

    def _type(self, content: bytes) -> None:
        if self._program is not None and content:
            self._program.send(content)
            if self._program.has_pending:
                self.set_timer(START_AGAIN_SECONDS, self._send_rest)

    def _send_rest(self) -> None:
        if self._program is not None and self._program.has_pending:
            self._program.send(b"")
            self.set_timer(START_AGAIN_SECONDS, self._send_rest)

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        if event.key == LEAVING_KEY:
            self.close()
            self.post_message(self.Closed(is_ended=False))
            return
        has_application_cursor = self._emulator is not None and self._emulator.has_application_cursor
        self._type(bytes_of_key(event.key, event.character, has_application_cursor=has_application_cursor))

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        # Pasted text may contain the sequence that ends a paste. The rest of it would count as typed.
        content = event.text.replace("\x1b[201~", "").replace("\r\n", "\r").replace("\n", "\r").encode()
        if self._emulator is not None and self._emulator.has_bracketed_paste:
            content = b"\x1b[200~" + content + b"\x1b[201~"
        self._type(content)

    def render_line(self, y: int) -> Strip:
        has_row = self._emulator is not None and y < self._emulator.rows
        return segments_strip(self, self._emulator.row(y) if self._emulator is not None and has_row else ())


class PaneScreen(ModalScreen[str]):
    """Returns a message about how the user left the pane."""

    TAKES_ALL_KEYS: ClassVar[bool] = True
    AUTO_FOCUS = "TerminalPane"

    def __init__(
        self, attacher: Attacher, prepared: PreparedAttach, record: TestRecord, on_start: Callable[[], None]
    ) -> None:
        super().__init__()
        self._on_start = on_start
        self._attacher = attacher
        self._prepared = prepared
        self._record = record
        self._band = Band()

    def compose(self) -> ComposeResult:
        yield self._band
        yield TerminalPane(self._start)

    def _start(self, rows: int, columns: int) -> TerminalProgram:
        program = self._attacher.open_pane(self._prepared, rows, columns)
        self._on_start()
        return program

    def on_mount(self) -> None:
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        width = self.size.width or 80
        name = [Span(f" {plain(self._record.test, 200)}", "strong"), Span("  all keys are sent to the agent", "dim")]
        self._band.show([spread(name, [Span("Ctrl+\\", "key"), Span(" leaves ", "dim")], width)])

    def on_terminal_pane_closed(self, event: TerminalPane.Closed) -> None:
        event.stop()
        if self.is_current:
            self.dismiss(f"the pane of {self._record.agent} has closed" if event.is_ended else "")


TICK_SECONDS = 0.04
SEEK_SECONDS = 5.0
BAR_WIDTH = 30


class RecordingLines(Lines):
    def __init__(self, emulator: Emulator) -> None:
        super().__init__(has_cursor=False)
        self.emulator = emulator

    def line_count(self) -> int:
        return self.emulator.rows

    def draw_line(self, index: int, width: int) -> Line:
        return ()

    def render_line(self, y: int) -> Strip:
        row = y + self.first_visible
        return segments_strip(self, self.emulator.row(row) if row < self.emulator.rows else ())


class RecordingScreen(ModalScreen[None]):
    """Plays a recording of a terminal."""

    AUTO_FOCUS = None

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._recording = Recording(path)
        self._playback = Playback(self._recording)
        self._screen = RecordingLines(Emulator(self._recording.rows, self._recording.columns))
        self._band = Band()
        self._ticked_at = 0.0

    def compose(self) -> ComposeResult:
        yield self._screen
        yield self._band

    def on_mount(self) -> None:
        self._screen.title(plain(self._path.name, 100), self._recording.title)
        self._screen.styles.height = "1fr"
        self._ticked_at = time.monotonic()
        self.set_interval(TICK_SECONDS, self._tick)
        self._draw()

    def on_unmount(self) -> None:
        self._recording.close()

    def _tick(self) -> None:
        now = time.monotonic()
        seconds, self._ticked_at = now - self._ticked_at, now
        for kind, data in self._playback.advance(min(seconds, 0.5)):
            self._play(kind, data)
        self._draw()

    def _play(self, kind: str, data: str) -> None:
        emulator = self._screen.emulator
        if kind == "o":
            self._screen.lines_changed(emulator.feed(data.encode("utf-8", "replace")))
        elif kind == "r" and (size := parse_size(data)) is not None:
            emulator.resize(*size)
            self._screen.redraw()

    def _seek(self, at: float) -> None:
        """Replay everything up to this time into an empty screen."""
        self._screen.emulator = Emulator(self._recording.rows, self._recording.columns)
        for kind, data in self._playback.seek(at):
            self._play(kind, data)
        self._screen.redraw()
        self._draw()

    def _draw(self) -> None:
        playback, recording = self._playback, self._recording
        done = int(BAR_WIDTH * playback.at / recording.duration) if recording.duration else BAR_WIDTH
        state = "paused" if playback.is_paused else "at the end" if playback.is_at_end else f"{playback.speed:g}x"
        left = [
            Span(f" {clock(playback.at)} ", "strong"),
            Span("█" * done, "accent"),
            Span("░" * (BAR_WIDTH - done), "faint"),
            Span(f" {clock(recording.duration)}  {state} "),
        ]
        if recording.broken_lines:
            left.append(Span(f" {recording.broken_lines} broken lines ", "warning"))
        keys = [("Space", "pause"), ("←→", "5 s"), ("+-", "speed"), ("g G", "ends"), ("q", "back")]
        right = [part for key, word in keys for part in (Span(key, "key"), Span(f" {word}  ", "dim"))]
        self._band.show([spread(left, right, self.size.width or 80)])

    def on_key(self, event: events.Key) -> None:
        event.stop()
        playback = self._playback
        match event.key:
            case "space":
                playback.is_paused = not playback.is_paused
            case "left" | "h":
                self._seek(playback.at - SEEK_SECONDS)
            case "right" | "l":
                self._seek(playback.at + SEEK_SECONDS)
            case "plus" | "equals_sign" | "greater_than_sign":
                playback.change_speed(1)
            case "minus" | "less_than_sign":
                playback.change_speed(-1)
            case "g" | "home":
                self._seek(0.0)
            case "G" | "end" | "upper_g":
                self._seek(self._recording.duration)
            case "q" | "escape":
                self.dismiss(None)
                return
        self._draw()
