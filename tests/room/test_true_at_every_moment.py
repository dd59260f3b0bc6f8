"""Counts, groups and lists of the room match the journal at random moments of simulated sweeps."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from swarm_tui.journal.append import EngineLock
from swarm_tui.journal.decode import parse_event
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import SweepState
from swarm_tui.questions.inbox import find_groups
from swarm_tui.room.app import RoomApp
from swarm_tui.room.draw.glyphs import PILLS, mark_of_pill, word_of
from swarm_tui.room.draw.spans import text_of
from swarm_tui.room.grid.draw_layout import GROUPINGS, GridOptions, arrange
from swarm_tui.room.grid.screen import GridScreen
from swarm_tui.room.settings import Settings
from swarm_tui.room.store import Store, SweepConclusions
from swarm_tui.room.view import draw_header, open_items, screen_facts
from swarm_tui.simulate.feeder import main as feed
from tests.room.scenes import NOW, press
from tests.waiting import eventually

SWEEPS = 4
LOOKS_PER_SWEEP = 5 * settings().max_examples


@pytest.fixture
def played(tmp_path: Path, seed: int) -> tuple[SweepFolder, list[bytes]]:
    """Return a sweep that has just started, and the remaining lines of its journal."""
    folder = SweepFolder(tmp_path / "20261118-061200")
    words = ["--tests", "60", "--ahead", "1", "--seconds", "0", "--at", str(NOW), "--seed", str(seed)]
    feed([str(folder.root), *words])
    lines = folder.events.read_bytes().splitlines(keepends=True)
    folder.events.write_bytes(b"")
    return folder, lines


@pytest.fixture(autouse=True)
def engine(played: tuple[SweepFolder, list[bytes]]) -> Iterator[None]:
    lock = EngineLock(played[0].lock)
    lock.acquire()
    yield
    lock.release()


def differences(store: Store, truth: SweepState, grouping: str) -> list[str]:
    """Return the differences between the room and the journal."""
    records = list(truth.records.values())
    marks = Counter(record.mark for record in records)
    found = []
    header = [text_of(line) for line in draw_header(store, 400)]
    for pill, names in PILLS.items():
        number = sum(marks[name] for name in names)
        if number and f"{mark_of_pill(pill).glyph}{number:,}" not in header[1].split():
            found.append(f"{pill} is {number}, shown is {header[1]}")
    groups = arrange(store.state.records, GridOptions(group=grouping), store.clock())
    shown = [test for group in groups for test in group.tests]
    if sorted(shown) != sorted(truth.records):
        found.append(f"by {grouping} {len(shown)} of {len(records)} tests are shown")
    labels: dict[str, Callable[[TestRecord], str]] = {
        "state": lambda record: record.state.value,
        "result": lambda record: word_of(record) if record.result is not None else "no result yet",
        "host": lambda record: record.host or "no host yet",
    }
    label_of = labels.get(grouping)
    if label_of is not None:
        for group in groups:
            found += [
                f"{test} in {group.label}" for test in group.tests if label_of(truth.records[test]) != group.label
            ]
    inbox = [item.id for group in find_groups(truth, store.now) for item in group.items]
    if sorted(inbox) != sorted(item.id for item in open_items(store)):
        found.append(f"the inbox has {len(open_items(store))} items, true are {len(inbox)}")
    anew = SweepConclusions()
    anew.update(records)
    numbers = {screen.name: screen.open for screen in screen_facts(store, None, "sweep")}
    true_numbers = {"patterns": len(anew.patterns()), "inbox": len(inbox), "fixes": truth.integration.fixes}
    if truth.integration.state != "done":
        true_numbers["fixes"] = 0
    found += [f"{name}: {number}" for name, number in true_numbers.items() if numbers[name] != number]
    return found


@pytest.mark.parametrize("seed", range(SWEEPS))
def test_room_matches_journal_at_random_moments(played: tuple[SweepFolder, list[bytes]], seed: int) -> None:
    folder, lines = played
    chance = random.Random(seed)
    clock = [NOW]

    def tick() -> float:
        clock[0] += 1.1
        return clock[0]

    store, truth, at = Store(folder, clock=lambda: clock[0]), SweepState(), 0
    moments = sorted(chance.choices(range(1, len(lines) + 1), k=LOOKS_PER_SWEEP))
    wrong = []
    with folder.events.open("ab") as journal:
        for moment in moments:
            journal.write(b"".join(lines[at:moment]))
            journal.flush()
            for line in lines[at:moment]:
                truth.apply(parse_event(line))
            at = moment
            while store.read_new_events():
                pass
            tick()
            wrong += differences(store, truth, chance.choice(GROUPINGS))
    assert not wrong, f"{len(wrong)} differences in {LOOKS_PER_SWEEP} looks, such as {wrong[:3]}"


@pytest.mark.parametrize("seed", [1])
async def test_groups_are_updated_while_keys_are_pressed(played: tuple[SweepFolder, list[bytes]], seed: int) -> None:
    folder, lines = played
    folder.events.write_bytes(b"".join(lines[: len(lines) // 2]))
    store = Store(folder)
    while store.read_new_events():
        pass
    app = RoomApp(store, Settings(notify="none"))
    async with app.run_test(size=(120, 50)) as pilot:
        await press(pilot, "b", "t", "plus", "plus")
        screen = app.room_screen
        assert isinstance(screen, GridScreen)
        with folder.events.open("ab") as journal:
            journal.write(b"".join(lines[len(lines) // 2 :]))

        async def is_true() -> bool:
            await pilot.press("j")
            shown = {test: run.label for row in screen.grid.cells.rows for run in row for test in run.tests}
            heading = ""
            labels: dict[str, str] = {}
            for row in screen.grid.cells.rows:
                heading = row[0].label if not row[0].tests else heading
                labels |= dict.fromkeys(row[0].tests, heading)
            assert shown.keys() == labels.keys()
            states = {test: record.state.value for test, record in store.state.records.items()}
            return store.state.ended_why is not None and labels == states

        await eventually(is_true, "every test to be in the group of its state")
