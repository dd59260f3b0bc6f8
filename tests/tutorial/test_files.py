"""Reading of tutorials and tests, and errors of unreadable files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swarm_tui.errors import UsageError
from swarm_tui.tutorial.citations import BrokenFile, TestFile
from swarm_tui.tutorial.read import read_blocks, read_tests


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "is empty"), (b"\n \n", "is empty"), (b"# words\n", "no blocks in"), (b"a\nb\xff\n", ":2 is not UTF-8")],
)
def test_empty_tutorial_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "tutorial.sh"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=words):
        read_blocks(path)


def test_tutorial_that_is_not_a_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="file not found"):
        read_blocks(tmp_path / "missing.sh")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(UsageError, match="is not a file"):
            read_blocks(path)
    with pytest.raises(UsageError, match="cannot read"):
        read_blocks(Path("a" * 5000))


def test_tests_are_read_in_path_order(tmp_path: Path) -> None:
    for name in ("b/test_b.py", "test_a.py", "c_test.py", "helper.py", ".hidden/test_h.py", "venv/test_v.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"def test_{path.stem}(): ...\n")
    (tmp_path / "test_bad.py").write_text("def (\n")
    found = list(read_tests(tmp_path))
    assert [file.tests[0].file for file in found if isinstance(file, TestFile)] == [
        str(tmp_path / name) for name in ("b/test_b.py", "c_test.py", "test_a.py")
    ]
    assert [Path(file.file).name for file in found if isinstance(file, BrokenFile)] == ["test_bad.py"]


def test_single_test_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "anything.py").write_text("def test_a(): ...\n")
    (file,) = read_tests(tmp_path / "anything.py")
    assert isinstance(file, TestFile)
    assert file.tests[0].name == "test_a"


def test_missing_folder_and_dangling_link_are_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not found"):
        list(read_tests(tmp_path / "missing"))
    (tmp_path / "test_gone.py").symlink_to(tmp_path / "gone.py")
    (found,) = read_tests(tmp_path)
    assert isinstance(found, BrokenFile)
