"""The status of hosts, and why slots are free."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from swarm_tui.hosts.events import HostAbandoned, HostLost, HostPolled, HostRecovered
from swarm_tui.hosts.lines import HostLine, HostTally, free_slots_reason, host_lines, text_of_host
from swarm_tui.journal.events import AgentStateChanged, Launched, Launching, Pulled, Queued, Stopped
from swarm_tui.journal.state import SweepState
from swarm_tui.journal.work_events import AgentOutput
from swarm_tui.model.event import Event
from swarm_tui.model.results import Result, State
from swarm_tui.model.spec import HostSettings, MngrSettings, SweepSpec


def spec_on(*hosts: str, per_host: int = 4) -> SweepSpec:
    access = tuple(HostSettings(name=host, provider=host, address="x", host_dir="/m") for host in hosts)
    more: dict[str, Any] = {"access": access, "hosts": hosts, "per_host": per_host}
    return SweepSpec(
        sweep="s", repository="/r", base="b", created_at=0.0, agent_type="offline", mngr=MngrSettings(path="m"), **more
    )


def folded(*events: Event) -> SweepState:
    state = SweepState()
    for number, event in enumerate(events, 1):
        state.apply(structs.replace(event, seq=number, at=event.at or float(number)))
    return state


def lines_of(state: SweepState, spec: SweepSpec) -> dict[str, HostLine]:
    return {line.name: line for line in host_lines(spec, state.hosts, state.tests())}


def on_host(test: str, host: str) -> tuple[Event, ...]:
    return Queued(test=test), Launching(test=test, host=host), Launched(test=test, host=host)


def test_host_counts_tests_after_launch() -> None:
    state = folded(
        Queued(test="q"),
        *on_host("a", "box1"),
        *on_host("b", "box1"),
        AgentStateChanged(test="b", state=State.WAITING, at=50.0),
        *on_host("c", "box1"),
        Pulled(test="c", result=Result.ERROR),
        Queued(test="d"),
        Launching(test="d", host="box2"),
        HostPolled(host="box1", load=3.0, processors=8, at=60.0),
        AgentOutput(test="a", line="x", at=70.0),
    )
    lines = lines_of(state, spec_on("box1", "box2", "box3"))
    box1 = lines["box1"]
    assert (box1.running, box1.waiting, box1.free, box1.finished, box1.unsolved) == (1, 1, 2, 1, 1)
    assert (box1.heard_at, box1.load, box1.processors) == (70.0, 3.0, 8)
    assert box1.tests == ("a", "b", "c")
    assert (lines["box2"].running, lines["box2"].heard_at) == (1, None)
    assert (lines["box3"].taken, lines["box3"].free) == (0, 4)
    assert text_of_host(box1, 82.0) == "box1: 2 of 4 slots, 1 waiting, load 3.0 of 8, polled 12 s ago, 1 done"


def test_moved_test_counts_for_new_host_only() -> None:
    state = folded(
        *on_host("a", "box1"),
        HostLost(host="box1", reason="no answer", at=100.0),
        HostAbandoned(host="box1", reason="no answer for 15 minutes", at=1000.0),
        Queued(test="a", reason="box1 is given up"),
        Launching(test="a", host="box2"),
    )
    lines = lines_of(state, spec_on("box1", "box2"))
    assert list(lines) == ["box1", "box2"], "those with trouble come first"
    assert (lines["box1"].tests, lines["box1"].free, lines["box1"].is_gone) == ((), 0, True)
    assert lines["box2"].tests == ("a",)


def test_free_slots_reason_names_hosts() -> None:
    spec = spec_on("box1", "box2", per_host=2)
    lost = folded(*on_host("a", "box1"), HostLost(host="box2", at=100.0))
    why = free_slots_reason(list(lines_of(lost, spec).values()), 4, 3, 280.0)
    assert why == "1 of 4 slots in use: box2 has not answered for 3m00s"
    assert free_slots_reason(list(lines_of(lost, spec).values()), 4, 0, 280.0) == "", "nothing waits for a slot"
    assert free_slots_reason(list(lines_of(lost, spec).values()), 1, 3, 280.0) == "", "every slot is used"
    well = folded(*on_host("a", "box1"))
    assert free_slots_reason(list(lines_of(well, spec).values()), 4, 3, 280.0) == "", "a launch is about to come"
    full = folded(*(event for test in "abcd" for event in on_host(test, f"box{1 + (test > 'b')}")))
    assert (
        free_slots_reason(list(lines_of(full, spec).values()), 9, 3, 9.0) == "4 of 9 slots in use: all hosts are full"
    )
    here = folded(*on_host("a", "local"))
    assert free_slots_reason(list(lines_of(here, spec_on()).values()), 4, 3, 9.0) == ""


@given(seed=st.integers(0, 10_000))
def test_incremental_host_count_equals_full_count(seed: int) -> None:
    chance, state, tally = random.Random(seed), SweepState(), HostTally()
    spec = spec_on("h0", "h1", "h2")
    for number in range(60):
        test, host = f"t{chance.randrange(6)}", f"h{chance.randrange(3)}"
        event = chance.choice(
            (
                Queued(test=test),
                Launching(test=test, host=host),
                Launched(test=test, host=host),
                AgentStateChanged(test=test, state=State.WAITING),
                Pulled(test=test, result=Result.CLEAN),
                Stopped(test=test),
                HostLost(host=host),
                HostRecovered(host=host),
                HostAbandoned(host=host),
            )
        )
        state.apply(structs.replace(event, seq=number, at=float(number)))
        for changed in state.drain_changed():
            tally.count(state.records[changed])
        assert {line._replace(tests=()) for line in tally.lines(spec, state.hosts)} == {
            line._replace(tests=()) for line in host_lines(spec, state.hosts, state.tests())
        }
