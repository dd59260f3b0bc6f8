"""What a person has seen of a sweep is kept outside of it, and never in anybody's way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.personal_files import SEEN_FILES_KEPT, SeenUpTo, read_seen, state_folder, write_seen


@pytest.fixture
def folder(tmp_path: Path) -> SweepFolder:
    (tmp_path / "sweep").mkdir()
    return SweepFolder(tmp_path / "sweep")


def test_what_was_seen_is_known_the_next_time(folder: SweepFolder, tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert read_seen(state, folder) is None
    assert write_seen(state, folder, SeenUpTo(7, 100.5))
    assert read_seen(state, folder) == (7, 100.5)
    (tmp_path / "link").symlink_to(folder.root)
    assert read_seen(state, SweepFolder(tmp_path / "link")) == (7, 100.5)
    assert list(folder.root.iterdir()) == []


def test_of_several_rooms_the_one_that_has_seen_most_counts(folder: SweepFolder, tmp_path: Path) -> None:
    write_seen(tmp_path, folder, SeenUpTo(7, 100.0))
    write_seen(tmp_path, folder, SeenUpTo(5, 200.0))
    assert read_seen(tmp_path, folder) == (7, 200.0)
    write_seen(tmp_path, folder, SeenUpTo(9, 150.0))
    assert read_seen(tmp_path, folder) == (9, 150.0)


def test_each_sweep_has_its_own_also_one_that_replaces_another(folder: SweepFolder, tmp_path: Path) -> None:
    write_seen(tmp_path, folder, SeenUpTo(7, 100.0))
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
def test_a_broken_file_is_as_none(folder: SweepFolder, tmp_path: Path, content: str) -> None:
    write_seen(tmp_path, folder, SeenUpTo(7, 100.0))
    (path,) = (tmp_path / "seen").iterdir()
    path.write_bytes(content.encode("latin-1"))
    assert read_seen(tmp_path, folder) is None
    assert write_seen(tmp_path, folder, SeenUpTo(8, 100.0))
    assert json.loads(path.read_text())["seq"] == 8


def test_a_place_that_cannot_be_written_is_said_and_no_error(folder: SweepFolder, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not write_seen(tmp_path / "file", folder, SeenUpTo(7, 100.0))


def test_the_oldest_are_forgotten(folder: SweepFolder, tmp_path: Path) -> None:
    (tmp_path / "seen").mkdir()
    for number in range(SEEN_FILES_KEPT + 5):
        (tmp_path / "seen" / f"{number}.json").touch()
    write_seen(tmp_path, folder, SeenUpTo(7, 100.0))
    assert len(list((tmp_path / "seen").iterdir())) == SEEN_FILES_KEPT + 1


def test_the_folder_is_that_of_the_environment() -> None:
    assert state_folder({"XDG_STATE_HOME": "/s"}) == Path("/s/swarm-tui")
