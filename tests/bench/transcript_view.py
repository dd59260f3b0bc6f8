"""How fast a transcript is: `python -m tests.bench.transcript_view [--mb 100]`.

Opens one at its end, follows it, pages through it, and works in a pane. Times run from the key to the closed frame
on a terminal. `beside_transcripts` has other viewers of the same file.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from swarm_tui.adapters.scratch import short_folder
from tests.bench.terminal import BenchTerminal, quantile
from tests.room.agent_sweeps import make_sweep

ROOT: Final = Path(__file__).parents[2]
LAST: Final = "this-is-the-very-last-record"
ECHO_APP: Final = """
import os, sys
os.environ.setdefault("TEXTUAL_FPS", "120")
os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
from textual.app import App
from swarm_tui.adapters.scratch import short_folder
from swarm_tui.adapters.processes.terminal import TerminalProgram
from swarm_tui.room.colours import ThemeStyles
from swarm_tui.room.agent.terminal import TerminalPane
class Echo(App):
    ENABLE_COMMAND_PALETTE = False
    def compose(self):
        self.theme_styles = ThemeStyles(self, False)
        words = ["tmux", "-u", "attach-session", "-t", "=echo"]
        yield TerminalPane(lambda rows, columns: TerminalProgram(
            words, rows=rows, columns=columns, environment=dict(os.environ) | {"TERM": "xterm-256color"}))
Echo().run()
"""


def write_transcript(path: Path, megabytes: float) -> None:
    """Write a transcript of that size, as agents write them."""
    size, number = 0, 0
    with path.open("wb") as file:
        while size < megabytes * 1e6:
            stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_790_000_000 + number))
            call = {
                "tool_call_id": f"t{number}",
                "function_name": "Bash",
                "arguments": {"command": f"pytest -q {number}"},
            }
            said = f"I look at step {number} of the test. " + "More words follow. " * 8
            output = "\n".join(f"line {line} of step {number}" for line in range(number % 40))
            base = {"event_id": f"e{number}", "timestamp": stamp}
            for record in (
                base | {"type": "step", "source": "agent", "message": said, "tool_calls": [call]},
                base | {"type": "observation", "results": [{"source_call_id": f"t{number}", "content": output}]},
            ):
                size += file.write(json.dumps(record).encode() + b"\n")
            number += 1
        file.write(record_of(LAST))


def record_of(message: str) -> bytes:
    record = {"type": "step", "source": "agent", "timestamp": "2026-11-18T06:09:42Z", "message": message}
    return json.dumps(record).encode() + b"\n"


@contextmanager
def opened_room(place: Path, transcript: Path) -> Iterator[tuple[BenchTerminal, float, float]]:
    """Return the room with the transcript open at its end, the seconds that took, and the megabytes it added."""
    sweep = make_sweep(place, ("one",))
    live = sweep.transcript("one")
    # A notice comes only for what is written through the name that is followed.
    transcript.rename(live)
    transcript.symlink_to(live)
    words = [sys.executable, "-m", "swarm_tui", "open", str(sweep.folder.root)]
    with BenchTerminal(words, environment={"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(place)}) as terminal:
        terminal.seconds_until(b"Tests 1")
        # The screen itself is not what is measured: it is opened once, without a transcript before it.
        terminal.send(b"2")
        terminal.seconds_until(b"following")
        terminal.send(b"q")
        terminal.seconds_until(b"1 of 1")
        terminal.read_for(1.0)
        terminal.forget()
        before = terminal.memory_megabytes()
        terminal.send(b"t")
        seconds = terminal.seconds_until(LAST.encode())
        terminal.read_for(0.5)
        yield terminal, seconds, terminal.memory_megabytes() - before


def measure_room(place: Path, transcript: Path, rounds: int) -> None:
    with opened_room(place, transcript) as (terminal, seconds, added):
        print(f"room: opened at its end in {seconds * 1000:.0f} ms, added {added:.1f} MB")
        follow = []
        for number in range(rounds):
            terminal.read_for(random.uniform(0.05, 0.15))
            terminal.forget()
            word = f"followed-{number:04}"
            with transcript.open("ab") as file:
                file.write(record_of(word))
            follow.append(terminal.seconds_until(word.encode()))
        show("room: follow", follow)
        pages = []
        for _ in range(rounds):
            terminal.read_for(random.uniform(0.03, 0.07))
            terminal.forget()
            terminal.send(b"\x1b[5~")
            pages.append(terminal.seconds_until(b"paused"))
        show("room: page up", pages)
        before, started = terminal.cpu_seconds(), time.perf_counter()
        terminal.read_for(5.0)
        used = terminal.cpu_seconds() - before
        print(f"room: {100 * used / (time.perf_counter() - started):.1f} % of a core while nothing comes")
        print(f"room: {terminal.memory_megabytes():.0f} MB in all")


def measure_echo(rounds: int) -> None:
    """Time a key typed into a pane until tmux's echo of it is drawn."""
    folder = tempfile.mkdtemp(dir=short_folder(), prefix="sw")
    environment = {"TMUX_TMPDIR": folder, "PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
    tmux = ["tmux", "-f", "/dev/null"]
    subprocess.run([*tmux, "new-session", "-d", "-s", "echo", "cat"], env=environment, check=True)
    try:
        with BenchTerminal([sys.executable, "-c", ECHO_APP], environment=environment) as terminal:
            terminal.seconds_until(b"[echo]")
            terminal.read_for(1.0)
            times = []
            for _ in range(rounds):
                terminal.read_for(random.uniform(0.03, 0.07))
                terminal.forget()
                terminal.send(b"\xe2\x82\xac")
                times.append(terminal.seconds_until("€".encode()))
            show("pane: echo", times)
    finally:
        subprocess.run([*tmux, "kill-server"], env=environment, check=False)
        shutil.rmtree(folder)


def show(what: str, seconds: list[float]) -> None:
    half, most = quantile(seconds, 0.5) * 1000, quantile(seconds, 0.99) * 1000
    print(f"{what}: p50 {half:.1f} ms, p99 {most:.1f} ms ({len(seconds)} times)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=float, default=100.0, help="size of the transcript (100)")
    parser.add_argument("--rounds", type=int, default=60, help="how often to follow, page and type (60)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="swarm-bench-") as place:
        transcript = Path(place) / "transcript.jsonl"
        write_transcript(transcript, arguments.mb)
        print(f"a transcript of {transcript.stat().st_size / 1e6:.0f} MB")
        measure_room(Path(place), transcript, arguments.rounds)
    measure_echo(arguments.rounds)


if __name__ == "__main__":
    main()
