"""A transcript of 100 MB, beside less, lnav and toolong on the same file: `python -m tests.bench.beside_transcripts`.

Figures: until the last record is on the screen (of the room: from the key in the open room, as nobody starts it for one
transcript; of the others: from their start), memory with all children, what the transcript has added to it, and
how long after it was written a new record is on the screen.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from tests.bench.table import Figures, Table, machine
from tests.bench.terminal import quantile
from tests.bench.transcript_view import LAST, record_of, write_transcript
from tests.bench.watched import Key, Program, Replay, WatchedTerminal, start_times
from tests.room.agent_sweeps import make_sweep

COLUMNS = ("end shown ms", "memory MB", "added MB", "follow p50 ms", "follow p99 ms")
ROOT = Path(__file__).parents[2]


def others(transcript: Path) -> Iterator[tuple[Program, Program]]:
    """Return each other program on the file, and on an empty one."""
    empty = transcript.with_name("empty.jsonl")
    empty.write_bytes(record_of(LAST))
    for name, words in (("less", ["less", "+F"]), ("lnav", ["lnav", "-N"]), ("toolong", ["tl"])):
        # Each keeps what it remembers of files in a folder of its own.
        home = {"HOME": str(transcript.parent)}
        yield Program(name, [*words, str(transcript)], LAST, home), Program(name, [*words, str(empty)], LAST, home)


def measure_other(program: Program, on_empty: Program, transcript: Path, rounds: int) -> Figures:
    """Start a program on the file, and follow what is appended."""
    with WatchedTerminal(on_empty) as terminal:
        terminal.begin()
        bare = terminal.memory_megabytes()
    with WatchedTerminal(program) as terminal:
        terminal.begin()
        _, ready = start_times(terminal)
        return _figures(terminal, ready, bare, transcript, rounds)


def measure_room(sweep: Path, place: Path, transcript: Path, rounds: int) -> Figures:
    """Press `t` in the open room, and follow what is appended."""
    environment = {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(place), "XDG_CONFIG_HOME": str(place)}
    program = Program("room", [sys.executable, "-m", "swarm_tui", "open", str(sweep)], "Tests 1", environment)
    with WatchedTerminal(program) as terminal:
        terminal.begin()
        # The screen itself is not what is measured: it has been opened before, without the transcript.
        key = terminal.press_timed(b"2")
        terminal.wait_for_output("following", since=key.piece)
        key = terminal.press_timed(b"q")
        terminal.wait_for_output("1 of 1", since=key.piece)
        terminal.settle(0.5)
        bare = terminal.memory_megabytes()
        key = terminal.press_timed(b"t")
        terminal.wait_for_output(LAST, since=key.piece)
        replay = Replay(terminal)
        replay.to(key.piece)
        moment = replay.moment_of(LAST)
        if moment is None:
            raise TimeoutError("the end of the transcript was never on the screen")
        return _figures(terminal, moment - key.at, bare, transcript, rounds)


def _figures(terminal: WatchedTerminal, shown: float, bare: float, transcript: Path, rounds: int) -> Figures:
    terminal.read_for(1.0)
    memory = terminal.memory_megabytes()
    followed = _follow(terminal, transcript, rounds)
    half, most = (1000 * quantile(followed, part) for part in (0.5, 0.99))
    return dict(zip(COLUMNS, (1000 * shown, memory, max(0.0, memory - bare), half, most), strict=True))


def _follow(terminal: WatchedTerminal, transcript: Path, rounds: int) -> list[float]:
    """Append records, and return how long after each it was on the screen."""
    written: list[tuple[Key, str]] = []
    for number in range(rounds):
        terminal.read_for(random.uniform(0.05, 0.15))
        word = f"followed-{random.randrange(10**9):09}"
        with transcript.open("ab") as file:
            key = Key(time.perf_counter(), len(terminal.pieces))
            file.write(record_of(word))
        written.append((key, word))
        terminal.wait_for_output(word, within=10.0 if number else 30.0, since=key.piece)
        terminal.settle(0.05)
    return list(_moments(terminal, written))


def _moments(terminal: WatchedTerminal, written: Sequence[tuple[Key, str]]) -> Iterator[float]:
    replay = Replay(terminal)
    for key, word in written:
        replay.to(key.piece)
        moment = replay.moment_of(word)
        if moment is not None:
            yield moment - key.at


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, default=100.0, help="size of the transcript (100)")
    parser.add_argument("--follows", type=int, default=30, help="how many records are appended to each (30)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is started; the best figure counts")
    arguments = parser.parse_args()
    table = Table(COLUMNS)
    with tempfile.TemporaryDirectory(prefix="swarm-bench-") as folder:
        place = Path(folder)
        sweep = make_sweep(place, ("one",))
        transcript = sweep.transcript("one")
        write_transcript(transcript, arguments.mb)
        size = transcript.stat().st_size
        print(f"a transcript of {size / 1e6:.0f} MB; {machine()}", flush=True)
        room = Program("room", [sys.executable], "")
        for _ in range(arguments.rounds):
            work = partial(measure_room, sweep.folder.root, place, transcript, arguments.follows)
            table.measure(room, work)
            os.truncate(transcript, size)
            for program, on_empty in others(transcript):
                table.measure(program, partial(measure_other, program, on_empty, transcript, arguments.follows))
                os.truncate(transcript, size)
    print(f"{table.text()}\n{machine()}")


if __name__ == "__main__":
    main()
