"""What is known of a project of the field before a sweep goes over it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.git_project import GitProject

TOOL_TIMEOUT: Final = 900.0


@dataclass(frozen=True)
class KnownBug:
    """A line that is wrong, and what it has to be."""

    file: str
    right: str
    wrong: str


@dataclass(frozen=True)
class FieldProject:
    """A project, the bug in it, and what each test of the sweep has to come to."""

    name: str
    habit: str
    """What is special about it."""
    make: Callable[[Path], ReadyProject]
    """Makes it in an empty folder, installed into an environment of its own."""
    bug: KnownBug
    results: Mapping[str, str]
    """The result of each test, by node id."""
    arguments: tuple[str, ...]
    """Those of pytest: they choose the tests of the sweep."""
    options: tuple[str, ...] = ()
    """Those of `swarm-tui run`."""
    folder: str = ""
    """Where the sweep is begun, from the top of the repository."""
    is_quick: bool = False
    """Whether CI tries it."""
    is_part_of_pytest: bool = False
    """Whether pytest itself runs by its code, so that no run of its tests measures a fix."""


@dataclass(frozen=True)
class ReadyProject:
    """A project that was made."""

    repository: GitProject
    python: str
    """Its interpreter."""
    watched: tuple[Path, ...] = field(default=())
    """Folders outside of the repository in which nothing may change either: its environment."""


def call(*words: str | Path, folder: Path | None = None) -> str:
    """Run a program of the preparation to its end; what it prints is shown only when it fails."""
    done = subprocess.run(
        [str(word) for word in words], cwd=folder, capture_output=True, text=True, timeout=TOOL_TIMEOUT
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def write_record(folder: Path, bug: KnownBug, test: str) -> None:
    """Write the work of an offline agent that puts the bug right."""
    steps = [
        {"run": "as it is"},
        {"edit": bug.file, "old": bug.wrong, "new": bug.right},
        {"run": "with the fix"},
        {"commit": "FIX_IMPL", "message": "Put it right", "summary": "One line was wrong."},
    ]
    lines = [f"test = {json.dumps(test)}"]
    for step in steps:
        lines += ["[[step]]", *(f"{key} = {json.dumps(value)}" for key, value in step.items())]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mend.toml").write_text("\n".join(lines) + "\n")


_IDS: Final = """
import json, sys, pytest
class Ids:
    def pytest_collection_finish(self, session):
        with open(sys.argv[1], "w") as file:
            json.dump([item.nodeid for item in session.items], file)
pytest.main(["--collect-only", "-p", "no:swarm_live", *sys.argv[2:]], plugins=[Ids()])
"""


def ids_by_pytest(python: str, folder: Path, arguments: tuple[str, ...], scratch: Path) -> list[str]:
    """Return the tests that pytest itself finds, without anything of ours."""
    target = scratch / "ids.json"
    # As `python -m pytest` does.
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n{_IDS}"
    call(python, "-c", code, target, *arguments, folder=folder)
    ids: list[str] = json.loads(target.read_text())
    return ids


def base_python() -> str:
    """Return the interpreter that environments are made with."""
    return getattr(sys, "_base_executable", sys.executable)
