"""Which modules of a process come from a folder. Python 3.6, the standard library only."""

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any


def root_of(config: Any) -> str:
    """Return pytest's rootdir."""
    return str(getattr(config, "rootpath", None) or config.rootdir)


def modules_inside(folder: Any, left_out: Any, tests: Any = ()) -> Any:
    """Return {module: the folder that its name begins in} for modules that lie in a folder, but not in its venv.

    A module below a package is named only where it does not come from the package's own folder: of a namespace
    package every part is, and a compiled module that lies apart.
    """
    outside = [os.path.realpath(path) for path in (sys.prefix, sys.base_prefix)]
    found: Any = {}
    for name, module in sorted(list(sys.modules.items())):
        if name == "__main__" or name.split(".")[0] == "swarm_live" or name.split(".")[-1] == "conftest":
            continue
        path = _file_of(module)
        if not path or path in tests or not _is_below(path, folder) or "site-packages" in path.split(os.sep):
            continue
        if any(_is_below(path, left) for left in left_out):
            continue
        # A venv often lies in the project, but a project may also lie in the folder of its interpreter.
        if any(_is_below(path, other) and not _is_below(folder, other) for other in outside):
            continue
        found[name] = _begin_of(name, path)
    return {name: begin for name, begin in found.items() if found.get(name.rpartition(".")[0]) != begin}


def files_inside(folder: Any) -> Any:
    """Return the files of all modules that lie in a folder."""
    found = {_file_of(module) for module in list(sys.modules.values())}
    return {path for path in found if path and _is_below(path, folder)}


def compiled_inside(folder: Any) -> Any:
    """Return {compiled module: its file} for those that lie in a folder, but not where packages are installed."""
    found = {}
    for name, module in list(sys.modules.items()):
        path = _file_of(module)
        if not path or not _is_below(path, folder) or "site-packages" in path.split(os.sep):
            continue
        if path.endswith(tuple(EXTENSION_SUFFIXES)):
            found[name] = path
    return found


def is_written_by_build(name: str, repository: Any, copy: Any) -> bool:
    """Return whether a module was generated in the checkout, as versions are, so that a fresh copy cannot have it."""
    path = _file_of(sys.modules[name])
    if not path.endswith(".py") or os.path.exists(os.path.join(copy, os.path.relpath(path, repository))):
        return False
    with open(path, "rb") as file:
        return b"generated" in file.read(300).lower() or name.split(".")[-1].strip("_") == "version"


def _file_of(module: Any) -> Any:
    """Return the file of a module; None for what is built in, and for namespace packages, which have none."""
    try:
        path = getattr(module, "__file__", None)
        return os.path.realpath(path) if isinstance(path, str) and path else None
    except Exception:
        return None


def _begin_of(name: str, path: str) -> str:
    """Return the folder in which the name of a module begins: for `a.b` in /x/a/b.py it is /x."""
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
