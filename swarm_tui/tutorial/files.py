"""Reads a tutorial and the test files of a folder; an error names the reason why one cannot be read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from swarm_tui.errors import UsageError
from swarm_tui.regular_file import read_regular
from swarm_tui.tutorial.blocks import Block, parse_blocks
from swarm_tui.tutorial.citations import BrokenFile, TestFile, find_tests

TEST_FILE_PATTERNS: Final = ("test_*.py", "*_test.py")
_SKIPPED_FOLDERS: Final = frozenset({"__pycache__", "node_modules", "venv"})
_LARGEST_BYTES: Final = 64 * 1024 * 1024


def read_blocks(path: Path) -> tuple[Block, ...]:
    """Return the blocks of a tutorial; raise UsageError when it has none."""
    text = read_text(path)
    blocks = parse_blocks(text)
    if not blocks:
        raise UsageError(f"{path} has no block", "a block is a run of lines of which at least one is no comment")
    return blocks


def read_tests(folder: Path, *, with_source: bool = False) -> Iterator[TestFile | BrokenFile]:
    """Return the tests of every test file in a folder (or of one file), in the order of their paths."""
    if not folder.exists():
        raise UsageError(f"there is no {folder}", "give the folder of the tests that cite the tutorial")
    for path in [folder] if folder.is_file() else _test_files(folder):
        try:
            source = _read_bytes(path)
        except UsageError as error:
            yield BrokenFile(str(path), 1, error.message)
        else:
            yield find_tests(source, str(path), with_source=with_source)


def _test_files(folder: Path) -> list[Path]:
    found: list[Path] = []
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS and not name.startswith("."))
        found += [Path(root) / name for name in names if any(fnmatch(name, each) for each in TEST_FILE_PATTERNS)]
    return sorted(found)


def read_text(path: Path) -> str:
    """Return the text of a tutorial; raise UsageError when it is empty or cannot be read."""
    content = _read_bytes(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line} is not UTF-8", "save the file as UTF-8") from error
    if not text.strip():
        raise UsageError(f"{path} is empty", "a tutorial is a shell script of blocks with empty lines between them")
    return text


def _read_bytes(path: Path) -> bytes:
    try:
        if not path.exists():
            raise UsageError(f"there is no file {path}")
        if not path.is_file():
            raise UsageError(f"{path} is not a file")
        if path.stat().st_size > _LARGEST_BYTES:
            raise UsageError(f"{path} is larger than {_LARGEST_BYTES // 1024**2} MiB")
        return read_regular(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read", getattr(error, "strerror", None) or str(error)) from error
