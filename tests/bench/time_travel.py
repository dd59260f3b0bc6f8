"""How long it takes to show a sweep of a million events as it was: the first moment, any other, and a step.

Run: python -m tests.bench.time_travel [EVENTS] [TESTS]
"""

from __future__ import annotations

import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from msgspec import structs

from swarm_tui.journal.append import LineAppender, encode_event
from swarm_tui.journal.events import EngineStarted, Launched, Pulled, Queued
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.history import JournalHistory
from swarm_tui.journal.open import open_at_snapshot
from swarm_tui.journal.recover import SNAPSHOT_EVERY
from swarm_tui.journal.snapshot import keep_former_snapshot, write_snapshot
from swarm_tui.journal.work_events import AgentOutput, TryFinished, TryStarted
from swarm_tui.model.event import Event
from swarm_tui.model.results import Result
from swarm_tui.model.spec import MngrSettings, SweepSpec
from swarm_tui.money.events import UsageReported
from tests.bench.table import machine

SWEEP = "20261118-061200"
JUMPS = 20
STEPS = 50


def write_sweep_of(root: Path, events: int, tests: int) -> SweepFolder:
    """Write a sweep whose agents mostly talk, an event every hundredth of a second."""
    folder = SweepFolder(root)
    folder.write_spec(
        SweepSpec(sweep=SWEEP, repository="", base="0" * 40, created_at=1.0, mngr=MngrSettings(path="mngr"))
    )
    names = [f"tests/test_{number % 97}.py::test_case_{number}" for number in range(tests)]
    chance, lines = random.Random(1), LineAppender(folder.events)
    kinds: tuple[Callable[[str], Event], ...] = (
        lambda test: Launched(test=test, agent_id="agent-1", work_dir="/somewhere", state_dir="/elsewhere"),
        lambda test: TryStarted(test=test, number=1),
        lambda test: TryFinished(test=test, number=1, passed=False, seconds=1.5, failure="assert 1 == 2"),
        lambda test: Pulled(test=test, result=Result.CLEAN),
        *([lambda test: AgentOutput(test=test, line="I will look at the fixture that this test shares.")] * 8),
        *([lambda test: UsageReported(test=test, dollars=1.25, tokens=120_000)] * 4),
    )
    for number in range(events):
        if number < tests:
            event: Event = Queued(test=names[number], agent=f"a-{number}", branch=f"b/{number}")
        elif number == tests:
            event = EngineStarted(pid=1, slots=8)
        else:
            event = chance.choice(kinds)(chance.choice(names))
        lines.append(encode_event(structs.replace(event, seq=number + 1, at=number / 100)))
    lines.close()
    return folder


def main() -> None:
    events, tests = (int(word) for word in sys.argv[1:] or ("1000000", "10000"))
    with tempfile.TemporaryDirectory(prefix="swarm-past-") as temporary:
        folder = write_sweep_of(Path(temporary), events, tests)
        size = os.path.getsize(folder.events)
        print(f"{events:,} events of {tests:,} tests, {size / 1e6:.0f} MB; {machine()}")
        opened = open_at_snapshot(folder)
        written = 0
        started = time.perf_counter()
        while opened.follower.offset < size:
            opened.read_new_events(1 << 20)
            if opened.follower.offset - written >= SNAPSHOT_EVERY:
                # As the engine does while a sweep runs.
                written = opened.follower.offset
                keep_former_snapshot(folder.snapshot, folder.former_snapshots)
                write_snapshot(folder.snapshot, folder.events, written, opened.state)
        kept = sum(path.stat().st_size for path in folder.former_snapshots.iterdir())
        print(f"folded, with snapshots       {time.perf_counter() - started:7.2f} s, snapshots {kept / 1e6:.1f} MB")
        del opened
        memory = _memory()
        history, chance = JournalHistory(folder, folder.read_spec()), random.Random(1)
        first = _seconds(lambda: history.state_at(history.step_before(size) or 0))
        print(f"one step before the end      {first:7.3f} s")
        times = [chance.uniform(tests / 100, events / 100) for _ in range(JUMPS)]
        jumps = sorted(_seconds(partial(_go_to, history, at)) for at in times)
        print(f"{JUMPS} moments anywhere          p50 {jumps[JUMPS // 2]:.3f} s, max {jumps[-1]:.3f} s")
        here = history.moment_at(times[-1])
        steps = []
        for _ in range(STEPS):
            started = time.perf_counter()
            here = history.step_before(here) or here
            history.state_at(here)
            steps.append(time.perf_counter() - started)
        steps.sort()
        print(f"{STEPS} steps back             p50 {steps[STEPS // 2]:.3f} s, max {steps[-1]:.3f} s")
        first_at, last_at = history.span
        finding = _seconds(lambda: history.moment_at((first_at + last_at) / 2))
        print(f"a time found in the journal  {finding:7.4f} s")
        print(f"memory that it added         {_memory() - memory:7.1f} MB")


def _go_to(history: JournalHistory, at: float) -> None:
    history.state_at(history.moment_at(at))


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _memory() -> float:
    """Return the resident memory in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


if __name__ == "__main__":
    main()
