"""`swarm-tui events`: the events of a sweep, for scripts and for people with a pipe."""

from __future__ import annotations

import argparse
import json
import select
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from swarm_tui.cli.progress import RELEASE_TIME, print_progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm_tui.journal.folder import SweepFolder
    from swarm_tui.model.events import Event

DESCRIPTION = """Prints what has happened in a sweep, one line each: what the log in the room shows, or with --json
every event of the journal. With --follow also what happens from now on, until the sweep is finished: where an engine
was stopped, or has died, and the sweep is resumed, the stream goes on."""
EXAMPLES = """\
  swarm-tui events                                  the log of the newest sweep here
  swarm-tui events --follow --json | jq .type       every event as it happens
  swarm-tui events --json --after 1200              those after the event with this `seq`
Exit codes: 0 well, 2 misuse."""

_INTERVAL: Final = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", nargs="?", metavar="SWEEP", help="an id, the beginning of one, or a sweep folder")
    parser.add_argument("--follow", action="store_true", help="go on until the sweep is finished")
    parser.add_argument("--json", action="store_true", help="every event, as one JSON object a line")
    parser.add_argument("--after", type=int, default=0, metavar="SEQ", help="only later events than this one")


def run(arguments: argparse.Namespace) -> int:
    from swarm_tui.cli.sweeps import chosen_sweep, following

    folder = chosen_sweep(arguments.sweep, Path.cwd())
    # Refused here, and not after some lines.
    folder.read_spec()
    stream = EventStream(folder, arguments.after, is_followed=arguments.follow)
    with following(arguments.sweep if arguments.follow else None, folder, is_awaited=True):
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
    """The events of a sweep with their lines, each once, also where a resumed engine has repaired the journal."""

    def __init__(self, folder: SweepFolder, after: int, *, is_followed: bool = False) -> None:
        from swarm_tui.journal.follow import LineFollower
        from swarm_tui.journal.history import offset_behind

        self.has_more = True
        self.is_finished = False
        """Whether the last engine has finished the sweep."""
        self._folder = folder
        # Whoever follows has to know from the beginning whether the last engine is at its end.
        self._lines = LineFollower(
            folder.events, offset_behind(folder.events, after) if after and not is_followed else 0
        )
        self._last = after
        self._working_at = time.monotonic()
        self._is_explained = False

    def read(self) -> Iterator[tuple[bytes, Event]]:
        """Return some of the new events; lines that are none are passed over."""
        from swarm_tui.model.events import EngineEnded, EngineStarted, parse_event

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
        """Say once that nothing comes, when no engine works on the sweep."""
        from swarm_tui.journal.append import engine_process_id

        now = time.monotonic()
        if engine_process_id(self._folder.lock) is not None:
            self._working_at, self._is_explained = now, False
        elif now - self._working_at > RELEASE_TIME and not self._is_explained:
            self._is_explained = True
            name = self._folder.name
            print_progress(f"no engine works on {name}: `swarm-tui resume {name}` takes it up again; ctrl+c leaves")


def _log_text(event: Event) -> str:
    from swarm_tui.cli.display import log_text
    from swarm_tui.journal.log_lines import log_line_of

    line = log_line_of(event)
    return log_text(line) if line is not None else ""


def _is_reader_gone() -> bool:
    """Return whether nobody reads our output any more, which a write would find out only with the next event."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), select.POLLERR)
    return any(happened & select.POLLERR for _, happened in poll.poll(0))
