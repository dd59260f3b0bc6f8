"""Taking tests out of a file: with what belongs to them, and nothing else."""

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


def test_a_test_goes_with_its_decorators_and_comments() -> None:
    left = without_tests(SOURCE.encode(), ["test_first"])
    assert left is not None
    assert left.decode() == '"""Tests."""\n\nimport pytest\n' + SOURCE[SOURCE.index("\n\ndef test_second") :]


def test_a_method_goes_and_its_class_with_the_last_one() -> None:
    one = without_tests(SOURCE.encode(), ["TestThird::test_a"])
    assert one is not None
    assert names_in(one) == ["test_first", "test_second", "test_b"]
    both = without_tests(SOURCE.encode(), ["TestThird::test_a", "TestThird::test_b"])
    assert both is not None
    assert b"TestThird" not in both
    assert both.endswith(b"def test_second():\n    pass\n")


def test_a_file_without_any_test_left_goes() -> None:
    assert without_tests(b'"""Tests."""\nimport os\n\ndef test_a():\n    pass\n', ["test_a"]) is None


def test_what_others_may_use_stays() -> None:
    assert without_tests(b"HELPER = 1\n\ndef test_a():\n    pass\n", ["test_a"]) == b"HELPER = 1\n"


@pytest.mark.parametrize("names", [["test_other"], ["test_b"], []])
def test_a_name_that_is_not_there_changes_nothing(names: list[str]) -> None:
    assert without_tests(SOURCE.encode(), names) == SOURCE.encode()


@given(st.sets(st.sampled_from(["test_first", "test_second", "TestThird::test_a", "TestThird::test_b"]), max_size=3))
def test_exactly_the_named_tests_go_and_the_rest_is_python(gone: set[str]) -> None:
    left = without_tests(SOURCE.encode(), gone)
    assert left is not None
    everything = ["test_first", "test_second", "TestThird::test_a", "TestThird::test_b"]
    assert names_in(left) == [name.rpartition("::")[2] for name in everything if name not in gone]
