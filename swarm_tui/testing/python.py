"""Which Python runs the tests."""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.processes.run import run_process
from swarm_tui.adapters.pytest import Collected
from swarm_tui.adapters.python_env import activation, make_own_venv
from swarm_tui.errors import AdapterError, UsageError
from swarm_tui.files import read_regular
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.formatting import named
from swarm_tui.model.spec import LOCAL_HOST, SweepSpec
from swarm_tui.model.text import plain

_VENV = "venv"
_COMPILED = "compiled"


@dataclass(frozen=True, slots=True)
class AgentPython:
    """An interpreter and the variables that go with it."""

    path: str
    variables: dict[str, str]


def make_agent_python(spec: SweepSpec, folder: SweepFolder, agent_folder: Path, host: str) -> AgentPython:
    """Create an agent's own environment on top of the project's Python; on other hosts, use the Python as given."""
    if host != LOCAL_HOST or not spec.python:
        return AgentPython(spec.python, {})
    own = agent_folder.absolute()
    variables = {
        # Otherwise Python would write bytecode to the user's environment.
        "PYTHONPYCACHEPREFIX": str(folder.root.absolute() / _COMPILED),
        "GCOV_PREFIX": str(own / "gcov"),
    }
    if not os.path.isabs(spec.python):
        return AgentPython(spec.python, variables)
    try:
        python = make_own_venv(own / _VENV, spec.python)
    except (AdapterError, OSError):
        # Some Pythons cannot create virtual environments. The agent then uses the project's own.
        return AgentPython(spec.python, variables)
    return AgentPython(str(python), variables | activation(own / _VENV, os.environ))


def remove_agent_python(folder: SweepFolder, agent_folder: Path, work_dir: str) -> None:
    """Remove the environment, bytecode and coverage files of an agent that has finished."""
    for name in (_VENV, "gcov"):
        shutil.rmtree(agent_folder / name, ignore_errors=True)
    if os.path.isabs(work_dir):
        shutil.rmtree(folder.root / _COMPILED / work_dir.lstrip(os.sep), ignore_errors=True)


def folders_of_agent_pythons(folder: SweepFolder) -> list[Path]:
    """Return the existing environment and bytecode folders of a sweep's agents."""
    compiled = folder.root / _COMPILED
    return [*([compiled] if compiled.is_dir() else []), *folder.root.glob(f"agents/*/{_VENV}")]


def import_roots(collected: Collected, top: Path) -> tuple[str, ...]:
    """Return the folders of the repository from which modules are imported, except those that pytest adds.

    They are on the interpreter's path (editable installs, PYTHONPATH) or belong to an import hook (editable installs of
    setuptools). In a copy they would still be folders of the user's checkout.
    """
    # `python -m pytest` adds its working folder to the path, but the command `pytest` does not.
    started_in = {os.path.realpath(entry) for entry in collected.startup_path[:1]}
    by_pytest = {os.path.realpath(entry) for entry in collected.path} - started_in
    hooked = [place for place in collected.loaded.values() if os.path.realpath(place) not in by_pytest]
    installed = [str(folder) for folder, _ in _installed_sources(collected, top)]
    return roots_below([*collected.startup_path[1:], *hooked, *installed], top, collected.prefix)


def roots_below(places: Iterable[str], top: Path, prefix: str) -> tuple[str, ...]:
    """Return the folders inside the repository, relative to its top, that are not in the interpreter's environment."""
    prefix = os.path.realpath(prefix) if prefix else ""
    roots: dict[str, None] = {}
    for entry in places:
        path = os.path.realpath(entry)
        is_venv = prefix.startswith(str(top)) and (path == prefix or path.startswith(prefix + os.sep))
        if Path(path).is_relative_to(top) and not is_venv and "site-packages" not in Path(path).parts:
            roots[path_below(Path(path), top) or "."] = None
    return tuple(roots)


def path_below(path: Path, top: Path) -> str:
    """Return a folder relative to the top of the repository; "" for the top itself and for folders outside."""
    if not path.is_relative_to(top) or path == top:
        return ""
    return path.relative_to(top).as_posix()


