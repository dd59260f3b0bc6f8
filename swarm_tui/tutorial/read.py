"""Read a tutorial from a folder or a commit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Final

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.trees import FILE_MODES
from swarm_tui.errors import UsageError
from swarm_tui.files import read_regular
from swarm_tui.tutorial.blocks import Block, parse_blocks
from swarm_tui.tutorial.citations import BrokenFile, TestFile, find_tests

TEST_FILE_PATTERNS: Final = ("test_*.py", "*_test.py")
_SKIPPED_FOLDERS: Final = frozenset({"__pycache__", "node_modules", "venv"})
_LARGEST_FILE: Final = 64 * 1024 * 1024


def read_blocks(path: Path) -> tuple[Block, ...]:
    """Return the blocks of a tutorial; raise UsageError if there are none."""
    text = read_text(path)
    blocks = parse_blocks(text)
    if not blocks:
        raise UsageError(f"no blocks in {path}", "add commands: a block is a group of lines with at least one command")
    return blocks


def read_tests(folder: Path, *, with_source: bool = False) -> Iterator[TestFile | BrokenFile]:
    """Return the tests of all test files in a folder, or of a single file, sorted by path."""
    if not folder.exists():
        raise UsageError(f"not found: {folder}", "name the folder with the tests that cite the tutorial")
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
    """Return the text of a tutorial; raise UsageError if it is empty or unreadable."""
    content = _read_bytes(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line} is not UTF-8", "save the file as UTF-8") from error
    if not text.strip():
        raise UsageError(f"{path} is empty", "write a shell script of blocks, separated by empty lines")
    return text


def _read_bytes(path: Path) -> bytes:
    try:
        if not path.exists():
            raise UsageError(f"file not found: {path}")
        if not path.is_file():
            raise UsageError(f"{path} is not a file")
        if path.stat().st_size > _LARGEST_FILE:
            raise UsageError(f"{path} is larger than {_LARGEST_FILE // 1024**2} MiB")
        return read_regular(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', None) or str(error)}") from error


@dataclass(frozen=True, slots=True)
class CommittedTutorial:
    """A tutorial and its tests at a commit."""

    text: str | None
    """The text; None if the file is missing, not a regular file, or not UTF-8."""
    files: tuple[TestFile | BrokenFile, ...] = ()
    paths: tuple[str, ...] = ()
    """The paths of the test files."""


@dataclass(slots=True)
class CommittedTutorialReader:
    """Reads a tutorial and its tests from several commits; parses unchanged files once."""

    repository: Repository
    tutorial: str
    """The path from the root of the repository."""
    tests_folder: str = ""
    """The path from the root of the repository; empty to read only the tutorial."""
    _parsed: dict[tuple[str, str], TestFile | BrokenFile] = field(default_factory=dict)

    def read(self, tree: str) -> CommittedTutorial:
        """Return the tutorial and the tests of a commit or tree."""
        wanted = [self.tutorial, *([self.tests_folder] if self.tests_folder else [])]
        rows = self.repository.run("ls-tree", "-r", "-z", "--full-tree", tree, "--", *wanted).fields
        blobs: dict[str, str] = {}
        for row in rows:
            facts, _, path = row.partition("\t")
            mode, _, blob = facts.split(" ")
            if mode in FILE_MODES:
                blobs[path] = blob
        text = self._text(blobs.get(self.tutorial))
        paths = tuple(path for path in sorted(blobs) if self._is_test_file(path))
        return CommittedTutorial(text, tuple(self._tests(path, blobs[path]) for path in paths), paths)

    def source(self, tree: str, path: str) -> bytes:
        return self.repository.run("cat-file", "blob", f"{tree}:{path}").stdout

    def _is_test_file(self, path: str) -> bool:
        name = PurePosixPath(path).name
        is_below = path == self.tests_folder or path.startswith(f"{self.tests_folder}/") or self.tests_folder == "."
        return bool(self.tests_folder) and is_below and any(fnmatch(name, each) for each in TEST_FILE_PATTERNS)

    def _text(self, blob: str | None) -> str | None:
        if blob is None:
            return None
        try:
            return self._content(blob).decode("utf-8-sig")
        except UnicodeDecodeError:
            return None

    def _tests(self, path: str, blob: str) -> TestFile | BrokenFile:
        known = self._parsed.get((path, blob))
        if known is None:
            known = self._parsed[path, blob] = find_tests(self._content(blob), path)
        return known

    def _content(self, blob: str) -> bytes:
        content = self.repository.run("cat-file", "blob", blob).stdout
        return content if len(content) <= _LARGEST_FILE else b""
