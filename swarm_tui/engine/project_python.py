"""Which Python runs a project's tests: the one that a person names, else the environment that its tool has made."""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from swarm_tui.adapters.process import run_process
from swarm_tui.errors import AdapterError, UsageError
from swarm_tui.model.text import plain
from swarm_tui.regular_file import read_regular

_VENV_NAMES: Final = (".venv", "venv", ".env", "env")
_ASK_TIMEOUT: Final = 60.0
# Tools that keep environments elsewhere, each with its file or table of pyproject.toml, and how it is asked.
_TOOLS: Final[Sequence[tuple[str, tuple[str, ...], tuple[str, ...]]]] = (
    ("poetry", ("poetry.lock",), ("poetry", "env", "info", "--executable")),
    ("hatch", ("hatch.toml",), ("hatch", "env", "find", "hatch-test")),
    ("hatch", ("hatch.toml",), ("hatch", "env", "find")),
    ("pdm", ("pdm.lock",), ("pdm", "info", "--python")),
    ("pipenv", ("Pipfile",), ("pipenv", "--py")),
)


def named_python(python: str, folder: Path, top: Path) -> tuple[str, str]:
    """Return the Python that --python names, and its path in a copy when it is named relative to the project.

    `.venv/bin/python` means the copy's own; an absolute path, or a name on PATH, is the same for all copies.
    """
    word = os.path.expanduser(python)
    is_relative = os.sep in word and not os.path.isabs(word)
    path = shutil.which(os.path.join(folder, word) if is_relative else word)
    if path is None:
        raise UsageError(f"--python names {plain(python, 200)}, which is no program", "give the path of a Python")
    path = os.path.normpath(os.path.abspath(path))
    in_copy = os.path.relpath(path, top) if is_relative else ""
    return path, "" if in_copy.startswith(os.pardir) else in_copy


async def find_pythons(top: Path, folder: Path) -> AsyncIterator[str]:
    """Yield the project's interpreter: its environment, else the active one; without any, those that may do."""
    for path in _environments(top, folder):
        # An environment without pytest is an error: another interpreter must not be used in its place.
        yield path
        return
    for place in dict.fromkeys((folder, top)):
        managed = await _ask_tools(place) or _of_sessions(place)
        if managed:
            yield managed
            return
    for name in ("python3", "python"):
        found = shutil.which(name)
        if found:
            yield os.path.abspath(found)
    yield sys.executable


def _environments(top: Path, folder: Path) -> Iterator[str]:
    """Yield the Pythons of the environments that are written down or lie in the project, then of the active one."""
    for place in dict.fromkeys((folder, top)):
        named = os.environ.get("UV_PROJECT_ENVIRONMENT")
        for name in (*([named] if named else []), *_VENV_NAMES):
            yield from _python_in(place / name)
        chosen = place / ".pdm-python"
        if chosen.is_file():
            path = read_regular(chosen).decode(errors="replace").strip()
            if os.path.isabs(path) and os.access(path, os.X_OK):
                yield path
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        # Conda's own environment is always active, and is nobody's project.
        if os.environ.get(name) and (name == "VIRTUAL_ENV" or os.environ.get("CONDA_DEFAULT_ENV") != "base"):
            yield from _python_in(Path(os.environ[name]))


def _python_in(environment: Path) -> Iterator[str]:
    if (environment / "bin" / "python").exists():
        yield str(environment / "bin" / "python")


async def _ask_tools(place: Path) -> str | None:
    """Return what the tool that the project is managed by says of its environment."""
    tables = _tool_tables(place / "pyproject.toml")
    for tool, files, words in _TOOLS:
        is_used = tool in tables or any((place / name).exists() for name in files)
        if not is_used or shutil.which(tool) is None:
            continue
        try:
            finished = await run_process(words, cwd=place, timeout=_ASK_TIMEOUT)
        except AdapterError:
            continue
        for line in finished.text.splitlines() if finished.code == 0 else ():
            path = Path(line.strip())
            if path.is_absolute() and path.is_file():
                return str(path)
            if path.is_absolute() and _has_pytest(path):
                return str(path / "bin" / "python")
    return None


def _tool_tables(file: Path) -> Mapping[str, Any]:
    try:
        tables = tomllib.loads(read_regular(file).decode()).get("tool", {})
    except (OSError, ValueError):
        return {}
    return tables if isinstance(tables, dict) else {}


def _of_sessions(place: Path) -> str | None:
    """Return the newest environment with pytest that tox or nox has made."""
    found = [path for name in (".tox", ".nox") for path in place.glob(f"{name}/*") if _has_pytest(path)]
    newest = max(found, key=lambda path: path.stat().st_mtime, default=None)
    return str(newest / "bin" / "python") if newest else None


def _has_pytest(environment: Path) -> bool:
    is_python = (environment / "bin" / "python").exists()
    return is_python and any(environment.glob("lib/python*/site-packages/pytest/__init__.py"))
