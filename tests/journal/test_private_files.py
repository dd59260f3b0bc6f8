"""Files of a sweep are private, and are replaced through temporary files that nobody can prepare."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from swarm_tui.files import replacing
from swarm_tui.hosts.program import write
from tests.sweep.scripted_sweep import QuickMngr, run_engine_on, scripted_sweep


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_of_a_sweep_are_private(tmp_path: Path) -> None:
    context = scripted_sweep(tmp_path, 2, QuickMngr(tmp_path / "mngr"))
    assert run_engine_on(context) == 0
    files = [path for path in context.folder.root.rglob("*") if path.is_file()]
    assert {"events.jsonl", "sweep.json", "testing_agent_outcome.json"} <= {path.name for path in files}
    assert [path.name for path in files if mode_of(path) & 0o077] == []


def test_replacing_is_private_and_leaves_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o644)
    names = set()
    for content in (b"one", b"two"):
        with replacing(path) as draft:
            draft.write(content)
            (name,) = set(os.listdir(tmp_path)) - {"file"}
            names.add(name)
            assert mode_of(tmp_path / name) == 0o600
    assert (path.read_text(), mode_of(path), os.listdir(tmp_path)) == ("two", 0o600, ["file"])
    assert len(names) == 2, "the name is predictable"


def test_replacing_keeps_the_file_after_an_error(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(BufferError), replacing(path) as draft:
        raise BufferError(draft.write(b"new"))
    assert (path.read_text(), os.listdir(tmp_path)) == ("old", ["file"])


def test_new_file_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with replacing(path, is_new=True) as draft:
        draft.write(b"one")
    with pytest.raises(FileExistsError), replacing(path, is_new=True) as draft:
        draft.write(b"two")
    assert (path.read_text(), os.listdir(tmp_path)) == ("one", ["file"])


def test_replacing_replaces_a_link(tmp_path: Path) -> None:
    (tmp_path / "others").write_text("theirs")
    (tmp_path / "file").symlink_to("others")
    with replacing(tmp_path / "file") as draft:
        draft.write(b"mine")
    assert (tmp_path / "others").read_text() == "theirs"
    assert not (tmp_path / "file").is_symlink()


def test_program_on_hosts_leaves_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "new/file"
    write(str(path), b"one", 0o640, None, False)
    assert (path.read_text(), mode_of(path)) == ("one", 0o640)
    with pytest.raises(FileExistsError):
        write(str(path), b"two", 0o640, None, True)
    assert (path.read_text(), os.listdir(path.parent)) == ("one", ["file"])
