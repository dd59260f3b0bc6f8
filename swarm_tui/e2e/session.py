"""The session of one test: runs its commands in a home of its own and writes down what happened."""

from __future__ import annotations

import contextlib
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from swarm_tui.adapters.marked_processes import end_marked_processes
from swarm_tui.adapters.shell import BackgroundOutput, run_shell
from swarm_tui.e2e.isolation import MARK_NAME, Isolation, isolated_environment, make_isolation, remove_isolation
from swarm_tui.e2e.result import CommandResult, ordered_lines
from swarm_tui.e2e.transcript import output_lines, result_lines
from swarm_tui.errors import AdapterError

if TYPE_CHECKING:
    from swarm_tui.e2e.terminal import Terminal

DEFAULT_TIMEOUT: Final = 30.0
DEFAULT_WIDTH: Final = 80
DEFAULT_HEIGHT: Final = 24
_EARLIER_COMMANDS: Final = 2


class E2eSession:
    """The value of the `e2e` fixture.

    `home` and `folder` are the test's own home and the folder in which its commands run; `environment` are their
    variables, which a test may change.
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
        """The test's home folder."""
        return self._isolation.home

    @property
    def folder(self) -> Path:
        """The folder in which the test's commands run."""
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
        """The blocks that the test has cited so far."""
        return tuple(self._blocks)

    @property
    def recordings(self) -> tuple[Path, ...]:
        """The recordings of the test's terminals, each an asciicast."""
        return tuple(terminal.recording for terminal in self._terminals)

    def write_tutorial_block(self, text: str) -> None:
        """Cite the block of the tutorial that this test is about, as a plain string with the block's lines."""
        block = textwrap.dedent(text).strip("\n")
        if not block.strip():
            raise ValueError("write_tutorial_block() needs the lines of a block of the tutorial")
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
        """Run a shell line to its end in the test's folder and return the result.

        After `timeout` seconds the command and all that it has started are ended; the exit code is then 124.
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
        """Start a full-screen program in a terminal that the test drives."""
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
        """End the processes that the test has left running, and list them in the transcript."""
        for terminal in self._terminals:
            # A test may have ended the terminal's server itself.
            with contextlib.suppress(AdapterError):
                terminal.close()
        leftovers = end_marked_processes(MARK_NAME, self._isolation.mark)
        self._transcript += [f"# was still running and was ended: {line}" for line in leftovers]
        for command, background in self._backgrounds:
            if segments := background.finish():
                self._transcript += [f"# written in the background of: {command}"]
                self._transcript += output_lines(ordered_lines(segments))
        self._backgrounds.clear()

    def remove(self) -> None:
        remove_isolation(self._isolation)
