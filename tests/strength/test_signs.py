"""Weakening found in the sources of edited tests, with sixty edits."""

from __future__ import annotations

import pytest

from swarm_tui.model.test_strength import StrengthChangeKind
from swarm_tui.strength.mutants import mutants_of
from swarm_tui.strength.signs import signs_of
from swarm_tui.strength.source import changed_tests, read_tests
from tests.strength.edits import EDITS, Edit, file_of_tests

SKIPPED, XFAIL, LOOSENED, WIDENED = (
    StrengthChangeKind.SKIPPED,
    StrengthChangeKind.XFAIL,
    StrengthChangeKind.LOOSENED,
    StrengthChangeKind.WIDENED,
)
EXPECTED = {
    "skipped": [SKIPPED],
    "skipped_inside": [SKIPPED, StrengthChangeKind.NEVER_RUN],
    "expected_to_fail": [XFAIL],
    "swallowed": [StrengthChangeKind.SWALLOWED],
    "nothing_left": [StrengthChangeKind.NO_CHECK],
    "one_of_three_left": [StrengthChangeKind.LOST] * 2,
    "equal_became_in": [LOOSENED],
    "equal_became_true": [LOOSENED],
    "equal_became_not_none": [LOOSENED],
    "tolerance": [WIDENED],
    "difference": [WIDENED],
    "bound": [WIDENED],
    "any_exception": [StrengthChangeKind.BROADER],
    "compared_with_itself": [StrengthChangeKind.EMPTY],
    "alternative": [LOOSENED],
    "only_if": [StrengthChangeKind.CONDITIONAL],
    "fewer_cases": [StrengthChangeKind.CASES],
    "gone": [StrengthChangeKind.REMOVED],
    # Honest edits that only a measurement can clear.
    "two_in_one": [StrengthChangeKind.LOST],
    "cases_made": [StrengthChangeKind.LOST] * 2,
    "cases_written_out": [StrengthChangeKind.CASES],
    "double_assert": [StrengthChangeKind.LOST],
    "whole_log": [StrengthChangeKind.LOST] * 2,
}


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.name)
def test_weakening_is_found_in_source(edit: Edit) -> None:
    before = {"test_stock.py": file_of_tests(is_after=False, edits=(edit,)).encode()}
    after = {"test_stock.py": file_of_tests(is_after=True, edits=(edit,)).encode()}
    signs = [sign.kind for changed in changed_tests(before, after) for sign in signs_of(changed)]
    assert signs == EXPECTED.get(edit.name, [])
    assert bool(signs) or not edit.is_weakening or edit.is_only_measured


def changes(before: str, after: str) -> list[tuple[str, str, list[str]]]:
    """Return the changed tests: the names before and after, and the weakening changes."""
    return [
        (found.before.name if found.before else "", found.after.name if found.after else "",
         [sign.kind.name for sign in signs_of(found)])
        for found in changed_tests({"test_a.py": before.encode()}, {"test_a.py": after.encode()})
    ]  # fmt: skip


def test_moved_or_renamed_test_is_unchanged() -> None:
    assert changes("def test_a():\n    assert f(1) == 2\n", "x = 1\n\ndef test_b():\n    assert f(1) == 2\n") == []


def test_test_changes_with_its_helpers() -> None:
    before = "LIMIT = 3\ndef check(x):\n    assert x < LIMIT\ndef test_a():\n    check(1)\n"
    assert changes(before, before.replace("x < LIMIT", "x")) == [("test_a", "test_a", ["LOOSENED"])]
    assert changes(before, before.replace("LIMIT = 3", "LIMIT = 4")) == [("test_a", "test_a", [])]
    assert changes(before, "OTHER = 5\n" + before) == []


def test_marks_of_class_and_file_are_used() -> None:
    before = "class TestA:\n    def test_a(self):\n        assert f() == 1\n"
    assert changes(before, "@pytest.mark.skip\n" + before) == [("TestA::test_a", "TestA::test_a", ["SKIPPED"])]
    marked = "pytestmark = [pytest.mark.skipif(True, reason='')]\n" + before
    assert changes(before, marked) == [("TestA::test_a", "TestA::test_a", ["SKIPPED"])]


