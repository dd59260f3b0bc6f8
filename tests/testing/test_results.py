"""The cache of test outcomes: what two processes write, what is torn, and what is removed when it grows."""

from __future__ import annotations

import os
from pathlib import Path

from swarm_tui.testing.results import ResultCache

TREE, OTHER_TREE = "a" * 40, "b" * 40


def test_what_one_process_adds_the_other_finds_without_opening_anew(tmp_path: Path) -> None:
    one, other = ResultCache(tmp_path / "tests", "key"), ResultCache(tmp_path / "tests", "key")
    assert other.outcomes(TREE) == {}
    one.add(TREE, {"t.py::a": "passed", "t.py::b": "failed"})
    other.add(TREE, {"t.py::c": "skipped"})
    expected = {"t.py::a": "passed", "t.py::b": "failed", "t.py::c": "skipped"}
    assert one.outcomes(TREE) == other.outcomes(TREE) == expected
    assert one.outcomes(OTHER_TREE) == {}


def test_outcomes_belong_to_the_way_in_which_tests_were_run(tmp_path: Path) -> None:
    ResultCache(tmp_path, "with xdist").add(TREE, {"t.py::a": "passed"})
    assert ResultCache(tmp_path, "without").outcomes(TREE) == {}
    assert ResultCache(tmp_path, "with xdist").outcomes(TREE) == {"t.py::a": "passed"}


def test_broken_and_torn_lines_cost_only_themselves(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path, "key")
    cache.add(TREE, {"t.py::a": "passed"})
    with (tmp_path / f"{TREE}.jsonl").open("ab") as file:
        file.write(b'\xff\n[]\n{"how": "key"}\n{"how": "key", "test": "t.py::torn"')
    cache.add(TREE, {"t.py::b": "failed"})
    assert ResultCache(tmp_path, "key").outcomes(TREE) == {"t.py::a": "passed", "t.py::b": "failed"}


def test_the_oldest_results_make_room_for_new_ones(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path, "key", max_bytes=300)
    trees = [str(number) * 40 for number in range(8)]
    for number, tree in enumerate(trees):
        cache.add(tree, {"t.py::a": "passed"})
        os.utime(tmp_path / f"{tree}.jsonl", (number, number))
    kept = ResultCache(tmp_path, "key")
    assert [bool(kept.outcomes(tree)) for tree in trees] == [False] * 6 + [True] * 2
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 300


def test_results_that_cannot_be_written_are_kept_for_this_process(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file" / "tests", None):
        cache = ResultCache(folder, "key")
        cache.add(TREE, {"t.py::a": "passed"})
        assert cache.outcomes(TREE) == {"t.py::a": "passed"}
