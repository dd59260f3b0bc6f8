"""Read the pulled files of an agent: only regular files inside its folder, limited in number and size."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict

from swarm_tui.files import read_regular
from swarm_tui.journal.folder import SweepFolder

USED_FILE: Final = "used.json"
"""The file name in the folder of an agent's pulled work."""
USED_LIMIT: Final = 4_000_000


class UsedCode(BaseModel):
    """Code and files used by one run of a test. Paths are relative to the top of the repository."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    outcome: str = ""
    functions: Mapping[str, tuple[int, ...]] = {}
    """The first lines of called functions, by file."""
    loaded: frozenset[str] = frozenset()
    """The files of imported modules."""
    opened: frozenset[str] = frozenset()
    """Other opened files."""
    has_programs: bool = False
    """Whether the test started programs, whose code and files are not recorded."""
    is_whole: bool = True
    """Whether opened files were recorded, which requires Python 3.8."""

    @property
    def is_green(self) -> bool:
        return self.outcome in ("passed", "xfailed", "xpassed")


FILES_LIMIT: Final = 1_000
DEPTH_LIMIT: Final = 8


class PulledFile(NamedTuple):
    """One pulled file of an agent."""

    name: str
    """Its path inside the agent's folder, with slashes."""
    path: Path
    size: int

    @property
    def is_hidden(self) -> bool:
        """Whether its name or the name of a parent folder starts with a dot."""
        return any(part.startswith(".") for part in self.name.split("/"))


class Content(NamedTuple):
    """The content of a file, possibly truncated."""

    raw: bytes
    is_cut: bool


def list_files(folder: Path, limit: int = FILES_LIMIT) -> list[PulledFile]:
    """Return the regular files below a folder, sorted by name. Links and devices are ignored."""
    files = []
    for file in _walk(folder, "", 0):
        files.append(file)
        if len(files) >= limit:
            break
    return sorted(files)


def read_start(path: Path, limit: int) -> Content | None:
    """Return the start of a regular file, or None if it cannot be read."""
    return _read(path, limit, is_tail=False)


def read_end(path: Path, limit: int) -> Content | None:
    """Return the end of a regular file, from the start of a line, or None if it cannot be read."""
    content = _read(path, limit, is_tail=True)
    if content is None or not content.is_cut:
        return content
    return Content(content.raw.partition(b"\n")[2], True)


def _walk(folder: Path, prefix: str, depth: int) -> Iterator[PulledFile]:
    try:
        with os.scandir(folder) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.is_symlink():
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth < DEPTH_LIMIT:
                yield from _walk(Path(entry.path), f"{prefix}{entry.name}/", depth + 1)
        elif entry.is_file(follow_symlinks=False):
            yield PulledFile(prefix + entry.name, Path(entry.path), entry.stat(follow_symlinks=False).st_size)


def _read(path: Path, limit: int, *, is_tail: bool) -> Content | None:
    try:
        # Do not block on a pipe, and do not follow a link out of the folder.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as file:
        if is_tail and status.st_size > limit:
            file.seek(status.st_size - limit)
        return Content(file.read(limit), status.st_size > limit)


def read_used_code(folder: SweepFolder, agent: str) -> UsedCode | None:
    """Return the code that an agent's test used in its last run, or None if unknown."""
    try:
        path = Path(folder.agent(agent)) / USED_FILE
        if path.stat().st_size > USED_LIMIT:
            return None
        return UsedCode.model_validate_json(read_regular(path))
    except (OSError, ValueError):
        return None
