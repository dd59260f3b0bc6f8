"""The faults that are made of a source, and the table of the modules that they are made in."""

from __future__ import annotations

import ast

import pytest

from tests.mutants.__main__ import survivors, table
from tests.mutants.mutate import Mutant, choose_mutants, find_mutants
from tests.mutants.run import PROJECT, Fate, Tried, diff_of
from tests.mutants.table import CORE, EQUIVALENT

SOURCE = '''
"""A module."""
LIMIT: Final = 3

def larger(first: int, second: int = 2) -> int | None:
    """Return the larger one."""
    assert first != 7
    if first is None:
        return None
    if first > second and second:
        note("über", first)
        return first
    return -second
'''


def lines_of(source: str) -> dict[str, set[str]]:
    """Return the changed lines of every mutant by its kind."""
    found: dict[str, set[str]] = {}
    for mutant in find_mutants(source):
        after = diff_of(source, mutant).split("+ ", 1)[1]
        found.setdefault(mutant.kind, set()).add(after.replace("\n    + ", "; "))
    return found


def test_each_kind_of_fault_is_made_where_it_can_be() -> None:
    assert lines_of(SOURCE) == {
        "constant changed": {"LIMIT: Final = (4)", "def larger(first: int, second: int = (3)) -> int | None:"},
        "comparison swapped": {"if (first is not None):", "if (first >= second) and second:"},
        "guard removed": {"pass"},
        "and and or swapped": {"if (first > second or second):"},
        "condition dropped": {"if (first > second):", "if (second):"},
        "statement dropped": {"pass"},
        "arguments swapped": {"(note(first, 'über'))"},
        "returns None": {"return None"},
        "sign removed": {"return (second)"},
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a if b else c", "(c if b else a)"),
        ("not a", "(a)"),
        ("a + b", "(a - b)"),
        ("min(a, b)", "(max(a, b))"),
        ("[a for a in b if a]", "([a for a in b])"),
        ("sorted(a)", "(a)"),
        ("a in b", "(a not in b)"),
        ("f(a, b)", "(f(b, a))"),
    ],
)
def test_an_expression_is_made_wrong(before: str, after: str) -> None:
    assert f"x = {after}" in {mutant.apply(f"x = {before}") for mutant in find_mutants(f"x = {before}")}


def test_what_is_no_behaviour_is_left_alone() -> None:
    quiet = 'import a\nx: Literal[1]\nassert a == 1\nz = f"{a + 1}"\nif TYPE_CHECKING:\n    y = 1\n'
    assert find_mutants(quiet) == []


def test_the_choice_is_the_same_every_time() -> None:
    source = (PROJECT / "swarm_tui/sweep/slots.py").read_text()
    assert choose_mutants(source, 9, "1") == choose_mutants(source, 9, "1") != choose_mutants(source, 9, "2")


def test_every_mutant_of_the_core_is_a_program() -> None:
    for module in CORE:
        source = (PROJECT / module).read_text()
        chosen = choose_mutants(source, 15, f"1:{module}")
        assert len({mutant.apply(source) for mutant in chosen}) == len(chosen) > 0
        for mutant in chosen:
            ast.parse(mutant.apply(source))


def test_the_table_leads_to_files_that_are_there() -> None:
    assert [module for module in CORE if not (PROJECT / module).is_file()] == []
    assert [test for tests in CORE.values() for test in tests if not (PROJECT / test).exists()] == []


def test_what_is_called_equivalent_still_stands_in_the_source() -> None:
    for module, before, _ in EQUIVALENT:
        lines = [line.strip() for line in (PROJECT / module).read_text().splitlines()]
        assert set(before.split("\n")) <= set(lines), f"{module}: {before}"


def test_survivors_are_listed_with_their_place_and_counted() -> None:
    source = "a = b == c\n"
    mutant = Mutant(1, 4, 10, "(b != c)", "comparison swapped")
    tried = [Tried("m.py", mutant, diff_of(source, mutant), fate) for fate in (Fate.SURVIVED, Fate.KILLED)]
    assert survivors(tried) == "m.py:1: comparison swapped\n    - a = b == c\n    + a = (b != c)"
    assert survivors(tried[1:]) == "no survivor"
    assert [line.split() for line in table(tried).split("\n")] == [
        ["module", "mutants", "killed", "survivors"],
        ["m.py", "2", "1", "1", "50", "%"],
        ["all", "2", "1", "1", "50", "%"],
    ]
