"""Copy the user's working tree, and list the project's files that git ignores."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git.checkouts import borrow_objects, copy_tags
from swarm_tui.adapters.git.repository import Repository
from swarm_tui.errors import SwarmError

_LARGEST_FILE: Final = 50_000_000
_LARGEST_SUM: Final = 500_000_000
"""Bytes of untracked files, without compiled modules."""
_MOST_FILES: Final = 20_000
_COMPILED: Final = (".so", ".pyd", ".dylib")
_OF_TOOLS: Final = re.compile(
    r"(^|/)(\.?venv|env|node_modules|__pycache__|\.git|\.tox|\.nox|\.eggs|\.idea|\.vscode|\.DS_Store|htmlcov|\.coverage.*"
    r"|\.swarm|\.test_output|\.hypothesis|\.\w+_cache|[^/]*\.egg-info|[^/]*\.py[co]|[^/]*\.log|\.env\.local)(/|$)"
)


def copy_working_tree(repository: Repository, folder: Path) -> None:
    """Copy the checkout as it is now into a new repository at the same commit.

    Copy uncommitted, untracked and ignored files, but not files of tools (environments, caches), nested repositories,
    and very large untracked files.
    """
    head = repository.head()
    copy = borrow_objects(repository, folder, [repository.common_directory.absolute() / "objects"])
    copy.run("update-ref", "--no-deref", "HEAD", head)
    copy.run("read-tree", head, timeout=600)
    copy_tags(repository, copy)
    try:
        for path in repository.run("ls-files", "-z", "--cached").fields:
            _copy_tracked(repository.root / path, folder / path)
        left = _LARGEST_SUM
        for path in itertools.islice(_untracked_files(repository), _MOST_FILES):
            size = _size_of(repository.root / path)
            if size <= min(_LARGEST_FILE, left) or path.endswith(_COMPILED):
                left -= 0 if path.endswith(_COMPILED) else size
                _copy(repository.root / path, folder / path)
        # Otherwise git would report every file as changed.
        copy.run("update-index", "-q", "--refresh", codes=(0, 1), timeout=600)
    except OSError as error:
        why = error.strerror or str(error)
        raise SwarmError(f"cannot copy the checkout to {folder.parent}: {why}", "free some space there") from None


def ignored_files(repository: Repository, *paths: str) -> list[str]:
    """Return the ignored files of the checkout, or below paths of it. Folders end with a slash."""
    words = ("--others", "--ignored", "--exclude-standard", "--directory", "--", *paths)
    return repository.run("ls-files", "-z", *words, codes=(0, 128)).fields


def ignored_project_files(repository: Repository) -> list[str]:
    """Return the ignored files of the checkout, without files of tools. Folders end with a slash."""
    return [path for path in ignored_files(repository) if not _OF_TOOLS.search(path)]


def files_below(repository: Repository, path: str) -> Iterator[str]:
    """Yield the project's untracked files in a folder, or the file itself, from the top."""
    top = str(repository.root)
    start = os.path.join(top, path)
    if not os.path.isdir(start) or os.path.islink(start):
        yield path
        return
    for folder, names, files in os.walk(start):
        if any(name in (".git", "pyvenv.cfg", "conda-meta") for name in (*names, *files)):
            names.clear()
            continue
        below = os.path.relpath(folder, top)
        names[:] = sorted(name for name in names if not _OF_TOOLS.search(f"{below}/{name}/"))
        yield from (f"{below}/{name}" for name in sorted(files) if not _OF_TOOLS.search(f"{below}/{name}"))
        yield from (f"{below}/{name}" for name in names if os.path.islink(os.path.join(folder, name)))


def _untracked_files(repository: Repository) -> Iterator[str]:
    # Paths that end with a slash are nested repositories, which are not part of the project.
    untracked = repository.run("ls-files", "-z", "--others", "--exclude-standard").fields
    yield from (path for path in untracked if not path.endswith("/") and not _OF_TOOLS.search(path))
    for path in ignored_project_files(repository):
        yield from files_below(repository, path)


def _size_of(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _copy_tracked(source: Path, target: Path) -> None:
    if source.is_dir() and not source.is_symlink():
        # A submodule.
        skipped = shutil.ignore_patterns(".git", "__pycache__", "node_modules", ".venv")
        shutil.copytree(source, target, symlinks=True, ignore=skipped, copy_function=_copy, dirs_exist_ok=True)
        return
    _copy(source, target)


def _copy(source: Path | str, target: Path | str) -> None:
    """Copy a regular file or a link. Skip missing, unreadable and other files."""
    try:
        mode = os.lstat(source).st_mode
    except OSError:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        shutil.copy2(source, target, follow_symlinks=False)
    except (PermissionError, FileNotFoundError):
        return
