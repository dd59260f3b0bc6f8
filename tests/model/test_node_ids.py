"""Names of tests, whatever their parameters and folders are called."""

import pytest

from swarm_tui.model.node_ids import split_node_id


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
def test_an_id_is_split_at_its_name(test: str, parts: tuple[str, str]) -> None:
    assert split_node_id(test) == parts
