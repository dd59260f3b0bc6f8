"""Splitting node ids, with any parameters and folder names."""

import pytest

from swarm_tui.model.spec import split_node_id


@pytest.mark.parametrize(
    ("test", "parts"),
    [
        ("tests/test_a.py::test_b", ("tests/test_a.py", "test_b")),
        ("tests/test_a.py::TestC::test_b", ("tests/test_a.py::TestC", "test_b")),
        ("tests/test_a.py::test_b[x::y-[z]]", ("tests/test_a.py", "test_b[x::y-[z]]")),
        ("te[s]ts/test_a.py::test_b[x]", ("te[s]ts/test_a.py", "test_b[x]")),
        ("test_b", ("", "test_b")),
        ("test_b[x]", ("", "test_b[x]")),
    ],
)
def test_split_node_id(test: str, parts: tuple[str, str]) -> None:
    assert split_node_id(test) == parts
