"""Start programs as leaders of process groups, and stop groups."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
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
    "mngr": "install it into a private environment with `swarm-tui doctor --fix`",
    "claude": "npm install -g @anthropic-ai/claude-code, then run `claude` once to log in",
    "codex": "npm install -g @openai/codex, then run `codex login`",
    "opencode": "npm install -g opencode-ai, then run `opencode auth login`",
    "uv": "https://docs.astral.sh/uv/",
}


def how_to_get(program: str) -> str:
    """Return a hint how to install a program on this machine."""
    name = os.path.basename(program)
    if name in _OTHER:
        return _OTHER[name]
    ways = []
    has_apt, has_brew = shutil.which("apt-get") is not None, shutil.which("brew") is not None
    if name in _APT and (has_apt or not has_brew):
        ways.append(f"apt-get install {_APT[name]}")
    if name in _BREW and (has_brew or not has_apt):
        ways.append(f"brew install {_BREW[name]}")
    return " or ".join(ways) if ways else f"install {name} and put it on PATH"


TERM_GRACE: Final = 2.0
# Other processes of the group are not our children, and in a container their zombies may stay forever.
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
    """Start a program without a shell, as the leader of a new session and process group.

    It inherits its standard streams and the descriptors in `inherited`.
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
    """Raise AdapterError or ProgramMissing if a program cannot be started."""
    try:
        yield
    except ValueError as error:
        raise AdapterError(f"cannot start {program!r}: {error}", "an argument contains a NUL byte") from error
    except OSError as error:
        if cwd is not None and not cwd.is_dir():
            raise AdapterError(f"cannot start {program!r} in {cwd}: the folder does not exist any more") from error
        match error.errno:
            case errno.ENOENT | errno.ENOTDIR:
                raise ProgramMissing(f"{program} is not installed", how_to_get(program)) from error
            case errno.EACCES | errno.ENOEXEC:
                raise ProgramMissing(f"{program} is not executable", how_to_get(program)) from error
            case _:
                shortage = resource_shortage(error)
                if shortage is not None:
                    raise ResourceShortage(f"cannot start {program!r}: {error.strerror}", shortage.hint) from error
                raise AdapterError(f"cannot start {program!r}: {error.strerror or error}") from error


def communicate(process: subprocess.Popen[bytes], stdin: bytes | None, timeout: float) -> tuple[bytes, bytes]:
    """Return both outputs of a program. Stop its group after the timeout, or if we are interrupted."""
    try:
        return process.communicate(stdin, timeout=timeout)
    except BaseException:
        end_group(process)
        close_pipes(process)
        raise


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Stop the group of a program: TERM first, and KILL after a grace period."""
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
    """Close our ends of a program's pipes, and drop unread input."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group (0 only tests); return whether the group exists."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        # macOS refuses signals to a group of zombies.
        return False
    return True