def refuse_foreign_code(repository: Repository, collected: Collected, python_in_copy: str, setup: str | None) -> None:
    """Raise UsageError if tests in copies would run other code than the copy's and there is no set-up command."""
    if setup:
        return  # the preflight tests the command
    top = repository.root.resolve()
    built = {name: os.path.relpath(path, top) for name, path in collected.compiled.items()}
    tracked = set(repository.run("ls-files", "-z", "--", *built.values()).fields) if built else set()
    missing = sorted(name for name, path in built.items() if path not in tracked)
    if missing:
        raise UsageError(
            f"compiled modules of your checkout are missing in a fresh copy: {named(missing)}",
            "add --setup with the command that builds them, such as 'pip install --no-deps --editable .'",
        )
    whole = sorted(name for _, name in _installed_sources(collected, top, is_compiled=True))
    if whole:
        raise UsageError(
            f"the tests run against {named(whole)} as installed in {collected.prefix}, not against the checkout",
            "install it editable, or add --setup with a command that installs each copy, and --python with its venv",
        )
    if python_in_copy and python_in_copy not in set(repository.run("ls-files", "-z", "--", python_in_copy).fields):
        raise UsageError(
            f"a fresh copy has no {plain(python_in_copy, 200)}", "add --setup with the command that creates it"
        )


def _installed_sources(collected: Collected, top: Path, *, is_compiled: bool = False) -> Iterator[tuple[Path, str]]:
    """Yield the `src` folders of packages that were imported from an installed copy, and the packages' names.

    Packages with compiled modules cannot be imported from their sources.
    """
    root = collected.root.resolve()
    places = dict.fromkeys(folder for folder in (root, *root.parents) if folder.is_relative_to(top))
    for source in (place / "src" for place in places):
        for name in collected.installed:
            is_there = (source / name / "__init__.py").is_file() or (source / f"{name}.py").is_file()
            if is_there and (name in collected.installed_compiled) == is_compiled:
                yield source, name


_VENV_NAMES: Final = (".venv", "venv", ".env", "env")
_ASK_TIMEOUT: Final = 60.0
# Tools with environments outside of the project: name (also a table of pyproject.toml), files, command.
_TOOLS: Final[Sequence[tuple[str, tuple[str, ...], tuple[str, ...]]]] = (
    ("poetry", ("poetry.lock",), ("poetry", "env", "info", "--executable")),
    ("hatch", ("hatch.toml",), ("hatch", "env", "find", "hatch-test")),
    ("hatch", ("hatch.toml",), ("hatch", "env", "find")),
    ("pdm", ("pdm.lock",), ("pdm", "info", "--python")),
    ("pipenv", ("Pipfile",), ("pipenv", "--py")),
)


def named_python(python: str, folder: Path, top: Path) -> tuple[str, str]:
    """Return the Python of --python, and its path in a copy if it is relative to the project, else "".

    With `.venv/bin/python`, each copy has its own. An absolute path or a name on PATH is the same for all copies.
    """
    word = os.path.expanduser(python)
    is_relative = os.sep in word and not os.path.isabs(word)
    path = shutil.which(os.path.join(folder, word) if is_relative else word)
    if path is None:
        raise UsageError(f"--python {plain(python, 200)} is not a program", "use the path of a Python")
    path = os.path.normpath(os.path.abspath(path))
    in_copy = os.path.relpath(path, top) if is_relative else ""
    return path, "" if in_copy.startswith(os.pardir) else in_copy


async def find_pythons(top: Path, folder: Path) -> AsyncIterator[str]:
    """Yield the interpreter of the project's environment or of the active one; without both, the usual ones."""
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
    """Yield the Pythons of the project's environments, then of the active one."""
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
        # Conda's base environment is always active and belongs to no project.
        if os.environ.get(name) and (name == "VIRTUAL_ENV" or os.environ.get("CONDA_DEFAULT_ENV") != "base"):
            yield from _python_in(Path(os.environ[name]))


def _python_in(environment: Path) -> Iterator[str]:
    if (environment / "bin" / "python").exists():
        yield str(environment / "bin" / "python")


async def _ask_tools(place: Path) -> str | None:
    """Return the Python that the project's management tool reports."""
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
    """Return the Python of the newest tox or nox environment that has pytest."""
    found = [path for name in (".tox", ".nox") for path in place.glob(f"{name}/*") if _has_pytest(path)]
    newest = max(found, key=lambda path: path.stat().st_mtime, default=None)
    return str(newest / "bin" / "python") if newest else None


def _has_pytest(environment: Path) -> bool:
    is_python = (environment / "bin" / "python").exists()
    return is_python and any(environment.glob("lib/python*/site-packages/pytest/__init__.py"))
