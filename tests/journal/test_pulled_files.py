"""Reading pulled files stays in the agent's folder, never blocks and limits memory."""

import os
from pathlib import Path

from swarm_tui.journal.pulled_files import list_files, read_end, read_start


def test_links_pipes_and_deep_folders_are_ignored(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("not yours")
    folder = tmp_path / "agent"
    (folder / "a/b").mkdir(parents=True)
    (folder / "a/b/file.txt").write_text("inside")
    (folder / "link.txt").symlink_to(secret)
    (folder / "folder").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.txt")
    deep = folder.joinpath(*["d"] * 20)
    deep.mkdir(parents=True)
    (deep / "deep.txt").write_text("x")
    assert [file.name for file in list_files(folder)] == ["a/b/file.txt"]
    assert read_start(folder / "link.txt", 100) is None
    assert read_start(folder / "pipe.txt", 100) is None
    assert read_start(folder / "missing", 100) is None


def test_hidden_files_are_marked(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("sub/b.txt", "a.txt", ".hidden", "sub/.hidden"):
        (tmp_path / name).touch()
    (tmp_path / "loop").symlink_to(tmp_path)
    assert [(file.name, file.is_hidden) for file in list_files(tmp_path)] == [
        (".hidden", True),
        ("a.txt", False),
        ("sub/.hidden", True),
        ("sub/b.txt", False),
    ]
    assert list_files(tmp_path / "none") == []


def test_list_files_respects_limit(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number:02}").touch()
    assert len(list_files(tmp_path, limit=10)) == 10


def test_large_file_is_read_from_start_or_end(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("first line\nsecond line\nthird line\n")
    start, end = read_start(file, 5), read_end(file, 16)
    assert start is not None
    assert (start.raw, start.is_cut) == (b"first", True)
    assert end is not None
    assert (end.raw, end.is_cut) == (b"third line\n", True)
    whole = read_end(file, 1000)
    assert whole is not None
    assert not whole.is_cut
