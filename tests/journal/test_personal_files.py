"""The user's last visit to a sweep is saved outside of the sweep."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.user_files import SEEN_FILES_KEPT, LastVisit, read_seen, state_folder, write_seen


@pytest.fixture
def folder(tmp_path: Path) -> SweepFolder:
    (tmp_path / "sweep").mkdir()
    return SweepFolder(tmp_path / "sweep")


def test_last_visit_is_saved(folder: SweepFolder, tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert read_seen(state, folder) is None
    assert write_seen(state, folder, LastVisit(7, 100.5))
    assert read_seen(state, folder) == (7, 100.5)
    (tmp_path / "link").symlink_to(folder.root)
    assert read_seen(state, SweepFolder(tmp_path / "link")) == (7, 100.5)
    assert list(folder.root.iterdir()) == []


def test_last_visit_of_several_rooms_is_latest(folder: SweepFolder, tmp_path: Path) -> None:
    write_seen(tmp_path, folder, LastVisit(7, 100.0))
    write_seen(tmp_path, folder, LastVisit(5, 200.0))
    assert read_seen(tmp_path, folder) == (7, 200.0)
    write_seen(tmp_path, folder, LastVisit(9, 150.0))
    assert read_seen(tmp_path, folder) == (9, 150.0)


def test_last_visit_is_separate_for_each_sweep(folder: SweepFolder, tmp_path: Path) -> None:
    write_seen(tmp_path, folder, LastVisit(7, 100.0))
    (tmp_path / "other").mkdir()
    assert read_seen(tmp_path, SweepFolder(tmp_path / "other")) is None
    folder.root.rename(tmp_path / "gone")
    folder.root.mkdir()
    assert read_seen(tmp_path, folder) is None


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "{}", "7", '{"seq": "x", "at": 1}', '{"seq": -1, "at": 1}', '{"seq": 1, "at": NaN}'),
        *('{"seq": 1, "at": 1e300}', '{"seq": 1e999, "at": 1}', "[" * 100_000, "\x00", "\xff"),
    ],
)
def test_invalid_visit_file_returns_none(folder: SweepFolder, tmp_path: Path, content: str) -> None:
    write_seen(tmp_path, folder, LastVisit(7, 100.0))
    (path,) = (tmp_path / "seen").iterdir()
    path.write_bytes(content.encode("latin-1"))
    assert read_seen(tmp_path, folder) is None
    assert write_seen(tmp_path, folder, LastVisit(8, 100.0))
    assert json.loads(path.read_text())["seq"] == 8


def test_unwritable_state_folder_returns_false(folder: SweepFolder, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not write_seen(tmp_path / "file", folder, LastVisit(7, 100.0))


def test_oldest_visits_are_removed(folder: SweepFolder, tmp_path: Path) -> None:
    (tmp_path / "seen").mkdir()
    for number in range(SEEN_FILES_KEPT + 5):
        (tmp_path / "seen" / f"{number}.json").touch()
    write_seen(tmp_path, folder, LastVisit(7, 100.0))
    assert len(list((tmp_path / "seen").iterdir())) == SEEN_FILES_KEPT + 1


def test_state_folder_comes_from_environment() -> None:
    assert state_folder({"XDG_STATE_HOME": "/s"}) == Path("/s/swarm-tui")
