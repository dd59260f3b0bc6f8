"""Faults are made in the lines that are asked for, change nothing else, and are tried without meeting each other."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.teeth.mutants import Fault, faults_in, with_faults
from swarm_tui.teeth.rounds import FAULTS_EACH, choose_faults, plan_rounds
from tests.teeth.edits import PROGRAM

SOURCE = PROGRAM.encode()
ALL_LINES = range(1, 200)


@pytest.mark.parametrize(
    ("line", "became"),
    [
        ("if a < b:", {"if (not (a < b)):", "if (a <= b):"}),
        ("return a + 1", {"return None", "return (a - 1)", "return a + 2"}),
        ("x = a and not b", {"x = (a or not b)", "x = a and (bool(b))"}),
        ("print('é' + a)", {"pass", "print('é~' + a)"}),
        ("x[0] = True", {"pass", "x[1] = True", "x[0] = False"}),
        ("raise E", {"pass"}),
        ("x: int = 3", {"x: int = 4"}),
        ("y = f'{a + 1}'", set()),
    ],
)
def test_the_faults_of_a_line(line: str, became: set[str]) -> None:
    source = f"def f(a, b, x):\n    {line}\n".encode() + (b"        pass\n" if line.endswith(":") else b"")
    found = {with_faults(source, [fault]).decode().splitlines()[1].strip() for fault in faults_in("a.py", source, [2])}
    assert found == became


def test_every_fault_gives_another_program_that_can_be_read() -> None:
    found = faults_in("stock.py", SOURCE, ALL_LINES)
    made = [with_faults(SOURCE, [fault]) for fault in found]
    assert len(found) > 80
    assert SOURCE not in made
    assert len(set(made)) == len(made)
    for source in made:
        ast.parse(source)


def test_nothing_is_made_of_what_is_no_python() -> None:
    assert faults_in("a.py", b"def f(:\n", ALL_LINES) == []


lines_of_tests = st.dictionaries(
    st.sampled_from(["t1", "t2", "t3", "t4"]), st.sets(st.integers(15, 90), min_size=1, max_size=40), min_size=1
)


@given(lines_of_tests)
def test_no_test_meets_two_faults_and_each_gets_its_own(lines: dict[str, set[int]]) -> None:
    covered = {test: {("stock.py", line) for line in found} for test, found in lines.items()}
    faults = faults_in("stock.py", SOURCE, set().union(*lines.values()))
    chosen = choose_faults(faults, covered)
    rounds = plan_rounds(chosen, covered)
    tried: dict[str, list[Fault]] = {test: [] for test in lines}
    for each in rounds:
        for test in each.all_tests:
            met = [fault for fault in each.tests if (fault.path, fault.line) in covered[test]]
            assert len(met) == 1
            tried[test] += met
        ast.parse(with_faults(SOURCE, list(each.tests)))
    for test, found in tried.items():
        assert sorted(found, key=lambda fault: fault.order) == sorted(chosen[test], key=lambda fault: fault.order)
        possible = [fault for fault in faults if ("stock.py", fault.line) in covered[test]]
        assert len(found) == min(FAULTS_EACH, len(possible))
