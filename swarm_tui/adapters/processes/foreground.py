"""Run a program, such as an editor, in the user's terminal and wait for its end."""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import signal
import subprocess
import termios
import time
import tty
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from swarm_tui.adapters.processes.group import spawn_errors
from swarm_tui.errors import UsageError

if TYPE_CHECKING:
    import asyncio

ANSWER_TIMEOUT: Final = 1.0
# Default keys, primary screen, visible cursor, default colours, wrapped lines.
_USUAL_SCREEN: Final = b"\x1b[<u\x1b[?1049l\x1b[?25h\x1b[0m\x1b[?7h"
# No mouse, no bracketed paste, and no reports of focus or size.
_USUAL_INPUT: Final = b"\x1b[?1000;1002;1003;1006;1015;2004;2048;1004;1l\x1b>"
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_STATUS_QUERY: Final = b"\x1b[5n"
_STATUS_ANSWER: Final = b"\x1b[0n"


def editor_command() -> tuple[str, ...]:
    """Return the user's editor with its options like git: $GIT_EDITOR, $VISUAL, $EDITOR, or vi."""
    for name in ("GIT_EDITOR", "VISUAL", "EDITOR"):
        words = os.environ.get(name, "").strip()
        if words:
            try:
                return tuple(shlex.split(words))
            except ValueError as error:
                raise UsageError(f"invalid ${name}: {error}", "set it to a program and its options") from error
    return ("vi",)


def run_in_foreground(arguments: Sequence[str], *, cwd: Path | None, environment: Mapping[str, str]) -> int:
    """Run a program in this terminal; return its exit code.

    It stays in our process group, which gets the terminal's keys. If it was killed, restore the terminal. A signal that
    would end us ends the program first.
    """
    before = _terminal_settings()
    with spawn_errors(arguments[0], cwd), _passed_on_signals() as pass_on_to:
        process = subprocess.Popen(list(arguments), cwd=cwd, env=dict(environment))
        pass_on_to(process)
        code = process.wait()
        if code < 0:
            _put_back(before)
    return code


@contextlib.contextmanager
def _passed_on_signals() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Leave ctrl+c to the program, and pass signals that would end us to it first; yield a function for it.

    Handlers are not inherited by the program, but ignored signals would be.
    """
    programs: list[subprocess.Popen[bytes]] = []
    seen: list[int] = []

    def pass_on(number: int, _frame: object) -> None:
        seen.append(number)
        for program in programs:
            program.send_signal(number)

    def pass_on_to(program: subprocess.Popen[bytes]) -> None:
        programs.append(program)
        # A signal may have come before the program was started.
        if seen:
            program.send_signal(seen[0])

    with _handled({signal.SIGINT: lambda *_: None, **dict.fromkeys(_ENDING, pass_on)}) as before:
        yield pass_on_to
    if seen:
        handler = before[seen[0]]
        # asyncio's handler does nothing, because the event loop gets the signal in another way.
        (handler if callable(handler) else _exit)(seen[0], None)


@contextlib.contextmanager
def _handled(handlers: Mapping[int, Callable[[int, Any], Any]]) -> Iterator[dict[int, Any]]:
    """Handle signals, except those that were ignored when we started; yield the previous handlers."""
    before = {number: signal.getsignal(number) for number in handlers}
    for number, handler in handlers.items():
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, handler)
    try:
        yield before
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _exit(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


@contextlib.contextmanager
def guarded_terminal() -> Iterator[None]:
    """Restore the terminal if the block fails or a signal ends us."""
    before = _terminal_settings()
    with _handled(dict.fromkeys(_ENDING, _exit)):
        try:
            yield
        except BaseException:
            _put_back(before)
            raise


def call_on_ending_signals(loop: asyncio.AbstractEventLoop, leave: Callable[[int], object]) -> None:
    """Call `leave` with the exit code when a signal is to end us.

    If the terminal is gone, exit at once, because there is nothing to restore, and writing to it would block.
    """

    def end(number: int) -> None:
        if _terminal_settings() is None:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        leave(128 + number)

    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, end, number)


@contextlib.contextmanager
def restored_terminal() -> Iterator[None]:
    """Restore the terminal, even after a program that lost its connection and could not clean up."""
    before = _terminal_settings()
    try:
        yield
    finally:
        _put_back(before)


def _terminal_settings() -> list[Any] | None:
    try:
        return termios.tcgetattr(0)
    except termios.error:
        return None


def _put_back(before: list[Any] | None) -> None:
    # A closed terminal does not need to be restored.
    with contextlib.suppress(OSError, termios.error):
        if before is not None:
            termios.tcsetattr(0, termios.TCSANOW, before)
        if os.isatty(1):
            os.write(1, _USUAL_SCREEN + _USUAL_INPUT)


def drop_late_answers(terminal: int, timeout: float = ANSWER_TIMEOUT) -> bool:
    """Read and drop a terminal's late answers to queries of an exited program; return whether all have come.

    tmux and vim query the terminal and exit without waiting, and the next program would read a late answer as keys.
    Terminals answer in order, so wait for the answer to our own query.
    """
    try:
        before = termios.tcgetattr(terminal)
    except termios.error:
        return True
    try:
        tty.setraw(terminal, termios.TCSANOW)
        os.write(terminal, _STATUS_QUERY)
        deadline = time.monotonic() + timeout
        read = b""
        while _STATUS_ANSWER not in read:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([terminal], [], [], left)[0]:
                return False
            if not (content := os.read(terminal, 4096)):
                return False
            read = read[-len(_STATUS_ANSWER) :] + content
        return True
    except OSError:
        return False
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)
