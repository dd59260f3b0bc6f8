"""Print the progress of a sweep on stderr: on a terminal a bar of states, otherwise one line per event."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from swarm_tui.limits.events import dial_words
from swarm_tui.model.formatting import clock
from swarm_tui.model.results import ALONG_BAR
from swarm_tui.model.text import plain

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from swarm_tui.journal.open import OpenedSweep
    from swarm_tui.model.event import LogLine

_STYLES: Final = {
    "clean": "green",
    "skipped": "grey62",
    "fixed": "green",
    "impl_fix": "magenta",
    "unresolved": "red",
    "blocked": "dark_orange",
    "failed": "bold red",
    "stopped": "dim",
    "running": "cyan",
    "waiting": "bold yellow",
    "hindered": "yellow",
    "launching": "dim cyan",
    "queued": "dim",
}
"""Role: style."""
_BAR_WIDTH: Final = 60


class Display(Protocol):
    """Shows the current state of a sweep."""

    def show(self, opened: OpenedSweep) -> None: ...


@contextmanager
def display_for(last_shown: LogLine | None = None) -> Iterator[Display]:
    """Yield a bar on a terminal, otherwise plain lines; log lines up to `last_shown` are not printed again."""
    if not sys.stderr.isatty():
        yield PlainDisplay(last_shown)
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), auto_refresh=False, transient=False) as live:
        yield BarDisplay(live, last_shown)


class NewLogLines:
    """Returns each line of a log once. Lines are compared by identity, because times can repeat."""

    def __init__(self, last_shown: LogLine | None) -> None:
        self._last_shown = last_shown

    def read(self, log: deque[LogLine]) -> list[LogLine]:
        """Return the lines after the last one read, or all lines if that one is no longer in the log."""
        new: list[LogLine] = []
        for line in reversed(log):
            if line is self._last_shown:
                break
            new.append(line)
        if new:
            self._last_shown = new[0]
        return new[::-1]


class PlainDisplay:
    """Prints the lines of the log, for files and pipes."""

    def __init__(self, last_shown: LogLine | None = None) -> None:
        self._new_lines = NewLogLines(last_shown)

    def show(self, opened: OpenedSweep) -> None:
        for line in self._new_lines.read(opened.state.log):
            print(log_text(line), file=sys.stderr, flush=True)


def log_text(line: LogLine) -> str:
    """Return a line of the log as plain text."""
    name = f"{plain(line.test, 200)}: " if line.test else ""
    return f"{time.strftime('%H:%M:%S', time.localtime(line.at))} {name}{plain(line.text, 500)}"


class BarDisplay:
    """Redraws a bar, counts, slots and a forecast in place, and prints warnings and errors above."""

    def __init__(self, live: Live, last_shown: LogLine | None = None) -> None:
        self._live = live
        self._new_lines = NewLogLines(last_shown)

    def show(self, opened: OpenedSweep) -> None:
        from rich.text import Text

        for line in self._new_lines.read(opened.state.log):
            if line.level != "info":
                name = f"{plain(line.test, 100)}: " if line.test else ""
                self._live.console.print(Text(f"{name}{plain(line.text, 300)}", style="yellow"))
        self._live.update(_render(opened), refresh=True)


def _render(opened: OpenedSweep) -> RenderableType:
    from rich.text import Text

    from swarm_tui.journal.progress_file import integration_progress
    from swarm_tui.money.forecast import seconds_to_end_of_sweep

    state = opened.state
    now = time.time()
    counts = [(mark, _STYLES[mark.role], state.counts[mark.name]) for mark in ALONG_BAR if state.counts[mark.name] > 0]
    total = sum(count for *_, count in counts) or 1
    bar = Text()
    position = done = 0
    for _, style, count in counts:
        done += count
        end = done * _BAR_WIDTH // total
        bar.append(("░" if style == "dim" else "█") * (end - position), style=style)
        position = end
    numbers = Text(" ").join(Text(f"{mark.glyph}{count} {mark.word}", style) for mark, style, count in counts)
    elapsed = now - (state.started_at or now)
    seconds_left = seconds_to_end_of_sweep(state, now)
    left = f" · ~{clock(seconds_left)} left" if seconds_left is not None else ""
    slots = dial_words(state.access.dial, state.slots, now) or f"{state.slots_in_use}/{state.slots}"
    line = Text(f"{opened.folder.name}  {clock(elapsed)}{left} · slots {slots}")
    if state.access.lost:
        line.append(f" · {state.access.lost_words}", "bold red")
    integrating = integration_progress(opened.folder, state.integration, now)
    if integrating is not None:
        line.append(" · integrating" if integrating.part is None else f" · integrating {integrating.part:.0%}")
        line.append(f": {integrating.words}", "dim")
    return Text("\n").join([line, bar, numbers])
