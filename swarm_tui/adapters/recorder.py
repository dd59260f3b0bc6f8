"""Record a program in this terminal, with asciinema if it is installed."""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import shutil
import signal
import sys
import tempfile
import termios
import tty
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

from swarm_tui.adapters import cast_writer
from swarm_tui.adapters.cast_writer import CastWriter
from swarm_tui.adapters.processes.foreground import run_in_foreground
from swarm_tui.adapters.processes.group import how_to_get
from swarm_tui.adapters.processes.run import run_process_blocking
from swarm_tui.adapters.processes.terminal import spawn_on_terminal
from swarm_tui.adapters.tmux import AGENT_WINDOW, Tmux
from swarm_tui.errors import AdapterError, ProgramMissing, SwarmError
from swarm_tui.files import read_regular

if TYPE_CHECKING:
    import pexpect

_BLOCK: Final = 1 << 16
_DEFAULT_SIZE: Final = (80, 24)
# asciinema drops the exit code of the recorded program, so a shell writes it to a file.
_KEEP_CODE: Final = '"$@"; echo $? >"$0"'


def record_program(
    arguments: Sequence[str], cast: Path, *, environment: Mapping[str, str] | None = None, title: str = ""
) -> int:
    """Run a program in our terminal, record it into a new file, and return its exit code."""
    variables = dict(os.environ if environment is None else environment)
    if shutil.which(arguments[0], path=variables.get("PATH")) is None:
        raise ProgramMissing(f"{arguments[0]} is not installed", how_to_get(arguments[0]))
    if cast.exists():
        raise SwarmError(f"{cast} exists already", "choose another name")
    try:
        cast.parent.mkdir(parents=True, exist_ok=True)
        asciinema = shutil.which("asciinema", path=variables.get("PATH"))
        if asciinema is not None and os.isatty(0) and os.isatty(1):
            return _record_by_asciinema(asciinema, arguments, cast, variables, title)
        return record_on_pty(arguments, cast, environment=variables, title=title)
    except OSError as error:
        raise AdapterError(f"cannot record {cast}: {error.strerror or error}") from error


def asciinema_command(asciinema: str, arguments: Sequence[str], cast: Path, title: str, version: str) -> list[str]:
    """Return the command of asciinema that records a program as asciicast v2."""
    words = [asciinema, "rec", "--quiet", "--command", shlex.join(arguments)]
    if title:
        words += ["--title", title]
    if version and int(version.split(".")[0]) >= 3:
        words += ["--output-format", "asciicast-v2"]
    return [*words, str(cast)]


def record_on_pty(arguments: Sequence[str], cast: Path, *, environment: Mapping[str, str], title: str = "") -> int:
    """Record a program in a pseudo-terminal. If we have no terminal, it has 80x24 and no input."""
    columns, rows = _terminal_size()
    writer = CastWriter.begin(cast, columns, rows, title)
    child = spawn_on_terminal(arguments, rows=rows, columns=columns, environment=environment)
    try:
        with _raw_terminal(), _resizes() as resized:
            _relay(child, resized, writer)
        child.wait()
    finally:
        # If we are interrupted, the program loses its terminal, as if a window was closed.
        child.close(force=True)
        writer.close()
    return 128 + (child.signalstatus or 0) if child.exitstatus is None else child.exitstatus


async def record_pane(tmux: Tmux, session: str, cast: Path) -> None:
    """Record an agent's pane from now on, with its present screen first. The recorder exits with the pane."""
    panes = await tmux.list_panes()
    pane = next((pane for pane in panes if pane.session == session and pane.window == AGENT_WINDOW), None)
    if pane is None:
        raise AdapterError(f"no pane to record: {session}")
    screen = (await tmux.capture([session])).get(session) or ""
    try:
        writer = CastWriter.begin(cast, pane.width, pane.height, session)
        writer.output(screen.rstrip("\n").replace("\n", "\r\n").encode())
        writer.close()
    except OSError as error:
        raise AdapterError(f"cannot write {cast}: {error.strerror or error}") from error
    await tmux.pipe_pane(session, [sys.executable, "-I", "-S", cast_writer.__file__, str(cast)])


def _record_by_asciinema(
    asciinema: str, arguments: Sequence[str], cast: Path, environment: dict[str, str], title: str
) -> int:
    version = run_process_blocking([asciinema, "--version"], environment=environment).text.strip().rpartition(" ")[2]
    with tempfile.TemporaryDirectory(prefix="swarm-record-") as folder:
        code_file = Path(folder) / "code"
        kept = ["sh", "-c", _KEEP_CODE, str(code_file), *arguments]
        words = asciinema_command(asciinema, kept, cast, title, version if version[:1].isdigit() else "")
        asciinema_code = run_in_foreground(words, cwd=None, environment=environment)
        code = read_regular(code_file).decode().strip() if code_file.is_file() else ""
    return int(code) if code.isdigit() else asciinema_code


def _relay(child: pexpect.spawn[bytes], resized: int, writer: CastWriter) -> None:
    """Pass input to the program and its output to the user, until the program closes its terminal.

    pexpect's `interact` requires a terminal, loses the last output of a program, and ignores changes of the window's
    size.
    """
    terminal = child.child_fd
    sources = [terminal, resized, *([0] if os.isatty(0) else [])]
    while True:
        ready, _, _ = select.select(sources, [], [])
        if resized in ready:
            os.read(resized, _BLOCK)
            columns, rows = _terminal_size()
            child.setwinsize(rows, columns)
            writer.resize(columns, rows)
        if 0 in ready:
            typed = os.read(0, _BLOCK)
            if typed:
                _write_all(terminal, typed)
            else:
                sources.remove(0)
        if terminal in ready:
            try:
                block = os.read(terminal, _BLOCK)
            except OSError:
                # On Linux, this means that the last program on the terminal has exited.
                return
            if not block:
                return
            writer.output(block)
            _write_all(1, block)


def _write_all(descriptor: int, block: bytes) -> None:
    view = memoryview(block)
    while view:
        view = view[os.write(descriptor, view) :]


def _terminal_size() -> tuple[int, int]:
    try:
        size = os.get_terminal_size(1)
    except OSError:
        return _DEFAULT_SIZE
    return (size.columns, size.lines) if size.columns and size.lines else _DEFAULT_SIZE


@contextlib.contextmanager
def _raw_terminal() -> Iterator[None]:
    if not os.isatty(0):
        yield
        return
    before = termios.tcgetattr(0)
    try:
        tty.setraw(0)
        yield
    finally:
        termios.tcsetattr(0, termios.TCSAFLUSH, before)


@contextlib.contextmanager
def _resizes() -> Iterator[int]:
    """Return a descriptor that becomes readable when the terminal's size changes."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def notify(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(writing, b"r")

    before = signal.signal(signal.SIGWINCH, notify)
    try:
        yield reading
    finally:
        signal.signal(signal.SIGWINCH, before)
        os.close(reading)
        os.close(writing)
