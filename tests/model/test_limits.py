"""Live agents have different numbers, ports and folders, and paths of sockets are short enough."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.errors import UsageError
from swarm_tui.model.options import parse_confinement, parse_size
from swarm_tui.model.run_limits import COPIES_NUMBER, RunLimits, free_number, own_variables


@given(st.sets(st.integers(1, 200)))
def test_free_number_is_smallest_unused(taken: set[int]) -> None:
    number = free_number(taken)
    assert number not in taken
    assert all(smaller in taken for smaller in range(1, number))


@given(st.sets(st.sampled_from([*range(1, 600), COPIES_NUMBER, COPIES_NUMBER + 1]), max_size=40))
def test_ports_and_folders_are_unique_per_agent(numbers: set[int]) -> None:
    variables = [own_variables(number, "/tmp/sw-0123456789ab", RunLimits(has_own_home=True)) for number in numbers]
    ports = [
        port for given in variables for port in range(int(given["SWARM_FIRST_PORT"]), int(given["SWARM_LAST_PORT"]) + 1)
    ]
    assert len(set(ports)) == len(ports) == 20 * len(numbers)
    assert all(10_000 <= port < 32_768 for port in ports), "the kernel assigns higher ports automatically"
    assert len({given["TMPDIR"] for given in variables}) == len(numbers)
    assert all(given["SWARM_OWN_HOME"].startswith(given["TMPDIR"] + "/") for given in variables)
    longest = "/pytest-of-username/pytest-12/test_a_name_that_is_cut_at_thi0/socket"
    assert all(len(given["TMPDIR"] + longest) < 107 for given in variables)


def test_two_sweeps_start_at_different_ports() -> None:
    sweeps = [f"/tmp/sw-{number:012x}" for number in range(100)]
    assert len({own_variables(1, temporary, RunLimits())["SWARM_FIRST_PORT"] for temporary in sweeps}) > 80


def test_parse_confinement_and_describe() -> None:
    assert parse_confinement("").words == "no home and no network"
    assert parse_confinement("network,~/a,/b").words == "the network, and no home, may read ~/a, may read /b"
    with pytest.raises(UsageError, match="invalid exception: 'tests/e2e'"):
        parse_confinement("network,tests/e2e")


def test_variables_contain_only_set_limits() -> None:
    told = own_variables(3, "/t", RunLimits())
    assert set(told) == {"SWARM_AGENT_NUMBER", "SWARM_FIRST_PORT", "SWARM_LAST_PORT", "TMPDIR"}
    assert (told["SWARM_AGENT_NUMBER"], told["TMPDIR"]) == ("3", "/t/3")
    assert RunLimits(30.0, 1 << 30).variables == {
        "SWARM_TEST_TIMEOUT": "30",
        "SWARM_MEMORY_LIMIT": "1073741824",
    }


@pytest.mark.parametrize(
    ("text", "size"),
    [("512M", 512 << 20), ("2G", 2 << 30), ("1.5g", 3 << 29), ("1GiB", 1 << 30), ("700", 700)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "-1G", "1T", "2 G", "1e9"])
def test_parse_size_invalid_raises_error(text: str) -> None:
    with pytest.raises(UsageError, match="invalid size"):
        parse_size(text)
