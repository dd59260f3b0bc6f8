"""Mutants are created only in the given lines, change nothing else, and never meet in one test."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.strength.mutants import FAULTS_EACH, Mutant, apply_mutants, choose_mutants, mutants_of, plan_rounds
from tests.strength.edits import PROGRAM

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
def test_mutants_of_a_line(line: str, became: set[str]) -> None:
    source = f"def f(a, b, x):\n    {line}\n".encode() + (b"        pass\n" if line.endswith(":") else b"")
    found = {
        apply_mutants(source, [fault]).decode().splitlines()[1].strip() for fault in mutants_of("a.py", source, [2])
    }
    assert found == became


def test_every_mutant_is_valid_and_different() -> None:
    found = mutants_of("stock.py", SOURCE, ALL_LINES)
    made = [apply_mutants(SOURCE, [fault]) for fault in found]
    assert len(found) > 80
    assert SOURCE not in made
    assert len(set(made)) == len(made)
    for source in made:
        ast.parse(source)


def test_invalid_python_has_no_mutants() -> None:
    assert mutants_of("a.py", b"def f(:\n", ALL_LINES) == []


lines_of_tests = st.dictionaries(
    st.sampled_from(["t1", "t2", "t3", "t4"]), st.sets(st.integers(15, 90), min_size=1, max_size=40), min_size=1
)


@given(lines_of_tests)
def test_rounds_have_one_mutant_per_test(lines: dict[str, set[int]]) -> None:
    covered = {test: {("stock.py", line) for line in found} for test, found in lines.items()}
    faults = mutants_of("stock.py", SOURCE, set().union(*lines.values()))
    chosen = choose_mutants(faults, covered)
    rounds = plan_rounds(chosen, covered)
    tried: dict[str, list[Mutant]] = {test: [] for test in lines}
    for each in rounds:
        for test in each.all_tests:
            met = [fault for fault in each.tests if (fault.path, fault.line) in covered[test]]
            assert len(met) == 1
            tried[test] += met
        ast.parse(apply_mutants(SOURCE, list(each.tests)))
    for test, found in tried.items():
        assert sorted(found, key=lambda fault: fault.order) == sorted(chosen[test], key=lambda fault: fault.order)
        possible = [fault for fault in faults if ("stock.py", fault.line) in covered[test]]
        assert len(found) == min(FAULTS_EACH, len(possible))
