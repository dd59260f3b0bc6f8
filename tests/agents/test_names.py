"""Node ids that contain paths have the same name in every copy."""

from __future__ import annotations

import pytest

from swarm_tui.agents.live.swarm_live.names import as_here, as_there, short_name

CHECKOUT, COPY = "/home/ada/project", "/home/ada/.mngr/copies/1"
NAMES = [
    ("tests/test_a.py::test_x[{}/data/a b.txt]", True),
    ("tests/test_a.py::test_x[{}]", True),
    ("tests/test_a.py::test_x[{}::{}/b-1]", True),
    ("tests/test_a.py::test_x[file://{}/b]", True),
    ("tests/test_a.py::test_x[{}-old/b]", False),
    ("tests/test_a.py::test_x[{}.bak]", False),
    ("{}/tests/test_a.py::test_x", False),
    ("tests/test_a.py", False),
    ("-k", False),
]


@pytest.fixture(autouse=True)
def places(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.delenv("SWARM_COPY", raising=False)
    monkeypatch.setenv("SWARM_NAMED_IN", CHECKOUT)
    monkeypatch.setenv("MNGR_AGENT_WORK_DIR", COPY)
    return monkeypatch


@pytest.mark.parametrize(("name", "is_moved"), NAMES)
def test_checkout_path_is_translated_to_copy_and_back(name: str, is_moved: bool) -> None:
    there = name.format(CHECKOUT, CHECKOUT)
    here = name.format(COPY, COPY) if is_moved else there
    assert as_here(there) == here
    assert as_here(here) == here
    assert as_there(here) == as_there(there) == there


def test_copy_inside_checkout_is_not_translated(places: pytest.MonkeyPatch) -> None:
    places.setenv("SWARM_COPY", f"{CHECKOUT}/.copies/1")
    here = f"test_a.py::test_x[{CHECKOUT}/.copies/1/a.txt]"
    assert as_here(here) == as_here(f"test_a.py::test_x[{CHECKOUT}/a.txt]") == here
    assert as_there(here) == f"test_a.py::test_x[{CHECKOUT}/a.txt]"


def test_escaped_paths_in_ids_are_translated(places: pytest.MonkeyPatch) -> None:
    places.setenv("SWARM_NAMED_IN", "/home/ada/pröject")
    assert as_here("test_a.py::test_x[/home/ada/pr\\xf6ject/a.txt]") == f"test_a.py::test_x[{COPY}/a.txt]"
    assert as_there(f"test_a.py::test_x[{COPY}/a.txt]") == "test_a.py::test_x[/home/ada/pr\\xf6ject/a.txt]"


def test_short_checkout_path_is_a_name_in_copy(places: pytest.MonkeyPatch) -> None:
    places.setenv("SWARM_COPY", "/copies/" + "x" * 90)
    copy = "/copies/" + "x" * 90
    assert short_name(f"{copy}/a.txt") == f"{copy}/a.txt"
    assert short_name(f"{copy}/{'a' * 90}.txt") is None, "long there too"
    assert [short_name(value) for value in ("x" * 101, f"{CHECKOUT}/a.txt", 3, None)] == [None] * 4


def test_ids_are_unchanged_outside_of_copies(places: pytest.MonkeyPatch) -> None:
    places.delenv("SWARM_NAMED_IN")
    assert as_here(f"test_a.py::test_x[{CHECKOUT}]") == f"test_a.py::test_x[{CHECKOUT}]"
    assert as_there(f"test_a.py::test_x[{COPY}]") == f"test_a.py::test_x[{COPY}]"
