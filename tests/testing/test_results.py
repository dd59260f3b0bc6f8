"""The cache of test results: concurrent processes, incomplete lines, and removal of old files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swarm_tui.testing.copies import ResultCache

TREE, OTHER_TREE = "a" * 40, "b" * 40


def test_results_of_other_process_are_found(tmp_path: Path) -> None:
    one, other = ResultCache(tmp_path / "tests", "key"), ResultCache(tmp_path / "tests", "key")
    assert other.outcomes(TREE) == {}
    one.add(TREE, {"t.py::a": "passed", "t.py::b": "failed"})
    other.add(TREE, {"t.py::c": "skipped"})
    expected = {"t.py::a": "passed", "t.py::b": "failed", "t.py::c": "skipped"}
    assert one.outcomes(TREE) == other.outcomes(TREE) == expected
    assert one.outcomes(OTHER_TREE) == {}


def test_results_with_other_settings_are_ignored(tmp_path: Path) -> None:
    ResultCache(tmp_path, "with xdist").add(TREE, {"t.py::a": "passed"})
    assert ResultCache(tmp_path, "without").outcomes(TREE) == {}
    assert ResultCache(tmp_path, "with xdist").outcomes(TREE) == {"t.py::a": "passed"}


def test_invalid_lines_do_not_affect_other_results(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path, "key")
    cache.add(TREE, {"t.py::a": "passed"})
    with (tmp_path / f"{TREE}.jsonl").open("ab") as file:
        file.write(b'\xff\n[]\n{"how": "key"}\n{"how": "key", "test": "t.py::torn"')
    cache.add(TREE, {"t.py::b": "failed"})
    assert ResultCache(tmp_path, "key").outcomes(TREE) == {"t.py::a": "passed", "t.py::b": "failed"}


@pytest.mark.parametrize(("max_bytes", "kept"), [(400, "012345"), (399, "345"), (201, "345"), (199, "45")])
def test_oldest_results_are_removed(tmp_path: Path, max_bytes: int, kept: str) -> None:
    for number in range(4):
        path = tmp_path / f"{number}.jsonl"
        path.write_bytes(b"." * 100)
        os.utime(path, (number, number))
    (tmp_path / "4.jsonl").write_bytes(b"")
    cache = ResultCache(tmp_path, "key", max_bytes)
    cache.add("4", {"t.py::a": "passed"})
    assert len(list(tmp_path.iterdir())) == 5, "only a file that is new makes room"
    (tmp_path / "4.jsonl").write_bytes(b"")
    cache.add("5", {"t.py::a": "passed"})
    assert sorted(path.stem for path in tmp_path.iterdir()) == list(kept)
    assert cache.outcomes("5") == {"t.py::a": "passed"}


def test_run_without_results_writes_no_file(tmp_path: Path) -> None:
    ResultCache(tmp_path / "tests", "key").add(TREE, {})
    assert list(tmp_path.iterdir()) == []


def test_unwritable_results_are_kept_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file" / "tests", None):
        cache = ResultCache(folder, "key")
        cache.add(TREE, {"t.py::a": "passed"})
        assert cache.outcomes(TREE) == {"t.py::a": "passed"}
