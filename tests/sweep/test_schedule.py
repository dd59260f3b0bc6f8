"""Which tests are launched: never more than the slots allow, in the order of the queue, and all of them in the end."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from swarm_tui.journal import record as state
from swarm_tui.model.results import State
from swarm_tui.sweep.slots import CREATES_AT_ONCE, idle_slots, next_launches, slots_taken

QUEUE = [f"t{number}" for number in range(10)]
RECORDS = {test: state.TestRecord(test) for test in QUEUE}


def choose(
    slots: int,
    taken: int = 0,
    creating: int = 0,
    held: Sequence[str] = (),
) -> list[str]:
    records = RECORDS | {test: structs.replace(RECORDS[test], is_held=True) for test in held}
    return next_launches(QUEUE, records, slots=slots, taken=taken, creating=creating)


def test_a_few_are_created_at_a_time() -> None:
    assert choose(24) == ["t0", "t1", "t2"]
    assert choose(24, taken=2, creating=2) == ["t0"]
    assert choose(2) == ["t0", "t1"]
    assert choose(2, taken=2) == []


def test_fewer_slots_than_agents_launch_nothing() -> None:
    assert choose(2, taken=5) == []


def test_a_waiting_agent_keeps_its_slot_until_as_many_wait_as_there_are_slots() -> None:
    assert [slots_taken(0, waiting, slots=3) for waiting in range(8)] == [0, 1, 2, 0, 1, 2, 3, 4]
    assert slots_taken(2, 1, slots=3) == 3
    assert slots_taken(2, 3, slots=3) == 2


@given(slots=st.integers(1, 20), steps=st.lists(st.booleans(), max_size=80))
def test_agents_that_all_wait_never_become_more_than_two_a_slot(slots: int, steps: list[bool]) -> None:
    active = waiting = 0
    for is_launching in steps:
        if is_launching and slots_taken(active, waiting, slots) < slots:
            active += 1
        elif active:
            active, waiting = active - 1, waiting + 1
        assert active + waiting <= 2 * slots


def test_held_tests_are_skipped() -> None:
    assert choose(9, held=["t0"]) == ["t1", "t2", "t3"]


def test_only_queued_tests_are_launched() -> None:
    others = [name for name in State if name is not State.QUEUED]
    queue = [*(f"x{name.value}" for name in others), "last"]
    records = {f"x{name.value}": state.TestRecord("x", state=name) for name in others}
    records["last"] = state.TestRecord("last")
    chosen = next_launches(queue, records, slots=99, taken=0, creating=0)
    assert chosen == ["last"]


@given(slots=st.integers(1, 30), taken=st.integers(0, 30), creating=st.integers(0, CREATES_AT_ONCE))
def test_the_slots_are_never_exceeded(slots: int, taken: int, creating: int) -> None:
    chosen = choose(slots, taken, creating)
    assert len(chosen) <= max(0, slots - taken)
    assert len(chosen) + creating <= CREATES_AT_ONCE
    assert chosen == QUEUE[: len(chosen)]


def test_of_a_group_only_one_is_at_work() -> None:
    records = RECORDS | {test: structs.replace(RECORDS[test], group="port") for test in ("t0", "t1", "t4")}

    def choose_now() -> list[str]:
        return next_launches(QUEUE, records, slots=9, taken=0, creating=0)

    assert choose_now() == ["t0", "t2", "t3"]
    beside_checks = next_launches(QUEUE, records, slots=9, taken=0, creating=0, groups_at_work=["port"])
    assert beside_checks == ["t2", "t3", "t5"]
    for living in (State.LAUNCHING, State.RUNNING, State.WAITING, State.PULLING):
        records["t0"] = structs.replace(records["t0"], state=living)
        assert choose_now() == ["t2", "t3", "t5"]
    for over in (State.DONE, State.STOPPED):
        records["t0"] = structs.replace(records["t0"], state=over)
        assert choose_now() == ["t1", "t2", "t3"]


@given(st.lists(st.sampled_from(["", "a", "b"]), min_size=1, max_size=12), st.integers(1, 6))
def test_all_are_launched_in_the_end_and_groups_never_overlap(groups: list[str], slots: int) -> None:
    records = {f"t{n}": state.TestRecord(f"t{n}", group=group) for n, group in enumerate(groups)}
    living: list[str] = []
    launched = 0
    while launched < len(records):
        for test in next_launches(list(records), records, slots=slots, taken=len(living), creating=0):
            records[test] = structs.replace(records[test], state=State.RUNNING)
            living.append(test)
            launched += 1
        running = [records[test].group for test in living if records[test].group]
        assert len(running) == len(set(running))
        oldest = living.pop(0)
        records[oldest] = structs.replace(records[oldest], state=State.DONE)


def test_more_slots_than_tests_are_said() -> None:
    assert idle_slots(4, 4) == ""
    assert idle_slots(99, 27) == "27 tests: no more than 27 agents at once"
    assert idle_slots(2, 1) == "1 test: no more than 1 agent at once"
