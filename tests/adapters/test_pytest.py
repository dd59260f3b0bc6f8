"""The word by which pytest is told of one test."""

from __future__ import annotations

import pytest

from swarm_tui.adapters.pytest import pytest_argument


@pytest.mark.parametrize(
    ("test", "file", "folder", "argument"),
    [
        ("tests/test_a.py::TestB::test_c[x]", "tests/test_a.py", "", "tests/test_a.py::TestB::test_c[x]"),
        ("tests/test_a.py::test_c", "tests/test_a.py", "tests", "test_a.py::test_c"),
        ("tests/test_a.py::test_c", "tests/test_a.py", "other/deep", "../../tests/test_a.py::test_c"),
        # pytest's rootdir is `tests`, so node ids begin there; the command line never does.
        ("test_a.py::test_c", "tests/test_a.py", "", "tests/test_a.py::test_c"),
        ("test_a.py::test_c", "tests/test_a.py", "tests", "test_a.py::test_c"),
        ("-odd/test_a.py::test_c", "-odd/test_a.py", "", "./-odd/test_a.py::test_c"),
        ("tests/-a_test.py::test_c", "tests/-a_test.py", "tests", "./-a_test.py::test_c"),
        ("tests/test_a.py::test_c[a::b[-p]]", "tests/test_a.py", "tests", "test_a.py::test_c[a::b[-p]]"),
        ("tests/test_a.py", "tests/test_a.py", "", "tests/test_a.py"),
        ("tests/test_a.py::test_c", "", "tests", "tests/test_a.py::test_c"),
        ("-odd/test_a.py::test_c", "", "", "./-odd/test_a.py::test_c"),
    ],
)
def test_argument_of_test_is_relative_and_no_option(test: str, file: str, folder: str, argument: str) -> None:
    assert pytest_argument(test, file, folder) == argument
