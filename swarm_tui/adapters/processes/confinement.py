"""Run programs that may contain code of agents: with limits and, if the user wants it, confined by bwrap.

A confined program can read the system and the project's Python, and can write to its copy, an empty home and an
empty /tmp. It cannot see other files or processes. It has no network unless that is allowed.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from swarm_tui.adapters.processes.environment import project_environment
from swarm_tui.adapters.processes.group import how_to_get
from swarm_tui.adapters.processes.run import Finished, InheritedChannel, run_process, run_process_blocking
from swarm_tui.errors import AdapterError, ProgramMissing, UsageError
from swarm_tui.model.run_limits import PROCESS_LIMIT, Confinement
from swarm_tui.model.text import plain

BWRAP: Final = "bwrap"
_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu")
_EMPTY: Final = ("/tmp", "/var/tmp", "/run")
_EMPTY_BYTES: Final = 1 << 30
# Pythons of uv and pyenv, which a set-up can use.
_PYTHONS: Final = (".local/share/uv/python", ".pyenv")
_RESOLVER: Final = "/etc/resolv.conf"
# Addresses of servers of the user's session.
_DROPPED_NAMES: Final = (
    "SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "WAYLAND_DISPLAY", "DISPLAY",
    "XAUTHORITY", "DOCKER_HOST",
)  # fmt: skip
_QUESTION: Final = """
import json, os, sys
print(json.dumps([sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(os.path.realpath(sys.executable)),
                  *sys.path]))
"""
_ASK_TIMEOUT: Final = 60.0
_PROBE_TIMEOUT: Final = 20.0


@dataclass(frozen=True, slots=True)
class Box:
    """The folders that a confined program can read, and those that it can write to as well."""

    has_network: bool = False
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()

    def words(self, cwd: Path) -> Iterator[str]:
        """Yield the arguments before the program's own."""
        yield from (BWRAP, "--unshare-user", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL")
        if self.has_network:
            yield "--share-net"
        yield from _bound("--ro-bind-try", _SYSTEM)
        yield from ("--proc", "/proc", "--dev", "/dev")
        home = os.path.expanduser("~")
        for folder in (*_EMPTY, *([home] if home != "/" and home not in _EMPTY else [])):
            yield from ("--size", str(_EMPTY_BYTES), "--tmpfs", folder)
        resolver = (os.path.realpath(_RESOLVER),) if self.has_network else ()
        yield from _bound("--ro-bind-try", (*self.readable, *resolver))
        yield from _bound("--bind-try", self.writable)
        # The rest of the root is in memory and read-only.
        yield from ("--remount-ro", "/", "--chdir", str(cwd), "--")


@dataclass(frozen=True, slots=True)
class BoundedRunner:
    """Runs programs with a limit on processes, and in a box if there is one."""

    process_limit: int = PROCESS_LIMIT
    box: Box | None = None

    async def run(
        self,
        words: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        timeout: float,
        scratch: Path | None = None,
        channel: InheritedChannel | None = None,
    ) -> Finished:
        """Run a program to its end like `run_process`. It can write to `scratch`."""
        box = self.box
        if box is not None:
            if scratch is not None:
                box = replace(box, writable=(*box.writable, str(scratch)))
            words = [*box.words(cwd), *words]
            environment = {name: value for name, value in environment.items() if name not in _DROPPED_NAMES}
        return await run_process(
            words,
            cwd=cwd,
            environment=environment,
            timeout=timeout,
            process_limit=self.process_limit,
            channel=channel,
        )


UNCONFINED: Final = BoundedRunner()


def make_box(wanted: Confinement, python: str, checkout: str, readable: Iterable[str | Path]) -> Box:
    """Return the box for runs with a Python, which may be in a copy; `readable` are more folders to read.

    Of the checkout, a run can read only the environment of that Python. Everything else must be in the copy.
    """
    home = os.path.expanduser("~")
    given = [os.path.expanduser(path) for path in wanted.readable]
    on_path = [folder for name in ("PATH", "PYTHONPATH") for folder in os.environ.get(name, "").split(os.pathsep)]
    pythons = [os.path.join(home, folder) for folder in _PYTHONS]
    found = shutil.which(python) if os.sep not in python else python
    # Do not run a Python inside a copy, because an agent may have replaced it.
    needed = _needs_of(found, checkout) if found and os.path.isabs(found) else ()
    # A home on a path of programs or modules does not become readable.
    paths = [path for path in (*on_path, *needed) if os.path.isabs(path) and not _is_within(home, path)]
    every = [*pythons, *paths, *given, *map(str, readable)]
    return Box(wanted.has_network, tuple(dict.fromkeys(path for path in every if not _is_system(path))))


async def check_confinement(wanted: Confinement) -> None:
    """Raise UsageError or ProgramMissing if programs cannot be confined."""
    if shutil.which(BWRAP) is None:
        raise ProgramMissing(
            "--confine requires bwrap, which is not installed", f"{how_to_get(BWRAP)}, or leave out --confine"
        )
    folder = Path("/")
    for path in wanted.readable:
        if not os.path.exists(os.path.expanduser(path)):
            raise UsageError(f"--confine names a missing path: {path}", "leave it out or create it")
    try:
        finished = await run_process([*Box(wanted.has_network).words(folder), "true"], timeout=_PROBE_TIMEOUT)
        told = finished.error_text.strip().splitlines() if finished.code else []
    except AdapterError as error:
        finished, told = None, [error.message]
    if finished is None or finished.code:
        why = plain(told[-1], 200) if told else "no reason given"
        raise UsageError(
            f"this machine does not let bwrap create namespaces: {why}",
            "allow unprivileged user namespaces (as administrator), or leave out --confine",
        )


def _bound(how: str, paths: Iterable[str]) -> Iterator[str]:
    # A folder must come before the folders inside it, which it would hide.
    for path in sorted(paths):
        yield from (how, path, path)


def _is_system(path: str) -> bool:
    return path == "/" or any(_is_within(path, folder) for folder in _SYSTEM)


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _needs_of(python: str, checkout: str) -> tuple[str, ...]:
    try:
        return _ask(python, os.stat(python).st_mtime_ns, checkout)
    except OSError as error:
        raise AdapterError(f"cannot run {python}: {error.strerror or error}") from error


@functools.lru_cache(maxsize=32)
def _ask(python: str, _modified: int, checkout: str) -> tuple[str, ...]:
    """Return the folders that an interpreter reads; of the checkout, only those of the interpreter's environment."""
    words, environment = [python, "-c", _QUESTION], project_environment()
    finished = run_process_blocking(words, cwd=Path("/"), environment=environment, timeout=_ASK_TIMEOUT)
    try:
        paths = [path for path in json.loads(finished.stdout) if isinstance(path, str)]
    except ValueError as error:
        raise AdapterError(f"{python} does not run", f"try `{python} -c 'import sys'`") from error
    prefix = paths[0]
    folders = [os.path.dirname(python), *(path for path in paths if os.path.isabs(path))]
    return tuple(
        path
        for folder in folders
        for path in (folder, os.path.realpath(folder))
        if not checkout or not _is_within(path, checkout) or _is_within(path, prefix)
    )
