"""Lines that an agent adds to the journal: those that are torn or repeat a number are ignored and reported."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from swarm_tui.journal.events import EngineStarted, Launched, Pulled
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import integrity_warnings, open_sweep
from swarm_tui.journal.recover import RecoveredJournal, take_up_journal
from swarm_tui.model.results import Result
from swarm_tui.model.spec import MngrSettings, SweepSpec, derive_tests
from swarm_tui.sweep.start import write_sweep
from tests.attacks.tricks import Trick

TESTS: Final = [(f"tests/test_a.py::test_{number}", "tests/test_a.py", number) for number in range(6)]
ADDED: Final = (
    {"type": "integrated", "branch": "swarm/x/integrated", "tip": "f" * 40, "fixes": 99},
    {"type": "pulled", "test": TESTS[0][0], "result": "impl_fix", "reason": "trust me"},
    {"type": "pulled", "test": "tests/new.py::test_new", "result": "clean"},
    {"type": "slots_changed", "slots": 900},
    {"type": "engine_ended", "why": "finished"},
    {"type": "queued", "test": TESTS[1][0], "agent": "../../etc", "branch": "main"},
)


def _begin(root: Path) -> tuple[SweepFolder, RecoveredJournal]:
    folder = SweepFolder(root / "20261118-061200")
    spec = SweepSpec(
        sweep=folder.name, repository=str(root), base="0" * 40, created_at=1.0, mngr=MngrSettings(path="m")
    )
    write_sweep(folder, spec, derive_tests(folder.name, TESTS))
    return folder, take_up_journal(folder, folder.read_spec())


def _added_line(folder: SweepFolder, last: int, dice: random.Random) -> bytes:
    """Return a line that is torn, or has the number of an earlier event."""
    lines = folder.events.read_bytes().splitlines()
    event = json.dumps(dice.choice(ADDED) | {"seq": last - dice.randrange(last), "at": 2.0}).encode()
    match dice.choice(("changed", "copied", "new", "torn")):
        case "changed":
            return dice.choice(lines).replace(b"test_", b"test-", 1)
        case "copied":
            return dice.choice(lines)
        case "new":
            return event
        case _:
            return event[: dice.randrange(1, len(event))]


def add_lines(root: Path, dice: random.Random) -> Iterator[str]:
    """Write such lines between those of an engine; return what changed by them or was not reported."""
    folder, taken_up = _begin(root)
    with taken_up.writer as writer:
        state = taken_up.state
        state.apply(writer.append(EngineStarted(pid=1, slots=2)))
        added = 0
        for test, *_ in TESTS:
            for event in (Launched(test=test), Pulled(test=test, result=Result.CLEAN)):
                if dice.random() < 0.5:
                    with folder.events.open("ab") as file:
                        file.write(_added_line(folder, state.last_seq, dice) + dice.choice((b"\n", b"\n", b"")))
                    added += 1
                state.apply(writer.append(event))
    opened = open_sweep(folder)
    if list(opened.state.tests()) != list(state.tests()) or opened.state.slots != state.slots:
        yield "an added line changed the state"
    if (opened.state.integration, opened.state.ended_why) != (state.integration, state.ended_why):
        yield "an added line changed the end or the integration"
    if added and not integrity_warnings(opened.state):
        yield f"{added} added lines are not reported"
    again = take_up_journal(folder, folder.read_spec())
    again.writer.close()
    if list(again.state.tests()) != list(state.tests()):
        yield "an added line changed the state of the next engine"


TRICKS: Final = (Trick("events", "a torn or repeated line of the journal is ignored and reported", add_lines),)
