"""Where the code comes from that a project's tests import, and what follows for copies: a copy has to test its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.pytest import Collected
from swarm_tui.errors import UsageError
from swarm_tui.model.text import plain

_NAMED = 3


def import_roots(collected: Collected, top: Path) -> tuple[str, ...]:
    """Return the folders of the repository that its modules are imported from without pytest's help.

    Those stand on the interpreter's own path (an editable install, PYTHONPATH), or were found by an import hook
    (the other kind of editable install). In a copy of the repository they would lead back to the user's checkout.
    """
    prefix = os.path.realpath(collected.prefix) if collected.prefix else ""
    # `python -m pytest` puts the folder it is started in on the path, and an agent's own call of pytest does not.
    started_in = {os.path.realpath(entry) for entry in collected.startup_path[:1]}
    by_pytest = {os.path.realpath(entry) for entry in collected.path} - started_in
    hooked = [place for place in collected.loaded.values() if os.path.realpath(place) not in by_pytest]
    installed = [str(folder) for folder, _ in _installed_sources(collected, top)]
    roots: dict[str, None] = {}
    for entry in [*collected.startup_path[1:], *hooked, *installed]:
        path = os.path.realpath(entry)
        is_venv = prefix.startswith(str(top)) and (path == prefix or path.startswith(prefix + os.sep))
        if Path(path).is_relative_to(top) and not is_venv and "site-packages" not in Path(path).parts:
            roots[path_below(Path(path), top) or "."] = None
    return tuple(roots)


def path_below(path: Path, top: Path) -> str:
    """Return a folder relative to the top of the repository; "" for the top itself, and for folders outside."""
    if not path.is_relative_to(top) or path == top:
        return ""
    return path.relative_to(top).as_posix()


def refuse_foreign_code(repository: Repository, collected: Collected, python_in_copy: str, setup: str | None) -> None:
    """Raise UsageError when agents' copies would test code that is not theirs, and nothing prepares them."""
    if setup:
        return  # the first copy shows what the command makes of it
    top = repository.root.resolve()
    built = {name: os.path.relpath(path, top) for name, path in collected.compiled.items()}
    tracked = set(repository.run("ls-files", "-z", "--", *built.values()).fields) if built else set()
    missing = sorted(name for name, path in built.items() if path not in tracked)
    if missing:
        raise UsageError(
            f"{_listed(missing)}: compiled into your checkout, and in no fresh copy of it",
            "give --setup with the command that builds it, such as 'pip install --no-deps --editable .'",
        )
    whole = sorted(name for _, name in _installed_sources(collected, top, is_compiled=True))
    if whole:
        raise UsageError(
            f"the tests run against {_listed(whole)} as installed in {collected.prefix}, not against the checkout",
            "install it editable, or give --setup with the command that installs each copy and --python with its venv",
        )
    if python_in_copy and python_in_copy not in set(repository.run("ls-files", "-z", "--", python_in_copy).fields):
        raise UsageError(
            f"a fresh copy has no {plain(python_in_copy, 200)}", "give --setup with the command that makes it"
        )


def _installed_sources(collected: Collected, top: Path, *, is_compiled: bool = False) -> Iterator[tuple[Path, str]]:
    """Yield the `src` folders whose packages were loaded from where packages are installed, and the packages' names.

    Those with compiled modules cannot be imported from their sources.
    """
    root = collected.root.resolve()
    places = dict.fromkeys(folder for folder in (root, *root.parents) if folder.is_relative_to(top))
    for source in (place / "src" for place in places):
        for name in collected.installed:
            is_there = (source / name / "__init__.py").is_file() or (source / f"{name}.py").is_file()
            if is_there and (name in collected.installed_compiled) == is_compiled:
                yield source, name


def _listed(names: list[str]) -> str:
    shown = ", ".join(plain(name, 100) for name in names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"
