"""On which host an agent is launched."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.model.spec import LOCAL_HOST
from swarm_tui.sweep.host_pool import CREATES_ON_HOST, REFUSALS, HostPool, HostUse


def fill(pool: HostPool, number: int, lost: frozenset[str] = frozenset()) -> Counter[str]:
    """Launch so many agents one after the other; return how many each host got."""
    active: Counter[str] = Counter()
    for _ in range(number):
        host = pool.choose({name: HostUse(active=count) for name, count in active.items()}, lost, 0.0)
        if host is not None:
            active[host] += 1
    return active


def test_without_hosts_agents_run_here() -> None:
    assert HostPool().choose({}, (), 0.0) == LOCAL_HOST


@given(st.integers(1, 8), st.integers(1, 5), st.integers(0, 50))
def test_agents_are_spread_evenly_and_no_host_gets_more_than_its_slots(hosts: int, slots: int, number: int) -> None:
    names = [f"box{each}" for each in range(hosts)]
    got = fill(HostPool(names, slots), number)
    assert got.total() == min(number, hosts * slots)
    assert max(got[name] for name in names) - min(got[name] for name in names) <= 1


def test_a_host_that_is_full_lost_or_busy_creating_lets_others_work() -> None:
    pool = HostPool(["box1", "box2", "box3"], 2)
    uses = {"box1": HostUse(active=2), "box2": HostUse(creating=CREATES_ON_HOST), "box3": HostUse()}
    assert pool.choose(uses, (), 0.0) == "box3"
    assert pool.choose(uses, ("box3",), 0.0) is None


def test_as_many_waiting_agents_as_slots_let_others_be_launched_on_their_host() -> None:
    pool = HostPool(["box1"], 2)
    assert pool.choose({"box1": HostUse(active=1, waiting=1)}, (), 0.0) is None
    assert pool.choose({"box1": HostUse(waiting=2)}, (), 0.0) == "box1"


def test_a_host_that_refuses_rests_longer_each_time_and_gets_none_in_the_end() -> None:
    pool = HostPool(["box1", "box2"], 4)
    pool.note_failure("box1", "no space left", now=0.0)
    assert fill(pool, 2) == {"box2": 2}
    assert pool.choose({"box2": HostUse(active=1)}, (), 11.0) == "box1"
    pool.note_failure("box1", "no space left", now=11.0)
    assert pool.choose({"box2": HostUse(active=1)}, (), 30.0) == "box2"
    for _ in range(REFUSALS):
        pool.note_failure("box1", "no space left", now=50.0)
    assert pool.choose({"box2": HostUse(active=4)}, (), 1e9) is None
    assert pool.why_hopeless(()) == ""
    assert pool.why_hopeless(("box2",)) == "no space left; box2 does not answer any more"


def test_a_host_on_which_no_agent_can_ever_work_gets_none_at_once() -> None:
    pool = HostPool(["box1"], 4)
    pool.note_failure("box1", "box1 has no tmux", now=0.0, is_lasting=True)
    assert pool.why_hopeless(()) == "box1 has no tmux"


def test_one_success_forgives_a_host() -> None:
    pool = HostPool(["box1"], 4)
    for _ in range(REFUSALS - 1):
        pool.note_failure("box1", "no space left", now=0.0)
    pool.note_success("box1")
    assert pool.choose({}, (), 0.0) == "box1"
