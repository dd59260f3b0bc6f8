"""What mngr and Claude Code record in the user's home folder for each copy of a repository, and its removal."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import stat
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from swarm_tui.agents.types import HomeLeftovers
from swarm_tui.files import read_regular, replacing
from swarm_tui.model.formatting import counted

_CONFIG: Final = ".claude.json"
_LOCK_PATIENCE: Final = 2.0
_STALE_LOCK: Final = 10.0
"""Claude Code renews its lock, a folder, more often than this."""
_ATTEMPTS: Final = 3
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_IN_USE: Final = "another program is changing it, so entries stay; run `swarm-tui clean` again"
_TAP_KEY: Final = b"meta+q"
"""mngr adds this key to keybindings.json for all agents."""


class _NotChanged(Exception):
    """The file is left as it is, for this reason."""


class _ChangedMeanwhile(Exception):
    """Another program has written the file."""


def find_leftovers(copies: Sequence[str], environment: Mapping[str, str]) -> HomeLeftovers:
    """Return what is recorded for these copies."""
    roots = _roots(copies)
    if not roots:
        return HomeLeftovers()
    removable = []
    for config in _configs(environment):
        try:
            number = len(_entries(_text(config), roots))
        except _NotChanged:
            removable.append(f"entries in {config}")
        else:
            removable += [f"{counted(number, 'entry', 'entries')} in {config}"] if number else []
    for parent in _folders(environment):
        number = len(_folders_of(parent, roots))
        removable += [f"{counted(number, 'folder')} in {parent}"] if number else []
    kept = [*_kept(environment), *_preserved(copies, environment)]
    return HomeLeftovers(tuple(removable), tuple(kept))


def remove_leftovers(copies: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Remove what is recorded for those of these copies that no longer exist; return the problems."""
    roots = _roots([copy for copy in copies if not os.path.lexists(copy)])
    if not roots:
        return []
    problems = []
    for config in _configs(environment):
        try:
            _remove_entries(config, roots)
        except _NotChanged as error:
            problems.append(f"entries in {config}: {error}")
        except OSError as error:
            problems.append(f"entries in {config}: {error.strerror or error}")
    for parent in _folders(environment):
        for folder in _folders_of(parent, roots):
            try:
                shutil.rmtree(folder)
            except OSError as error:
                problems.append(f"{error.filename or folder}: {error.strerror or error}")
    return problems


def _roots(copies: Sequence[str]) -> tuple[str, ...]:
    """Return the paths of the copies, also with symbolic links resolved: mngr and Claude Code record those."""
    paths = [path for copy in copies if os.path.isabs(copy) for path in (copy, os.path.realpath(copy))]
    return tuple(dict.fromkeys(os.path.normpath(path) for path in paths))


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or Path.home())


def _configured(environment: Mapping[str, str]) -> list[Path]:
    folder = environment.get("CLAUDE_CONFIG_DIR")
    return [Path(folder).expanduser()] if folder else []


def _configs(environment: Mapping[str, str]) -> list[Path]:
    folders = (_home(environment), *_configured(environment))
    return [path for folder in folders if (path := folder / _CONFIG).is_file()]


def _folders(environment: Mapping[str, str]) -> list[Path]:
    """Return the folders in which Claude Code creates one folder for each working directory."""
    home = _home(environment)
    settings = (home / ".claude", *_configured(environment))
    caches = (Path(environment.get("XDG_CACHE_HOME") or home / ".cache"), home / "Library/Caches")
    found = [*(folder / "projects" for folder in settings), *(folder / "claude-cli-nodejs" for folder in caches)]
    return [folder for folder in dict.fromkeys(found) if folder.is_dir()]


