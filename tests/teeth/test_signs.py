"""What the source of an edited test says of it, on the sixty edits."""

from __future__ import annotations

import pytest

from swarm_tui.model.teeth import SignKind
from swarm_tui.teeth.mutants import faults_in
from swarm_tui.teeth.signs import signs_of
from swarm_tui.teeth.sources import changed_tests, read_tests
from tests.teeth.edits import EDITS, Edit, file_of_tests

SKIPPED, XFAIL, LOOSENED, WIDENED = SignKind.SKIPPED, SignKind.XFAIL, SignKind.LOOSENED, SignKind.WIDENED
EXPECTED = {
    "skipped": [SKIPPED],
    "skipped_inside": [SKIPPED, SignKind.NEVER_RUN],
    "expected_to_fail": [XFAIL],
    "swallowed": [SignKind.SWALLOWED],
    "nothing_left": [SignKind.NO_CHECK],
    "one_of_three_left": [SignKind.LOST] * 2,
    "equal_became_in": [LOOSENED],
    "equal_became_true": [LOOSENED],
    "equal_became_not_none": [LOOSENED],
    "tolerance": [WIDENED],
    "difference": [WIDENED],
    "bound": [WIDENED],
    "any_exception": [SignKind.BROADER],
    "compared_with_itself": [SignKind.EMPTY],
    "alternative": [LOOSENED],
    "only_if": [SignKind.CONDITIONAL],
    "fewer_cases": [SignKind.CASES],
    "gone": [SignKind.REMOVED],
    # Honest edits that only a measurement clears.
    "two_in_one": [SignKind.LOST],
    "cases_made": [SignKind.LOST] * 2,
    "cases_written_out": [SignKind.CASES],
    "double_assert": [SignKind.LOST],
    "whole_log": [SignKind.LOST] * 2,
}


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.name)
def test_the_source_tells_how_a_test_was_weakened(edit: Edit) -> None:
    before = {"test_stock.py": file_of_tests(is_after=False, edits=(edit,)).encode()}
    after = {"test_stock.py": file_of_tests(is_after=True, edits=(edit,)).encode()}
    signs = [sign.kind for changed in changed_tests(before, after) for sign in signs_of(changed)]
    assert signs == EXPECTED.get(edit.name, [])
    assert bool(signs) or not edit.is_weakening or edit.is_only_measured


def changes(before: str, after: str) -> list[tuple[str, str, list[str]]]:
    """Return the changed tests: the name as it was and as it is, and the signs."""
    return [
        (found.before.name if found.before else "", found.after.name if found.after else "",
         [sign.kind.name for sign in signs_of(found)])
        for found in changed_tests({"test_a.py": before.encode()}, {"test_a.py": after.encode()})
    ]  # fmt: skip


def test_a_test_that_was_moved_or_only_renamed_is_no_change() -> None:
    assert changes("def test_a():\n    assert f(1) == 2\n", "x = 1\n\ndef test_b():\n    assert f(1) == 2\n") == []


def test_a_test_changes_with_what_it_uses_of_its_file() -> None:
    before = "LIMIT = 3\ndef check(x):\n    assert x < LIMIT\ndef test_a():\n    check(1)\n"
    assert changes(before, before.replace("x < LIMIT", "x")) == [("test_a", "test_a", ["LOOSENED"])]
    assert changes(before, before.replace("LIMIT = 3", "LIMIT = 4")) == [("test_a", "test_a", [])]
    assert changes(before, "OTHER = 5\n" + before) == []


def test_marks_of_a_class_and_of_the_file_count() -> None:
    before = "class TestA:\n    def test_a(self):\n        assert f() == 1\n"
    assert changes(before, "@pytest.mark.skip\n" + before) == [("TestA::test_a", "TestA::test_a", ["SKIPPED"])]
    marked = "pytestmark = [pytest.mark.skipif(True, reason='')]\n" + before
    assert changes(before, marked) == [("TestA::test_a", "TestA::test_a", ["SKIPPED"])]


def test_two_tests_put_together_are_followed_by_the_one() -> None:
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
def test_calls_that_check_are_compared_too(before: str, after: str, signs: list[str]) -> None:
    source = "def test_a(self):\n    {}\n"
    assert changes(source.format(before), source.format(after)) == [("test_a", "test_a", signs)]


@pytest.mark.parametrize("source", [b"def test_(:\n", b"\0", b"\xff\xfe", b"(" * 5000, b""])
def test_a_file_that_is_no_python_has_no_tests(source: bytes) -> None:
    assert read_tests(source) == {}
    assert [found.name for found in changed_tests({"a.py": b"def test_a(): pass"}, {"a.py": source})] == ["test_a"]


@pytest.mark.parametrize("levels", [80, 500, 5_000])
@pytest.mark.parametrize("deep", ["x{}", "{}x", "x{} + x"], ids=["attributes", "nots", "sum"])
def test_expressions_of_any_depth_end_nobody_who_reads_them(deep: str, levels: int) -> None:
    word = {"x{}": ".a", "{}x": "not ", "x{} + x": " + x"}[deep]
    before = f"def test_a():\n    assert {deep.format(word * levels)}\n"
    after = before.replace("assert ", "assert y or ")
    found = changed_tests({"test_a.py": before.encode()}, {"test_a.py": after.encode()})
    read = [(changed.name, signs_of(changed)) for changed in found]
    # What is too deep to be read safely is passed over.
    assert read == ([("test_a", ())] if levels < 100 else [])
    assert levels < 100 or faults_in("a.py", before.encode(), {2}) == []
