"""Reads a tutorial and its tests from a commit, where the work of agents is judged: never from a checkout."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import Final

from swarm_tui.adapters.git import Repository
from swarm_tui.tutorial.citations import BrokenFile, TestFile, find_tests
from swarm_tui.tutorial.files import TEST_FILE_PATTERNS

_FILE_MODES: Final = frozenset({"100644", "100755"})
_LARGEST_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CommittedTutorial:
    """A tutorial and the tests that may cite it, at one commit."""

    text: str | None
    """The text; None where it is missing, no plain file, or not UTF-8."""
    files: tuple[TestFile | BrokenFile, ...] = ()
    paths: tuple[str, ...] = ()
    """The path of each of these files."""


@dataclass(slots=True)
class CommittedTutorialReader:
    """Reads a tutorial and its tests from several commits; an unchanged file is parsed once."""

    repository: Repository
    tutorial: str
    """From the top of the repository, as the folder of tests is."""
    tests_folder: str = ""
    """Empty: only the tutorial is read."""
    _parsed: dict[tuple[str, str], TestFile | BrokenFile] = field(default_factory=dict)

    def read(self, tree: str) -> CommittedTutorial:
        """Return the tutorial and the tests of a commit or tree."""
        wanted = [self.tutorial, *([self.tests_folder] if self.tests_folder else [])]
        rows = self.repository.run("ls-tree", "-r", "-z", "--full-tree", tree, "--", *wanted).fields
        blobs: dict[str, str] = {}
        for row in rows:
            facts, _, path = row.partition("\t")
            mode, _, blob = facts.split(" ")
            if mode in _FILE_MODES:
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
        return content if len(content) <= _LARGEST_BYTES else b""
