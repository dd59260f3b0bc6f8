"""When new hosts are made and given back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.sweep.host_pool import (
    IDLE_BEFORE_GIVEN_BACK,
    MAKES_AT_ONCE,
    HostPlan,
    HostPool,
    HostUse,
    plan_hosts,
)

LATER = 1000.0


def plan(
    agents: dict[str, int],
    *,
    launchable: int = 0,
    per_host: int = 4,
    making: int = 0,
    idle: float = 0.0,
    makes_at_once: int = MAKES_AT_ONCE,
) -> HostPlan:
    idle_since = {host: LATER - idle for host, number in agents.items() if number == 0}
    return plan_hosts(
        launchable=launchable,
        per_host=per_host,
        free={host: HostUse(active=number).free(per_host) for host, number in agents.items()},
        making=making,
        idle_since=idle_since,
        now=LATER,
        makes_at_once=makes_at_once,
    )


def test_as_many_hosts_are_made_as_the_tests_that_could_be_launched_need() -> None:
    assert plan({}, launchable=9, per_host=4).make == 3
    assert plan({}, launchable=5).make == 2
    assert plan({}, launchable=0).make == 0
    assert plan({"a": 3}, launchable=1).make == 0, "there is room"
    assert plan({"a": 4}, launchable=1).make == 1
    assert plan({"a": 4}, launchable=1, making=1).make == 0, "one is on its way"
    assert plan({}, launchable=1000).make == MAKES_AT_ONCE
    assert plan({}, launchable=1000, makes_at_once=1).make == 1
    assert plan({}, launchable=1000, makes_at_once=1, making=1).make == 0


def test_slots_of_plan_are_those_of_pool() -> None:
    uses = {"a": HostUse(active=1, waiting=2), "b": HostUse(waiting=2), "c": HostUse(active=1, creating=1)}
    assert [use.free(2) for use in uses.values()] == [1, 2, 0]
    pool = HostPool(list(uses), 2)
    assert pool.choose(uses, (), 0.0) == "b"
    assert pool.choose(uses, ("b",), 0.0) == "a"
    assert pool.choose(uses, ("a", "b"), 0.0) is None


def test_an_empty_host_is_given_back_after_a_while_unless_it_is_needed() -> None:
    assert plan({"a": 0}, idle=IDLE_BEFORE_GIVEN_BACK).give_back == ("a",)
    assert plan({"a": 0}, idle=IDLE_BEFORE_GIVEN_BACK - 1).give_back == ()
    assert plan({"a": 1}, idle=IDLE_BEFORE_GIVEN_BACK).give_back == ()
    assert plan({"a": 0}, launchable=1, idle=500).give_back == ()
    assert plan({"a": 0, "b": 0}, launchable=1, idle=500).give_back == ("a",), "one is enough"
    assert plan({"a": 0}, launchable=0, idle=500).give_back == ("a",), "the queue is held"


@given(
    agents=st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 5)),
    launchable=st.integers(0, 40),
    per_host=st.integers(1, 5),
    making=st.integers(0, 4),
    idle=st.sampled_from([0.0, 500.0]),
)
def test_nothing_is_made_and_given_back_at_once(
    agents: dict[str, int], launchable: int, per_host: int, making: int, idle: float
) -> None:
    found = plan(agents, launchable=launchable, per_host=per_host, making=making, idle=idle)
    assert not (found.make and found.give_back)
    assert 0 <= found.make <= max(0, MAKES_AT_ONCE - making)
    assert all(agents[host] == 0 for host in found.give_back)
    left = sum(max(0, per_host - number) for host, number in agents.items() if host not in found.give_back)
    if found.give_back:
        assert left >= launchable
