"""How long a large sweep takes to open: folded from its journal, and from its snapshot.

Run: python -m tests.bench.journal_fold [EVENTS] [TESTS]
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from pathlib import Path

from swarm_tui.journal.append import LineAppender, encode_event
from swarm_tui.journal.events import Launched, Launching, Pulled, Queued
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.follow import EventFollower
from swarm_tui.journal.snapshot import read_snapshot, write_snapshot
from swarm_tui.journal.state import SweepState
from swarm_tui.journal.work_events import AgentOutput, TryFinished, TryStarted
from swarm_tui.model.event import Event
from swarm_tui.model.pulled import PulledWork
from swarm_tui.model.results import Result


def write_journal(path: Path, events: int, tests: int) -> None:
    chance = random.Random(1)
    names = [f"tests/test_{index % 97}.py::test_case_{index}" for index in range(tests)]
    lines = LineAppender(path)
    made: list[Event] = [
        Queued(seq=index, test=name, agent=f"swarm-x-{index}", branch=f"swarm/x/{index}", file="tests/test.py")
        for index, name in enumerate(names)
    ]
    while len(made) < events:
        test = chance.choice(names)
        made.append(
            chance.choice(
                (
                    Launching(test=test),
                    Launched(test=test, agent_id="agent-1", work_dir="/somewhere", state_dir="/elsewhere"),
                    AgentOutput(test=test, line="I will look at the fixture that this test shares with others."),
                    TryStarted(test=test, number=1),
                    TryFinished(test=test, number=1, passed=False, seconds=1.5, failure="assert 1 == 2"),
                    Pulled(test=test, result=Result.CLEAN, pulled=PulledWork(summary="Nothing to do.")),
                )
            )
        )
    for event in made:
        lines.append(encode_event(event))
    lines.close()


def seconds(started: float) -> str:
    return f"{time.perf_counter() - started:.2f} s"


def main() -> None:
    events, tests = (int(word) for word in (sys.argv[1:] or ["200000", "10000"]))
    with tempfile.TemporaryDirectory() as temporary:
        folder = SweepFolder(Path(temporary))
        write_journal(folder.events, events, tests)
        size = os.path.getsize(folder.events)
        started = time.perf_counter()
        for _ in folder.events.read_bytes().split(b"\n"):
            pass
        print(f"{events:,} events of {tests:,} tests, {size / 1e6:.0f} MB; bare read and split {seconds(started)}")
        started = time.perf_counter()
        state = SweepState().apply_all(EventFollower(folder.events).read().events)
        print(f"read and folded  {seconds(started)}")
        started = time.perf_counter()
        write_snapshot(folder.snapshot, folder.events, size, state)
        print(f"snapshot written {seconds(started)}, {os.path.getsize(folder.snapshot) / 1e6:.0f} MB")
        started = time.perf_counter()
        restored, offset = read_snapshot(folder.snapshot, folder.events)
        print(f"snapshot read    {seconds(started)}")
        assert offset == size
        assert list(restored.tests()) == list(state.tests())


if __name__ == "__main__":
    main()
