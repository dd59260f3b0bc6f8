"""Session with its own home."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from swarm_tui.adapters.processes.ends import end_marked_processes
from swarm_tui.adapters.processes.environment import scrubbed_environment
from swarm_tui.adapters.processes.shell import BackgroundOutput, run_shell
from swarm_tui.adapters.scratch import short_folder
from swarm_tui.e2e.result import CommandResult, ordered_lines, output_lines, result_lines
from swarm_tui.errors import AdapterError

if TYPE_CHECKING:
    from swarm_tui.e2e.terminal import Terminal


MARK_NAME: Final = "SWARM_E2E_SESSION"

# Variables with personal settings or with paths outside the test's home.
_DROPPED_NAMES: Final = frozenset(
    (
        *("BASH_ENV", "ENV", "CDPATH", "HISTFILE", "OLDPWD"),
        *("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PY_COLORS"),
        *("EDITOR", "VISUAL", "PAGER", "GIT_EDITOR", "GIT_PAGER", "GIT_CONFIG_GLOBAL"),
        *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"),
    )
)
_DROPPED_PREFIXES: Final = ("MNGR_", "SWARM_E2E_", "COV_CORE_")


@dataclass(frozen=True, slots=True)
class Isolation:
    """The folders of one test, all below `base`, which is removed after the test."""

    base: Path
    home: Path
    folder: Path
    temporary: Path
    sockets: Path

    @property
    def mark(self) -> str:
        """The value of MARK_NAME that identifies the processes of this test."""
        return self.base.name


def make_isolation() -> Isolation:
    """Create the folders of a test. Their paths are short, because the path of a socket has at most 107 bytes."""
    base = Path(tempfile.mkdtemp(prefix="swe2e-", dir=short_folder()))
    isolation = Isolation(base, base / "home", base / "work", base / "tmp", base / "s")
    for folder in (isolation.home, isolation.folder, isolation.temporary, isolation.sockets):
        folder.mkdir(mode=0o700)
    return isolation


def isolated_environment(isolation: Isolation, program_folder: Path) -> dict[str, str]:
    """Return the environment for commands of a test: without personal settings, and with the test's folders."""
    environment = {
        name: value
        for name, value in scrubbed_environment().items()
        if name not in _DROPPED_NAMES and not name.startswith(_DROPPED_PREFIXES)
    }
    return environment | {
        "HOME": str(isolation.home),
        "PWD": str(isolation.folder),
        "TMPDIR": str(isolation.temporary),
        "TMUX_TMPDIR": str(isolation.sockets),
        "TERM": "xterm-256color",
        "PATH": _path_with(environment, program_folder),
        "LANG": environment.get("LANG") or "C.UTF-8",
        MARK_NAME: isolation.mark,
    }


def remove_isolation(isolation: Isolation) -> None:
    """Remove the folders of a test, even if they are read-only."""
    shutil.rmtree(isolation.base, ignore_errors=True)
    if not isolation.base.exists():
        return
    for folder, _, _ in os.walk(isolation.base):
        os.chmod(folder, stat.S_IRWXU)
    shutil.rmtree(isolation.base, ignore_errors=True)


def _path_with(environment: Mapping[str, str], program_folder: Path) -> str:
    """Return PATH with the folder of programs that are installed next to the running interpreter."""
    folders = environment.get("PATH", os.defpath).split(os.pathsep)
    if str(program_folder) in folders:
        return os.pathsep.join(folders)
    return os.pathsep.join([str(program_folder), *folders])


DEFAULT_TIMEOUT: Final = 60.0
DEFAULT_WIDTH: Final = 80
DEFAULT_HEIGHT: Final = 24
_EARLIER_COMMANDS: Final = 2


