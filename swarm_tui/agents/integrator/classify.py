"""Decide for each commit of an agent whether it is squashed with the tests and docs or shown apart as a fix.

When in doubt it is shown apart: then a person looks at it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from swarm_tui.model.commit_kinds import kinds_of
from swarm_tui.model.outcome import ChangeKind
from swarm_tui.model.text import plain

SQUASH_PREFIX: Final = "[TEST/DOC]"

_DOC_SUFFIXES: Final = frozenset({".md", ".rst", ".adoc", ".txt"})
_DOC_FOLDERS: Final = frozenset({"doc", "docs", "tutorial", "tutorials"})
_TEST_FOLDERS: Final = frozenset({"test", "tests", "__snapshots__"})


@dataclass(frozen=True, slots=True)
class Classification:
    """Whether a commit is a fix; the note says what was wrong about its declared kind, and is "" when nothing was."""

    is_fix: bool
    note: str = ""


def is_test_or_doc(path: str, test_files: Collection[str] = (), tutorial: str = "") -> bool:
    """Return whether a file is a test, belongs to the tests, or is documentation."""
    place = PurePosixPath(path)
    name, folders = place.name, {part.lower() for part in place.parts[:-1]}
    is_test = (
        path in test_files
        or name == "conftest.py"
        or name.startswith("test_")
        or place.stem.endswith("_test")
        or bool(folders & _TEST_FOLDERS)
    )
    is_tutorial = path == tutorial or place.stem.lower() == "tutorial"
    return is_test or is_tutorial or place.suffix.lower() in _DOC_SUFFIXES or bool(folders & _DOC_FOLDERS)


def classify_commit(
    message: str, paths: Iterable[str], *, test_files: Collection[str] = (), tutorial: str = ""
) -> Classification:
    """Classify a commit by the kinds that its message declares and by the files that it changes."""
    kinds = kinds_of(message)
    code = [path for path in paths if not is_test_or_doc(path, test_files, tutorial)]
    if kinds == (ChangeKind.FIX_IMPL,):
        return Classification(is_fix=True)
    if len(kinds) == 1 and not code:
        return Classification(is_fix=False)
    named = " and ".join(kind.value for kind in kinds)
    if ChangeKind.FIX_IMPL in kinds or code:
        changed = f"changes {plain(code[0], 100)}" if code else "mixes kinds"
        problem = f"says {named} but {changed}" if kinds else f"names no kind and {changed}"
        return Classification(is_fix=True, note=f"{problem}: shown apart as a fix")
    problem = f"mixes {named}" if kinds else "names no kind"
    return Classification(is_fix=False, note=f"{problem}, and changes tests and docs only: squashed")
