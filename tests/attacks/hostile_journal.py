"""Events and requests that an agent forges: they are found, said, and neither believed nor carried out."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from swarm_tui.engine.journal_keeper import TakenUp, take_up_journal
from swarm_tui.engine.start import write_sweep
from swarm_tui.journal.doubts import doubts_of
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import open_sweep
from swarm_tui.journal.requests import RequestFollower, append_request
from swarm_tui.journal.seal import Sealer
from swarm_tui.model import events as happened
from swarm_tui.model.requests import RequestKind
from swarm_tui.model.states import Result
from swarm_tui.model.sweep import MngrSettings, SweepSpec, derive_tests
from tests.attacks.tricks import Trick

TESTS: Final = [(f"tests/test_a.py::test_{number}", "tests/test_a.py", number) for number in range(6)]
FORGED: Final = (
    {"type": "integrated", "branch": "swarm/x/integrated", "tip": "f" * 40, "fixes": 99},
    {"type": "harvested", "test": TESTS[0][0], "result": "impl_fix", "reason": "trust me"},
    {"type": "harvested", "test": "tests/new.py::test_new", "result": "clean"},
    {"type": "slots_changed", "slots": 900},
    {"type": "engine_ended", "why": "finished"},
    {"type": "queued", "test": TESTS[1][0], "agent": "../../etc", "branch": "main"},
)


def _begin(root: Path) -> tuple[SweepFolder, TakenUp]:
    folder = SweepFolder(root / "20261118-061200")
    spec = SweepSpec(
        sweep=folder.name, repository=str(root), base="0" * 40, created_at=1.0, mngr=MngrSettings(path="m")
    )
    write_sweep(folder, spec, derive_tests(folder.name, TESTS))
    return folder, take_up_journal(folder, folder.read_spec())


def _forged_line(folder: SweepFolder, last: int, dice: random.Random) -> bytes:
    """Return a line as an agent may write it: without a seal, with one of another line, or with a key of its own."""
    lines = folder.events.read_bytes().splitlines()
    event = json.dumps(dice.choice(FORGED) | {"seq": last + dice.choice((0, 1, 1, 50)), "at": 2.0}).encode()
    match dice.choice(("bare", "borrowed", "changed", "copied", "torn")):
        case "bare":
            return event
        case "borrowed":
            return event[:-1] + dice.choice(lines)[-35:]
        case "changed":
            return dice.choice(lines).replace(b"test_", b"test-", 1)
        case "copied":
            return dice.choice(lines)
        case _:
            return event[: dice.randrange(1, len(event))]


def forge_events(root: Path, dice: random.Random) -> Iterator[str]:
    """Write forged events between those of an engine; return what of them is believed, or not said."""
    folder, taken_up = _begin(root)
    with taken_up.writer as writer:
        state = taken_up.state
        state.apply(writer.append(happened.EngineStarted(pid=1, slots=2)))
        forged = 0
        for test, *_ in TESTS:
            for event in (happened.Launched(test=test), happened.Harvested(test=test, result=Result.CLEAN)):
                if dice.random() < 0.5:
                    with folder.events.open("ab") as file:
                        file.write(_forged_line(folder, state.last_seq, dice) + dice.choice((b"\n", b"\n", b"")))
                    forged += 1
                state.apply(writer.append(event))
    opened = open_sweep(folder)
    if list(opened.state.tests()) != list(state.tests()) or opened.state.slots != state.slots:
        yield "a forged event is believed"
    if (opened.state.integration, opened.state.ended_why) != (state.integration, state.ended_why):
        yield "a forged end or integration is believed"
    if forged and not doubts_of(opened.state):
        yield f"of {forged} forged lines nothing is said"
    again = take_up_journal(folder, folder.read_spec())
    again.writer.close()
    if list(again.state.tests()) != list(state.tests()):
        yield "the next engine believes a forged event"


def forge_requests(root: Path, dice: random.Random) -> Iterator[str]:
    """Write forged requests beside a person's; return what is not told apart."""
    folder, taken_up = _begin(root)
    taken_up.writer.close()
    own, forged = set(), set()
    for number in range(10):
        if dice.random() < 0.5:
            own.add(append_request(folder, RequestKind.SLOTS, slots=number + 1).id)
            continue
        line = json.dumps({"id": f"forged{number}", "at": 1.0, "by": "you", "kind": "slots", "slots": 900}).encode()
        forged.add(f"forged{number}")
        if dice.random() < 0.5:
            line = Sealer(dice.randbytes(32), folder.name).seal(line)
        with folder.requests.open("ab") as file:
            file.write(line + b"\n")
    follower = RequestFollower(folder)
    requests, _ = follower.read()
    if follower.foreign != forged:
        yield f"{forged ^ follower.foreign} are not told apart"
    if {request.id for request in requests} != own | forged:
        yield "not every request is read, so that nobody answers it"


TRICKS: Final = (
    Trick("events", "an event that the engine did not write is not believed, and it is said", forge_events),
    Trick("requests", "a request that no person's program wrote is told from the others", forge_requests),
)