class E2eSession:
    """The value of the `e2e` fixture.

    `home` is the home of the test, and `folder` is the working directory of its commands. `environment` contains their
    environment variables, which a test may change.
    """

    def __init__(self) -> None:
        self._isolation = make_isolation()
        self.environment: dict[str, str] = isolated_environment(self._isolation, Path(sys.executable).parent)
        self._blocks: list[str] = []
        self._transcript: list[str] = []
        self._recent: tuple[CommandResult, ...] = ()
        self._backgrounds: list[tuple[str, BackgroundOutput]] = []
        self._terminals: list[Terminal] = []

    @property
    def home(self) -> Path:
        """The home folder of the test."""
        return self._isolation.home

    @property
    def folder(self) -> Path:
        """The working directory of the test's commands."""
        return self._isolation.folder

    @property
    def isolation(self) -> Isolation:
        return self._isolation

    @property
    def transcript(self) -> str:
        """The transcript so far."""
        return "".join(f"{line}\n" for line in self._transcript)

    @property
    def tutorial_blocks(self) -> tuple[str, ...]:
        """The tutorial blocks that the test has cited so far."""
        return tuple(self._blocks)

    @property
    def recordings(self) -> tuple[Path, ...]:
        """The recordings of the test's terminals, in asciicast format."""
        return tuple(terminal.recording for terminal in self._terminals)

    def write_tutorial_block(self, text: str) -> None:
        """Cite the block of the tutorial that this test covers, as a string with the lines of the block."""
        block = textwrap.dedent(text).strip("\n")
        if not block.strip():
            raise ValueError("write_tutorial_block() requires the lines of a block of the tutorial")
        self._blocks.append(block)

    def run(
        self,
        command: str,
        *,
        comment: str = "",
        timeout: float = DEFAULT_TIMEOUT,
        env: Mapping[str, str] | None = None,
        stdin: str | bytes = b"",
    ) -> CommandResult:
        """Run a shell command in the test's folder and return its result.

        After `timeout` seconds, the command and its child processes are killed, and the exit code is 124.
        """
        run = run_shell(
            command,
            cwd=self.folder,
            environment=self.environment | dict(env or {}),
            stdin=stdin.encode() if isinstance(stdin, str) else stdin,
            timeout=timeout,
        )
        if run.background is not None:
            self._backgrounds.append((command, run.background))
        result = CommandResult(
            command=command,
            comment=comment,
            exit_code=run.code,
            segments=run.segments,
            seconds=run.seconds,
            is_timed_out=run.is_timed_out,
            is_truncated=run.is_truncated,
            earlier=self._recent,
        )
        self._transcript += result_lines(result)
        self._recent = (*self._recent, result)[-_EARLIER_COMMANDS:]
        return result

    def tmux(
        self,
        command: str,
        *,
        width: int = DEFAULT_WIDTH,
        height: int = DEFAULT_HEIGHT,
        comment: str = "",
        env: Mapping[str, str] | None = None,
    ) -> Terminal:
        """Start a full-screen program in a terminal that the test controls."""
        from swarm_tui.e2e.terminal import Terminal

        terminal = Terminal(
            command,
            name=f"screen-{len(self._terminals) + 1}",
            folder=self._isolation.sockets,
            cwd=self.folder,
            environment=self.environment | dict(env or {}),
            width=width,
            height=height,
            comment=comment,
            add_to_transcript=self._transcript.extend,
        )
        self._terminals.append(terminal)
        return terminal

    def finish(self) -> None:
        """Kill the remaining processes of the test, and list them in the transcript."""
        for terminal in self._terminals:
            # A test may have stopped the tmux server of the terminal.
            with contextlib.suppress(AdapterError):
                terminal.close()
        leftovers = end_marked_processes(MARK_NAME, self._isolation.mark)
        self._transcript += [f"# killed after the test: {line}" for line in leftovers]
        for command, background in self._backgrounds:
            if segments := background.finish():
                self._transcript += [f"# background output of: {command}"]
                self._transcript += output_lines(ordered_lines(segments))
        self._backgrounds.clear()

    def remove(self) -> None:
        remove_isolation(self._isolation)