def _folders_of(parent: Path, roots: Sequence[str]) -> list[Path]:
    """Return the folders of working directories in the copies; Claude Code replaces most characters with hyphens."""
    names = {re.sub(r"[^A-Za-z0-9]", "-", root) for root in roots}
    try:
        found = [entry for entry in os.scandir(parent) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(Path(entry.path) for entry in found if _is_inside(entry.name, names, "-"))


def _is_inside(path: str, roots: Collection[str], separator: str) -> bool:
    while path and path not in roots:
        path = path.rpartition(separator)[0]
    return bool(path)


def _kept(environment: Mapping[str, str]) -> list[str]:
    """Return the files with settings that mngr changed for all agents, and its backups."""
    kept = [f"{backup} (mngr's backup)" for config in _configs(environment) if (backup := _beside(config)).is_file()]
    for folder in (_home(environment) / ".claude", *_configured(environment)):
        keys = folder / "keybindings.json"
        with contextlib.suppress(OSError):
            if _TAP_KEY in read_regular(keys):
                kept.append(f"{keys} (mngr added the key meta+q)")
    return kept


def _beside(config: Path) -> Path:
    return config.with_name(f"{config.name}.bak")


def _preserved(copies: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return the folder to which mngr copies the transcripts of agents that it destroys."""
    host_dir = environment.get("MNGR_HOST_DIR")
    folder = Path(host_dir or "/nowhere") / "preserved"
    is_used = folder.is_dir() or any(os.path.lexists(copy) for copy in copies)
    return [f"{folder} (mngr copies transcripts of destroyed agents to it)"] if host_dir and is_used else []


def _remove_entries(config: Path, roots: Sequence[str]) -> None:
    target = config.resolve()
    with _locked(config):
        for _ in range(_ATTEMPTS):
            before = _text(config)
            entries = _entries(before, roots)
            if not entries:
                return
            if target.stat().st_uid != os.geteuid():
                raise _NotChanged("the file belongs to another user")
            with contextlib.suppress(_ChangedMeanwhile), replacing(target) as draft:
                draft.write(_without(before, entries).encode())
                # Claude Code also writes without a lock.
                if _text(config) != before:
                    raise _ChangedMeanwhile
            if not _entries(_text(config), roots):
                return
    raise _NotChanged(_IN_USE)


def _text(config: Path) -> str:
    try:
        return read_regular(config).decode()
    except UnicodeDecodeError:
        raise _NotChanged("the file is not valid JSON; remove them yourself") from None
    except OSError as error:
        raise _NotChanged(error.strerror or str(error)) from None


class _Member(NamedTuple):
    """A key of a JSON object, with the positions of the key, of its value, and of the end."""

    key: str
    start: int
    value: int
    end: int


def _entries(text: str, roots: Sequence[str]) -> list[str]:
    """Return the keys of `projects` that are paths in the copies."""
    content = _parsed(text, roots)
    projects = content.get("projects") if isinstance(content, dict) else None
    if not isinstance(projects, dict):
        return []
    known = frozenset(roots)
    return [key for key in projects if _is_inside(key, known, "/")]


def _parsed(text: str, roots: Sequence[str]) -> Any:
    try:
        return json.loads(text, parse_constant=_reject)
    except (ValueError, RecursionError):
        if any(json.dumps(root)[1:-1] in text or root in text for root in roots):
            raise _NotChanged("the file is not valid JSON; remove them yourself") from None
        return None


def _reject(constant: str) -> None:
    raise ValueError(constant)


def _without(text: str, keys: Sequence[str]) -> str:
    """Return the text of a JSON object without these keys of `projects`; every other character stays."""
    start = _after_space(text, 0)
    projects = next(member for member in reversed(_members(text, start)) if member.key == "projects")
    members = _members(text, projects.value)
    removed = frozenset(keys)
    kept = [index for index, member in enumerate(members) if member.key not in removed]
    if not kept:
        return f"{text[: projects.value]}{{}}{text[projects.end :]}"
    parts: list[str] = []
    for index in kept:
        if parts:
            parts.append(text[members[index - 1].end : members[index].start])
        parts.append(text[members[index].start : members[index].end])
    return text[: members[0].start] + "".join(parts) + text[members[-1].end :]


def _members(text: str, at: int) -> list[_Member]:
    """Return the members of the object at a position of valid JSON."""
    decoder = json.JSONDecoder()
    members = []
    position = _after_space(text, at + 1)
    while text[position] != "}":
        key, end_of_key = decoder.raw_decode(text, position)
        value = _after_space(text, _after_space(text, end_of_key) + 1)
        end = decoder.raw_decode(text, value)[1]
        members.append(_Member(key, position, value, end))
        position = _after_space(text, end)
        if text[position] == ",":
            position = _after_space(text, position + 1)
    return members


def _after_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found is not None else position


@contextlib.contextmanager
def _locked(config: Path) -> Iterator[None]:
    """Hold mngr's lock of the file, if there is one; raise _NotChanged while another program has a lock."""
    try:
        descriptor = os.open(f"{config}.lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError:
        yield
        return
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISDIR(status.st_mode):
            _wait_for_lock(descriptor)
        elif time.time() - status.st_mtime < _STALE_LOCK:
            raise _NotChanged(_IN_USE)
        yield
    finally:
        os.close(descriptor)


def _wait_for_lock(descriptor: int) -> None:
    deadline = time.monotonic() + _LOCK_PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise _NotChanged(_IN_USE) from None
            time.sleep(0.05)
        else:
            return
