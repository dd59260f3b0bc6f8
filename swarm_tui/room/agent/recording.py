"""Plays a recording of a terminal, with pause, speed and seek."""

from __future__ import annotations

import time
from pathlib import Path

from textual import events
from textual.app import ComposeResult
from textual.screen import ModalScreen
from textual.strip import Strip

from swarm_tui.model.formatting import clock
from swarm_tui.model.text import plain
from swarm_tui.room.colours import segments_strip
from swarm_tui.room.draw.spans import Line, Span, spread
from swarm_tui.room.emulator import Emulator
from swarm_tui.room.widgets.lines import Band, Lines
from swarm_tui.transcripts.cast import Playback, Recording, parse_size

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
