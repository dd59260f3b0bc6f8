"""How fast the room is, against a bare Textual app in the same run: `python -m tests.bench.room_latency`.

For each size of sweep: seconds to the first frame and to the tests, milliseconds from a key to the frame that
shows what it did, processor time and memory while a feeder writes events. Keys come at random moments.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.bench.terminal import BenchTerminal, quantile
from tests.programs import end_with_parent
from tests.waiting import until

ROOT = Path(__file__).parents[2]
CURSOR = {"dots": b"7;38;2;", "chips": b"7;38;2;", "rows": b"48;2;12;48;76m"}
"""How the cursor of each zoom looks to a terminal (reversed, or a line of its own shade); nothing else looks so."""
BARE_APP = """
import os
os.environ.setdefault("TEXTUAL_FPS", "120")
os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
from textual.app import App
from textual.widget import Widget
class Counter(Widget):
    count = 1
    def render(self): return f" {self.count} of all "
class Bare(App):
    ENABLE_COMMAND_PALETTE = False
    def compose(self): yield Counter()
    def on_key(self, event):
        counter = self.query_one(Counter); counter.count += 1; counter.refresh()
Bare().run()
"""


class Measured(NamedTuple):
    """One row of the table."""

    name: str
    first_frame: float
    ready: float
    keys: list[float]
    cpu_percent: float
    megabytes: float


@contextmanager
def fed_sweep(tests: int, rate: float, place: Path, more: Sequence[str] = ()) -> Iterator[Path]:
    """Return a folder into which a simulated sweep is being played."""
    folder = place / f"sweep-{tests}-{int(rate)}"
    words = [sys.executable, "-m", "swarm_tui.simulate.feeder", str(folder), "--tests", str(tests)]
    words += ["--rate", str(rate), "--ahead", "0.1", "--slots", str(max(24, tests // 10)), *more]
    feeder = subprocess.Popen(words, cwd=ROOT, preexec_fn=end_with_parent)
    try:
        until((folder / "sweep.json").exists, "the sweep to begin")
        yield folder
    finally:
        feeder.terminate()
        feeder.wait()


def measure_room(tests: int, rate: float, keys: int, place: Path, zoom: str, more: Sequence[str] = ()) -> Measured:
    """Open the room on a live sweep and press keys; `more` are options of the feeder."""
    environment = {"XDG_STATE_HOME": str(place / "state"), "XDG_CONFIG_HOME": str(place / "config")}
    remembered = place / "state" / "swarm-tui" / "room.json"
    remembered.parent.mkdir(parents=True, exist_ok=True)
    # A simulated sweep belongs to the folder that it is played from.
    remembered.write_text(json.dumps({"is_taught": True, "projects": {str(ROOT): {"zoom": zoom}}}))
    with fed_sweep(tests, rate, place, more) as folder:
        words = [sys.executable, "-m", "swarm_tui", "open", str(folder)]
        with BenchTerminal(words, environment=environment) as terminal:
            return _measure(
                terminal, f"room {tests:,} {zoom} {rate:g}/s", f" of {tests:,} ".encode(), keys, lambda _: CURSOR[zoom]
            )


def measure_bare(keys: int) -> Measured:
    """Open the smallest Textual app and press keys."""
    with BenchTerminal([sys.executable, "-c", BARE_APP]) as terminal:
        return _measure(terminal, "bare textual", b" of all ", keys, lambda place: f" {place - 14} of all".encode())


def _measure(terminal: BenchTerminal, name: str, ready: bytes, keys: int, shown: Callable[[int], bytes]) -> Measured:
    first = terminal.seconds_until(b"\x1b[?1049h", is_frame=False)
    is_ready = first + terminal.seconds_until(ready)
    terminal.read_for(2.0)
    cpu, start = terminal.cpu_seconds(), time.perf_counter()
    terminal.read_for(4.0)
    cpu_percent = 100 * (terminal.cpu_seconds() - cpu) / (time.perf_counter() - start)
    chance = random.Random(1)
    latencies = []
    # Down and up again, now and then aside: never against an edge.
    for place in range(16, keys + 16):
        terminal.read_for(chance.uniform(0.03, 0.07))
        terminal.forget()
        terminal.send((b"j" if place // 15 % 2 else b"k") if place % 3 else b"l")
        latencies.append(terminal.seconds_until(shown(place)))
    return Measured(name, first, is_ready, latencies, cpu_percent, terminal.memory_megabytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, nargs="*", default=[1_000, 10_000])
    parser.add_argument("--rates", type=float, nargs="*", default=[0.0, 1_000.0])
    parser.add_argument("--keys", type=int, default=150)
    parser.add_argument("--zoom", default="dots", choices=["dots", "chips", "rows"])
    arguments = parser.parse_args()
    print("                            first   ready    key p50   p90   p99   max    CPU     RSS")
    with tempfile.TemporaryDirectory(prefix="swarm-bench-") as place:
        print_measured(measure_bare(arguments.keys))
        for tests in arguments.tests:
            for rate in arguments.rates:
                print_measured(measure_room(tests, rate, arguments.keys, Path(place), arguments.zoom))


def print_measured(measured: Measured) -> None:
    """Print a row of the table."""
    p50, p90, p99, worst = (1000 * quantile(measured.keys, part) for part in (0.5, 0.9, 0.99, 1.0))
    print(
        f"{measured.name:26} {measured.first_frame * 1000:5.0f} ms {measured.ready * 1000:5.0f} ms "
        f"{p50:8.1f} {p90:5.1f} {p99:5.1f} {worst:5.1f} ms {measured.cpu_percent:5.1f} % {measured.megabytes:5.0f} MB",
        flush=True,
    )


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
