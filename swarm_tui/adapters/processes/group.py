"""How to install an outside program: by apt, by brew, or in a way of its own."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from swarm_tui.errors import AdapterError, ProgramMissing, ResourceShortage, resource_shortage

_APT: Final = {
    "git": "git", "tmux": "tmux", "ps": "procps", "rsync": "rsync", "ssh": "openssh-client", "bwrap": "bubblewrap",
}  # fmt: skip
_BREW: Final = {"git": "git", "tmux": "tmux", "rsync": "rsync"}
_OTHER: Final = {
    "mngr": "`swarm-tui doctor --fix` puts it into an environment of its own",
    "claude": "npm install -g @anthropic-ai/claude-code, then run `claude` once to log in",
    "uv": "https://docs.astral.sh/uv/",
}


def how_to_get(program: str) -> str:
    """Return how to install a program on this machine, as a hint for a message."""
    name = os.path.basename(program)
    if name in _OTHER:
        return _OTHER[name]
    import shutil

    ways = []
    has_apt, has_brew = shutil.which("apt-get") is not None, shutil.which("brew") is not None
    if name in _APT and (has_apt or not has_brew):
        ways.append(f"apt-get install {_APT[name]}")
    if name in _BREW and (has_brew or not has_apt):
        ways.append(f"brew install {_BREW[name]}")
    return " or ".join(ways) if ways else f"install {name} and put it on PATH"


TERM_GRACE: Final = 2.0
# Other programs of a group are not our children to wait for, and in a container their zombies may stay for ever.
_ORPHAN_GRACE: Final = 0.3
_POLL_SECONDS: Final = 0.02


def start_group(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    cwd: Path | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[bytes] = subprocess.PIPE,
    stderr: int | IO[bytes] = subprocess.PIPE,
    inherited: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a program, without a shell, as the leader of a new session and process group.

    Of our open descriptors it gets its standard streams and those in `inherited`.
    """
    with spawn_errors(arguments[0], cwd):
        return subprocess.Popen(
            list(arguments),
            cwd=cwd,
            env=dict(environment),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            pass_fds=tuple(inherited),
        )


@contextlib.contextmanager
def spawn_errors(program: str, cwd: Path | None) -> Iterator[None]:
    """Raise AdapterError or ProgramMissing, in words, for a program that cannot be started."""
    try:
        yield
    except ValueError as error:
        raise AdapterError(f"{program!r} cannot be started: {error}", "an argument holds a NUL byte") from error
    except OSError as error:
        if cwd is not None and not cwd.is_dir():
            raise AdapterError(
                f"{program!r} cannot be started in {cwd}: that folder does not exist any more"
            ) from error
        match error.errno:
            case errno.ENOENT | errno.ENOTDIR:
                raise ProgramMissing(f"{program} is not installed", how_to_get(program)) from error
            case errno.EACCES | errno.ENOEXEC:
                raise ProgramMissing(f"{program} is there but cannot be run", how_to_get(program)) from error
            case _:
                shortage = resource_shortage(error)
                if shortage is not None:
                    raise ResourceShortage(f"{program!r} cannot be started: {error.strerror}", shortage.hint) from error
                raise AdapterError(f"{program!r} cannot be started: {error.strerror or error}") from error


def communicate(process: subprocess.Popen[bytes], stdin: bytes | None, timeout: float) -> tuple[bytes, bytes]:
    """Return both outputs of a started program; when it overstays or we are interrupted, its group is ended."""
    try:
        return process.communicate(stdin, timeout=timeout)
    except BaseException:
        end_group(process)
        close_pipes(process)
        raise


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End the group that a program leads: TERM first, and KILL for what is left after a grace."""
    group = process.pid
    signal_group(group, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(TERM_GRACE)
    deadline = time.monotonic() + _ORPHAN_GRACE
    while signal_group(group, 0) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    signal_group(group, signal.SIGKILL)
    process.wait()


def close_pipes(process: subprocess.Popen[bytes]) -> None:
    """Close our ends of a program's pipes; what it has not read of its input is dropped."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group (0 only asks); return whether the group is there."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        # macOS refuses for a group of zombies.
        return False
    return True
