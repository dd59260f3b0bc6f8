"""Finds the modules of a process that were imported from a folder. Python 3.6, the standard library only."""

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any

from .report import QUIETLY


def root_of(config: Any) -> str:
    """Return pytest's rootdir."""
    return str(getattr(config, "rootpath", None) or config.rootdir)


def modules_inside(folder: Any, left_out: Any, tests: Any = ()) -> Any:
    """Return {module: its import root} for modules inside a folder, but not inside the folder's venv.

    A submodule is included only if it is not in its package's own folder, as for parts of namespace packages and for
    compiled modules in other folders.
    """
    outside = [os.path.realpath(path) for path in (sys.prefix, sys.base_prefix)]
    found: Any = {}
    for name, path in sorted(_named_files()):
        if name == "__main__" or name.split(".")[0] == "swarm_live" or name.split(".")[-1] == "conftest":
            continue
        if path in tests or not _is_below(path, folder) or "site-packages" in path.split(os.sep):
            continue
        if any(_is_below(path, left) for left in left_out):
            continue
        # A venv is often inside the project, but a project may also be inside the folder of its interpreter.
        if any(_is_below(path, other) and not _is_below(folder, other) for other in outside):
            continue
        found[name] = _begin_of(name, path)
    return {name: begin for name, begin in found.items() if found.get(name.rpartition(".")[0]) != begin}


def files_inside(folder: Any) -> Any:
    """Return the files of all modules inside a folder."""
    return {path for _, path in _named_files() if _is_below(path, folder)}


def compiled_inside(folder: Any) -> Any:
    """Return {compiled module: its file} for modules inside a folder, but not among installed packages."""
    compiled = {name: path for name, path in _named_files() if path.endswith(tuple(EXTENSION_SUFFIXES))}
    return {
        name: path
        for name, path in compiled.items()
        if _is_below(path, folder) and "site-packages" not in path.split(os.sep)
    }


def installed_modules(endings: Any = ("",)) -> Any:
    """Return the top-level names of modules from installed packages whose files have one of these endings."""
    return sorted(
        {
            name.split(".")[0]
            for name, path in _named_files()
            if "site-packages" in path.split(os.sep) and path.endswith(tuple(endings))
        }
    )


def _named_files() -> Any:
    """Return the name and the file of each module that has a file.

    Packages may add a module to sys.modules under other names, and objects that are not modules.
    """
    found = []
    for key, module in list(sys.modules.items()):
        path = _file_of(module)
        if path:
            name = key
            with QUIETLY:
                name = key if key == "__main__" else getattr(module.__spec__, "name", None) or key
            found.append((str(name), path))
    return found


def is_written_by_build(name: str, repository: Any, copy: Any) -> bool:
    """Return whether a build generated a module in the checkout, so that a fresh copy does not have it."""
    path = _file_of(sys.modules.get(name)) or ""
    if not path.endswith(".py") or os.path.exists(os.path.join(copy, os.path.relpath(path, repository))):
        return False
    with open(path, "rb") as file:
        return b"generated" in file.read(300).lower() or name.split(".")[-1].strip("_") == "version"


def _file_of(module: Any) -> Any:
    """Return the file of a module; None for built-in modules and namespace packages."""
    try:
        path = getattr(module, "__file__", None)
        return os.path.realpath(path) if isinstance(path, str) and path else None
    except Exception:
        return None


def _begin_of(name: str, path: str) -> str:
    """Return the import root of a module: for `a.b` in /x/a/b.py it is /x."""
    folder, file = os.path.split(path)
    if file.split(".")[0] == "__init__":
        folder = os.path.dirname(folder)
    for part in reversed(name.split(".")[:-1]):
        if os.path.basename(folder) != part:
            break
        folder = os.path.dirname(folder)
    return folder


def _is_below(path: Any, folder: Any) -> bool:
    return bool(path == folder or path.startswith(folder.rstrip(os.sep) + os.sep))
