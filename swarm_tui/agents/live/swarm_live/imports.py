"""Finds the modules of a process that were imported from a folder. Python 3.6, the standard library only."""

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any


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
    for key, module in sorted(list(sys.modules.items())):
        name = own_name(key, module)
        if key == "__main__" or name.split(".")[0] == "swarm_live" or name.split(".")[-1] == "conftest":
            continue
        path = _file_of(module)
        if not path or path in tests or not _is_below(path, folder) or "site-packages" in path.split(os.sep):
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
    found = {_file_of(module) for module in list(sys.modules.values())}
    return {path for path in found if path and _is_below(path, folder)}


def compiled_inside(folder: Any) -> Any:
    """Return {compiled module: its file} for modules inside a folder, but not among installed packages."""
    found = {}
    for name, module in list(sys.modules.items()):
        path = _file_of(module)
        if not path or not _is_below(path, folder) or "site-packages" in path.split(os.sep):
            continue
        if path.endswith(tuple(EXTENSION_SUFFIXES)):
            found[own_name(name, module)] = path
    return found


def own_name(key: str, module: Any) -> str:
    """Return the name that a module was imported as. Packages may add it to sys.modules under other names."""
    try:
        name = module.__spec__.name
    except Exception:
        return key
    return name if isinstance(name, str) and name else key


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
