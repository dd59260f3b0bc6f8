"""`swarm-tui events`: print the events of a sweep."""

from __future__ import annotations

import argparse
import json
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from swarm_tui.cli.progress import RELEASE_TIME, log_text, print_progress
from swarm_tui.cli.sweeps import chosen_sweep
from swarm_tui.journal.append import engine_process_id
from swarm_tui.journal.decode import parse_event
from swarm_tui.journal.events import EngineEnded, EngineStarted
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.follow import LineFollower
from swarm_tui.journal.history import offset_behind
from swarm_tui.model.event import Event

DESCRIPTION = """Print the log of a sweep, one line per event, or with --json all events of the journal. With --follow,
continue until the sweep is finished, even if its engine is stopped and the sweep is resumed."""
EXAMPLES = """\
  swarm-tui events                                  print the log of the newest sweep
  swarm-tui events --follow --json | jq .type       print events as they happen
  swarm-tui events --json --after 1200              print the events after the one with `seq` 1200
Exit codes: 0 success, 2 usage error."""

_INTERVAL: Final = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", nargs="?", metavar="SWEEP", help="an id, the beginning of one, or a sweep folder")
    parser.add_argument("--follow", action="store_true", help="continue until the sweep is finished")
    parser.add_argument("--json", action="store_true", help="print all events, one JSON object per line")
    parser.add_argument("--after", type=int, default=0, metavar="SEQ", help="print only the events after this one")


def run(arguments: argparse.Namespace) -> int:
    folder = chosen_sweep(arguments.sweep, Path.cwd())
    # Fail before any output.
    folder.read_spec()
    stream = EventStream(folder, arguments.after, is_followed=arguments.follow)
    while True:
        for line, event in stream.read():
            text = json.dumps(json.loads(line)) if arguments.json else _log_text(event)
            if text:
                print(text)
        sys.stdout.flush()
        if not stream.has_more:
            if not arguments.follow or stream.is_finished or _is_reader_gone():
                return 0
            stream.explain_silence()
            time.sleep(_INTERVAL)


class EventStream:
    """The events of a sweep with their lines, each once, even if a resumed engine has repaired the journal."""

    def __init__(self, folder: SweepFolder, after: int, *, is_followed: bool = False) -> None:
        self.has_more = True
        self.is_finished = False
        """Whether the sweep is finished."""
        self._folder = folder
        # With --follow, read all events: an early one may show that the sweep is finished.
        self._lines = LineFollower(
            folder.events, offset_behind(folder.events, after) if after and not is_followed else 0
        )
        self._last = after
        self._working_at = time.monotonic()
        self._is_explained = False

    def read(self) -> Iterator[tuple[bytes, Event]]:
        """Return some of the new events; skip lines that are not valid events."""
        lines, _ = self._lines.read(1 << 22)
        self.has_more = bool(lines)
        for _, line in lines:
            try:
                event = parse_event(line)
            except ValueError:
                continue
            if isinstance(event, EngineStarted):
                self.is_finished = False
            elif isinstance(event, EngineEnded):
                self.is_finished = event.why == "finished"
            if event.seq > self._last:
                self._last = event.seq
                yield line, event

    def explain_silence(self) -> None:
        """Print once that no engine is running, so that no events arrive."""
        now = time.monotonic()
        if engine_process_id(self._folder.lock) is not None:
            self._working_at, self._is_explained = now, False
        elif now - self._working_at > RELEASE_TIME and not self._is_explained:
            self._is_explained = True
            name = self._folder.name
            print_progress(f"no engine is running; to resume: `swarm-tui resume {name}`, to quit: ctrl+c")


def _log_text(event: Event) -> str:
    line = event.log_line()
    return log_text(line) if line is not None else ""


def _is_reader_gone() -> bool:
    """Return whether the reader of stdout has gone, which a write would report only at the next event."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), select.POLLERR)
    return any(happened & select.POLLERR for _, happened in poll.poll(0))
