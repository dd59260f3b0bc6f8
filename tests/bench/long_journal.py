"""How long a journal of a million events takes to open: from a snapshot, and read to its end, in each command.

Run: python -m tests.bench.long_journal [EVENTS] [TESTS] [MEGABYTES]
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from swarm_tui.journal.events import EngineEnded, EngineStarted, Harvested
from swarm_tui.journal.folder import SweepFolder, create_runs_folder
from swarm_tui.journal.open import open_sweep
from swarm_tui.journal.recover import take_up_journal
from swarm_tui.journal.snapshot import write_snapshot
from swarm_tui.journal.work_events import Said
from swarm_tui.model.results import Result
from swarm_tui.model.spec import MngrSettings, SweepSpec, derive_tests
from swarm_tui.sweep.start import write_sweep
from tests.bench.table import machine

SWEEP = "20261118-061200"
COMMANDS = (("status", "--json"), ("list",), ("pending",), ("events", "--after", "999999999"), ("stop",))


def write_long_journal(root: Path, events: int, tests: int, size: int) -> SweepFolder:
    """Write a sweep whose tests have all been harvested at the end of a long journal."""
    folder = SweepFolder(create_runs_folder(root) / SWEEP)
    spec = SweepSpec(sweep=SWEEP, repository=str(root), base="0" * 40, created_at=1.0, mngr=MngrSettings(path="mngr"))
    names = [f"tests/test_{number % 97}.py::test_{number}" for number in range(tests)]
    write_sweep(folder, spec, derive_tests(SWEEP, [(name, name.partition("::")[0], 1) for name in names]))
    writer, chance = take_up_journal(folder, folder.read_spec()).writer, random.Random(1)
    line = "x" * max(1, size // events - 190)
    with writer:
        writer.append(EngineStarted(pid=1, slots=8))
        for _ in range(events - 2 * tests - 2):
            writer.append(Said(test=chance.choice(names), line=line))
        for number, name in enumerate(names):
            writer.append(Harvested(test=name, result=Result.FAILED if number % 3 == 0 else Result.CLEAN))
        writer.append(EngineEnded())
    return folder


def main() -> None:
    events, tests, megabytes = (int(word) for word in sys.argv[1:] or ("1000000", "10000", "500"))
    with tempfile.TemporaryDirectory(prefix="swarm-long-") as temporary:
        root = Path(temporary)
        subprocess.run(["git", "init", "--quiet", temporary], check=True)
        folder = write_long_journal(root, events, tests, megabytes * 1_000_000)
        print(f"{events:,} events of {tests:,} tests, {os.path.getsize(folder.events) / 1e6:.0f} MB; {machine()}")
        expected = {"clean": tests - (tests + 2) // 3, "failed": (tests + 2) // 3}
        started = time.perf_counter()
        opened = open_sweep(folder)
        print(f"read to its end              {time.perf_counter() - started:6.1f} s")
        assert {mark: count for mark, count in opened.state.counts.items() if count} == expected
        for words in COMMANDS:
            _call(root, words, "without a snapshot")
        started = time.perf_counter()
        write_snapshot(folder.snapshot, folder.events, os.path.getsize(folder.events), opened.state)
        print(f"snapshot written             {time.perf_counter() - started:6.1f} s")
        started = time.perf_counter()
        assert list(open_sweep(folder).state.tests()) == list(opened.state.tests())
        print(f"opened from the snapshot     {time.perf_counter() - started:6.1f} s")
        for words in COMMANDS:
            _call(root, words, "with a snapshot")


def _call(root: Path, words: tuple[str, ...], how: str) -> None:
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "swarm_tui", *words], cwd=root, capture_output=True, text=True)
    seconds = time.perf_counter() - started
    print(
        f"{' '.join(words[:1]):12} {how:18} {seconds:6.1f} s  code {done.returncode}, {len(done.stdout):,} characters"
    )


if __name__ == "__main__":
    main()