def test_merged_tests_are_replaced_by_one() -> None:
    before = "def test_one():\n    assert f(1) == 2\ndef test_two():\n    assert f(2) == 3\n"
    after = "@pytest.mark.parametrize('a, b', [(1, 2), (2, 3)])\ndef test_both(a, b):\n    assert f(a) == b\n"
    assert [(old, new) for old, new, _ in changes(before, after)] == [
        ("test_one", "test_both"),
        ("test_two", "test_both"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "signs"),
    [
        ("expect(out).to_equal('1 kg')", "expect(out).to_contain('kg')", ["LOOSENED"]),
        ("expect(out).to_contain('1 kg')", "expect(out).to_contain('kg')", ["LOOSENED"]),
        ("expect(out).to_contain('kg')", "expect(out).to_equal('1 kg')", []),
        ("expect(out).to_equal('1 kg')", "expect(out).to_equal('2 kg')", []),
        ("self.assertEqual(f(), 3)", "self.assertTrue(f())", ["LOOSENED"]),
        ("self.assertTrue(f() == 3)", "self.assertEqual(f(), 3)", []),
    ],
)
def test_calls_that_check_are_compared(before: str, after: str, signs: list[str]) -> None:
    source = "def test_a(self):\n    {}\n"
    assert changes(source.format(before), source.format(after)) == [("test_a", "test_a", signs)]


PLAIN = "from shop import double\n\n\ndef test_a():\n    assert double(2) == 4\n"
INNER = "def test_a():\n    def check():\n        assert double(2) == 4\n{}"


@pytest.mark.parametrize(
    ("after", "signs"),
    [
        (INNER.format(""), ["NEVER_RUN"]),
        (INNER.format("    check()\n"), []),
        (INNER.format("    run(check)\n"), []),
        (INNER.format("    def other():\n        check()\n"), ["NEVER_RUN"]),
        (f"{PLAIN}\ntest_a = lambda: None\n", ["NO_CHECK"]),
        (f"{PLAIN}\ndef passes(): pass\n\ntest_a = passes\n", ["NO_CHECK"]),
        (f"{PLAIN}\ntest_a = None\n", ["REMOVED"]),
        (f"{PLAIN}\ndel test_a\n", ["REMOVED"]),
        (f"{PLAIN}\ntest_a.__test__ = False\n", ["REMOVED"]),
        (f"__test__ = False\n{PLAIN}", ["REMOVED"]),
        (f"{PLAIN}\ntest_a = pytest.mark.skip(test_a)\n", ["SKIPPED"]),
        (f"{PLAIN}\ntest_a = pytest.mark.skip(reason='x')(test_a)\n", ["SKIPPED"]),
        (f"{PLAIN}\ntest_a = pytest.mark.slow(test_a)\n", []),
        (f"{PLAIN}\n\ndef test_a():\n    pass\n", ["NO_CHECK"]),
        (PLAIN.replace("test_a()", "test_a(double=lambda n: n + n)"), ["SHADOWED"]),
        (PLAIN.replace("test_a()", "test_a(*, double=lambda n: n + n)"), ["SHADOWED"]),
        (PLAIN.replace("    assert", "    double = lambda n: n + n\n    assert"), ["SHADOWED"]),
        (PLAIN.replace("    assert", "    def double(n): return n + n\n    assert"), ["SHADOWED"]),
        (PLAIN.replace("test_a()", "test_a(expected=4)").replace("== 4", "== expected"), []),
    ],
)
def test_check_that_cannot_fail_is_weaker(after: str, signs: list[str]) -> None:
    assert [found for *_, made in changes(PLAIN, after) for found in made] == signs


@pytest.mark.parametrize("source", [b"def test_(:\n", b"\0", b"\xff\xfe", b"(" * 5000, b""])
def test_invalid_python_has_no_tests(source: bytes) -> None:
    assert read_tests(source) == {}
    assert [found.name for found in changed_tests({"a.py": b"def test_a(): pass"}, {"a.py": source})] == ["test_a"]


@pytest.mark.parametrize("levels", [80, 500, 5_000])
@pytest.mark.parametrize("deep", ["x{}", "{}x", "x{} + x"], ids=["attributes", "nots", "sum"])
def test_deep_expressions_do_not_crash(deep: str, levels: int) -> None:
    word = {"x{}": ".a", "{}x": "not ", "x{} + x": " + x"}[deep]
    before = f"def test_a():\n    assert {deep.format(word * levels)}\n"
    after = before.replace("assert ", "assert y or ")
    found = changed_tests({"test_a.py": before.encode()}, {"test_a.py": after.encode()})
    read = [(changed.name, signs_of(changed)) for changed in found]
    # Source that is too deep to parse safely is ignored.
    assert read == ([("test_a", ())] if levels < 100 else [])
    assert levels < 100 or mutants_of("a.py", before.encode(), {2}) == []
