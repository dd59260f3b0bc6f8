"""Follow a sweep without the room: print a bar and counts on a terminal, otherwise plain lines, on stderr."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from swarm_tui.cli.main import EXIT_INTERRUPTED
from swarm_tui.cli.progress import (
    RELEASE_TIME,
    integration_lines,
    is_open,
    log_text,
    opened_with_progress,
    print_progress,
)
from swarm_tui.cli.status import describe_sweep
from swarm_tui.errors import SwarmError
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import OpenedSweep
from swarm_tui.journal.progress_file import integration_progress
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.requests import RequestKind, append_request
from swarm_tui.journal.state import SweepState
from swarm_tui.limits.events import throttle_text
from swarm_tui.model.event import LogLine
from swarm_tui.model.formatting import clock, counted
from swarm_tui.model.report import IntegratorReport, LeftOut
from swarm_tui.model.results import ALONG_BAR, MARKS, OPEN_RESULTS, PULLED_RESULTS, State
from swarm_tui.model.text import plain
from swarm_tui.money.forecast import seconds_to_end_of_sweep
from swarm_tui.review.open import read_integrator_outcome
from swarm_tui.review.ranking import read_measured_effects
from swarm_tui.sweep.start import last_log_line

EXIT_WELL, EXIT_FAILED = 0, 1
_INTERVAL: Final = 0.1
# With less free space than this, an engine cannot even log its last error.
_DISK_FULL: Final = 1 << 16
NAMED: Final = 20
"""The number of tests listed for each cause."""
_STYLES: Final = {
    "clean": "green",
    "skipped": "grey62",
    "fixed": "green",
    "impl_fix": "magenta",
    "unresolved": "red",
    "blocked": "dark_orange",
    "error": "bold red",
    "stopped": "dim",
    "running": "cyan",
    "waiting": "bold yellow",
    "api_error": "yellow",
    "launching": "dim cyan",
    "queued": "dim",
}
"""Role: style."""
_BAR_WIDTH: Final = 60


def exit_code_of(counts: Counter[str], is_whole: bool) -> int:
    """Return 0 for a complete sweep without open results, else 1."""
    return EXIT_WELL if is_whole and not any(counts[result] for result in OPEN_RESULTS) else EXIT_FAILED


def follow_sweep(
    folder: SweepFolder,
    *,
    is_json: bool = False,
    known: OpenedSweep | None = None,
    at_end: Callable[[OpenedSweep], None] = lambda _: None,
) -> int:
    """Show a sweep until its engine is done. The first ctrl+c explains, the second stops the sweep, the third quits.

    `known` is the sweep before it was resumed; its log lines are not printed again. `at_end` gets the finished sweep.
    """
    opened = known or opened_with_progress(folder)
    last_shown = opened.state.log[-1] if known and opened.state.log else None
    interrupts = 0
    with display_for(last_shown) as display:
        while True:
            try:
                show_until_end(opened, display.show)
                break
            except KeyboardInterrupt:
                interrupts += 1
                if interrupts == 3:
                    return EXIT_INTERRUPTED
                _handle_interrupt(opened, interrupts)
    for line in _closing_lines(opened):
        print_progress(line)
    at_end(opened)
    if is_json:
        print(json.dumps(describe_sweep(opened), indent=1))
    return EXIT_INTERRUPTED if interrupts > 1 else exit_code_of(opened.state.counts, is_whole(opened))


def is_whole(opened: OpenedSweep) -> bool:
    """Return whether a sweep is finished and integrated without problems, with all tests."""
    state = opened.state
    is_integrated = state.integration.state != "failed" and not state.integration.problems
    are_released = all(host.stage != "unreleased" for host in state.hosts.values())
    is_done = is_integrated and are_released and not opened.spec.left_out and not _has_open_blocks(state)
    return state.ended_why == "finished" and is_done


def _has_open_blocks(state: SweepState) -> bool:
    """Return whether an agent of a tutorial sweep left blocks of its batch open."""
    return any(record.result in PULLED_RESULTS and record.pulled.passing_after is False for record in state.tests())


def _closing_lines(opened: OpenedSweep) -> list[str]:
    """Return lines about open tests, tests without an agent, and work left out of the integrated branch."""
    outcome, _ = read_integrator_outcome(opened.folder)
    if opened.state.integration.state == "failed":
        # The report in the folder is from an earlier integration.
        outcome = None
    lines = list(opened.integrity_warnings)
    lines += [f"no agent: {plain(sentence, 600)}" for sentence in opened.spec.left_out]
    lines += [*open_lines(opened.state.tests()), *effect_lines(outcome)]
    lines += left_out_lines(outcome.failed if outcome else ())
    lines += integration_lines(opened.state.integration, opened.folder.name)
    return ["", *lines] if lines else []


def _handle_interrupt(opened: OpenedSweep, times: int) -> None:
    if times == 1:
        print_progress(
            f"\nThe sweep keeps running without this terminal; to see it: `swarm-tui open {opened.folder.name}`. "
            "Press ctrl+c again to stop the sweep."
        )
    else:
        append_request(opened.folder, RequestKind.STOP_SWEEP)
        print_progress("\nStopping: submitted work is pulled, the rest can be resumed. Press ctrl+c again to exit now.")


def show_until_end(opened: OpenedSweep, show: Callable[[OpenedSweep], None]) -> None:
    """Show new events until the engine has exited and released its lock; raise SwarmError if it died."""
    silent_since = time.monotonic()
    seen = -1
    while True:
        opened.read_new_events()
        if opened.state.last_seq != seen:
            seen, silent_since = opened.state.last_seq, time.monotonic()
        show(opened)
        is_let_go = not opened.has_running_engine
        if opened.state.is_over and (is_let_go or time.monotonic() - silent_since > RELEASE_TIME):
            return
        if is_let_go and time.monotonic() - silent_since > RELEASE_TIME:
            raise SwarmError(_why_engine_died(opened), f"resume the sweep: `swarm-tui resume {opened.folder.name}`")
        time.sleep(_INTERVAL)


def _why_engine_died(opened: OpenedSweep) -> str:
    root = opened.folder.root
    return engine_error(plain(last_log_line(opened.folder), 500), root, shutil.disk_usage(root).free)


def engine_error(last_line: str, root: Path, free: int) -> str:
    """Return why an engine exited, from the last line of its log and the free disk space."""
    if last_line:
        return f"the engine exited: {last_line}"
    return f"the engine died: the disk of {root} is full" if free < _DISK_FULL else "the engine died"


def open_lines(records: Iterable[TestRecord]) -> Iterator[str]:
    """Yield the open tests, grouped by result and reason, the most frequent reason first."""
    causes: dict[tuple[str, str], list[str]] = {}
    for record in records:
        if is_open(record):
            causes.setdefault((record.mark, _cause(record)), []).append(plain(record.test, 300))
    for (mark, reason), tests in sorted(causes.items(), key=lambda cause: -len(cause[1])):
        yield f"{len(tests)} {MARKS[mark].word}: {reason or 'unknown reason'}"
        yield from (f"  {test}" for test in tests[:NAMED])
        if len(tests) > NAMED:
            yield f"  and {len(tests) - NAMED} more"


def _cause(record: TestRecord) -> str:
    if record.state is State.QUEUED:
        return "not launched yet"
    return plain(record.reason, 300)


def effect_lines(outcome: IntegratorReport | None) -> Iterator[str]:
    """Yield the effect of each fix on the tests."""
    effects = list(read_measured_effects(outcome).values())
    for effect in effects[:NAMED]:
        title = plain(effect.title, 200) or effect.commit[:9]
        yield f"fix: {title}" + (f" · {effect.sentence}" if effect.sentence else "")
    if len(effects) > NAMED:
        yield f"  and {counted(len(effects) - NAMED, 'fix', 'fixes')} more"


def left_out_lines(left_out: Sequence[LeftOut]) -> Iterator[str]:
    """Yield the work that the integrator left out of the branch."""
    if left_out:
        yield f"{len(left_out)} left out of the integrated branch:"
    for entry in left_out[:NAMED]:
        yield f"  {plain(entry.branch, 200)}: {plain(entry.reason, 400)}"
    if len(left_out) > NAMED:
        yield f"  and {len(left_out) - NAMED} more"


class Display(Protocol):
    """Shows the current state of a sweep."""

    def show(self, opened: OpenedSweep) -> None: ...


@contextmanager
def display_for(last_shown: LogLine | None = None) -> Iterator[Display]:
    """Yield a bar on a terminal, otherwise plain lines; log lines up to `last_shown` are not printed again."""
    if not sys.stderr.isatty():
        yield PlainDisplay(last_shown)
        return
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


class BarDisplay:
    """Redraws a bar, counts, slots and a forecast in place, and prints warnings and errors above."""

    def __init__(self, live: Live, last_shown: LogLine | None = None) -> None:
        self._live = live
        self._new_lines = NewLogLines(last_shown)

    def show(self, opened: OpenedSweep) -> None:
        for line in self._new_lines.read(opened.state.log):
            if line.level != "info":
                name = f"{plain(line.test, 100)}: " if line.test else ""
                self._live.console.print(Text(f"{name}{plain(line.text, 300)}", style="yellow"))
        self._live.update(_render(opened), refresh=True)


def _render(opened: OpenedSweep) -> RenderableType:
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
    slots = throttle_text(state.access.throttle, state.slots, now) or f"{state.slots_in_use}/{state.slots}"
    line = Text(f"{opened.folder.name}  {clock(elapsed)}{left} · slots {slots}")
    if state.access.lost:
        line.append(f" · {state.access.lost_words}", "bold red")
    integrating = integration_progress(opened.folder, state.integration, now)
    if integrating is not None:
        line.append(" · integrating" if integrating.part is None else f" · integrating {integrating.part:.0%}")
        line.append(f": {integrating.words}", "dim")
    return Text("\n").join([line, bar, numbers])
