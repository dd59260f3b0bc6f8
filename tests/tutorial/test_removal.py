"""Removing tests from a file."""

from __future__ import annotations

import ast
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.sweep.tutorial_integrate import without_tests

SOURCE = textwrap.dedent('''\
    """Tests."""

    import pytest


    # what the first is for
    @pytest.mark.parametrize(
        "x", [1]
    )
    def test_first(x):
        assert x


    def test_second():
        pass


    class TestThird:
        async def test_a(self):
            pass

        def test_b(self):
            pass
''')


def names_in(source: bytes) -> list[str]:
    return [
        node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def test_test_is_removed_with_decorators_and_comments() -> None:
    left = without_tests(SOURCE.encode(), ["test_first"])
    assert left is not None
    assert left.decode() == '"""Tests."""\n\nimport pytest\n' + SOURCE[SOURCE.index("\n\ndef test_second") :]


def test_class_is_removed_with_last_method() -> None:
    one = without_tests(SOURCE.encode(), ["TestThird::test_a"])
    assert one is not None
    assert names_in(one) == ["test_first", "test_second", "test_b"]
    both = without_tests(SOURCE.encode(), ["TestThird::test_a", "TestThird::test_b"])
    assert both is not None
    assert b"TestThird" not in both
    assert both.endswith(b"def test_second():\n    pass\n")


def test_file_without_tests_is_removed() -> None:
    assert without_tests(b'"""Tests."""\nimport os\n\ndef test_a():\n    pass\n', ["test_a"]) is None


def test_helpers_are_kept() -> None:
    assert without_tests(b"HELPER = 1\n\ndef test_a():\n    pass\n", ["test_a"]) == b"HELPER = 1\n"


@pytest.mark.parametrize("names", [["test_other"], ["test_b"], []])
def test_unknown_name_changes_nothing(names: list[str]) -> None:
    assert without_tests(SOURCE.encode(), names) == SOURCE.encode()


@given(st.sets(st.sampled_from(["test_first", "test_second", "TestThird::test_a", "TestThird::test_b"]), max_size=3))
def test_only_named_tests_are_removed(gone: set[str]) -> None:
    left = without_tests(SOURCE.encode(), gone)
    assert left is not None
    everything = ["test_first", "test_second", "TestThird::test_a", "TestThird::test_b"]
    assert names_in(left) == [name.rpartition("::")[2] for name in everything if name not in gone]
