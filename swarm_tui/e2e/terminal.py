"""A terminal with a full-screen program in a test: press keys, wait for a text, read the screen."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NoReturn

from swarm_tui.adapters.driven_terminal import DrivenTerminal, ScreenShot
from swarm_tui.e2e.result import CapturedText, ExpectationFailed, command_lines, comment_lines
from swarm_tui.model.text import plain_lines

DEFAULT_WAIT: Final = 60.0
_FIRST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.1
_KEY: Final = re.compile(
    r"(?:[CMS]-)*(?:\S|Enter|Escape|Tab|BTab|Space|BSpace|Up|Down|Left|Right|Home|End|PageUp|PageDown|PgUp|PgDn|PPage"
    r"|NPage|IC|DC|Insert|Delete|F(?:[1-9]|1[0-2]))"
)


class Terminal:
    """A program in a separate terminal that a test controls. Also a context manager that closes the terminal."""

    def __init__(
        self,
        command: str,
        *,
        name: str,
        folder: Path,
        cwd: Path,
        environment: Mapping[str, str],
        width: int,
        height: int,
        comment: str,
        add_to_transcript: Callable[[list[str]], None],
    ) -> None:
        self.command = command
        self.name = name
        self._add_to_transcript = add_to_transcript
        self._is_closed = False
        self._keys: list[str] = []
        self._last_rows: list[str] = []
        self._driven = DrivenTerminal(
            command, name=name, folder=folder, cwd=cwd, environment=environment, width=width, height=height
        )
        add_to_transcript([*comment_lines(comment), *command_lines(command)])

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def recording(self) -> Path:
        """The recording of the program's output so far, in asciicast format."""
        return self._driven.recording

    def send_keys(self, *keys: str) -> None:
        """Press keys: single characters or tmux key names (Enter, Escape, Up, C-c, M-x, F1 and so on)."""
        for key in keys:
            if not _KEY.fullmatch(key):
                raise ValueError(f"invalid key: {key!r} (use a tmux key name, or type_text() for text)")
        self._keys += keys
        self._driven.press(*keys)

    def type_text(self, text: str) -> None:
        """Type a text without interpreting key names."""
        self._keys.append(repr(text))
        self._driven.type_text(text)

    def resize(self, width: int, height: int) -> None:
        """Resize the terminal."""
        self._keys.append(f"(resized to {width}x{height})")
        self._driven.resize(width, height)

    def screen(self) -> CapturedText:
        """Return the current screen, and add it to the transcript."""
        return self._captured(self._driven.screenshot())

    def wait_for(self, wanted: str | re.Pattern[str], timeout: float = DEFAULT_WAIT) -> CapturedText:
        """Wait until the screen contains a text or matches a compiled regular expression. Return the screen."""
        __tracebackhide__ = True
        return self._wait(f"to show {_shown(wanted)}", lambda text: _contains(text, wanted), timeout)

    def wait_until_gone(self, unwanted: str | re.Pattern[str], timeout: float = DEFAULT_WAIT) -> CapturedText:
        """Wait until the screen no longer contains a text. Return the screen."""
        __tracebackhide__ = True
        return self._wait(f"not to show {_shown(unwanted)}", lambda text: not _contains(text, unwanted), timeout)

    def wait_for_exit(self, timeout: float = DEFAULT_WAIT) -> int:
        """Wait until the program exits. Return its exit code."""
        __tracebackhide__ = True
        shot = self._screenshot_when(lambda shot: shot.exit_code is not None, timeout)
        if shot.exit_code is None:
            self._fail("to exit", f"it is still running after {timeout:g} s", shot)
        self.close()
        return shot.exit_code

    def close(self) -> None:
        """Close the terminal, and add its last screen and the exit code to the transcript."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            shot = self._driven.screenshot()
            self._captured(shot)
            self._add_to_transcript(["# closed while running" if shot.exit_code is None else f"? {shot.exit_code}"])
        finally:
            self._driven.close()

    def _wait(self, expected: str, is_met: Callable[[str], bool], timeout: float) -> CapturedText:
        __tracebackhide__ = True
        shot = self._screenshot_when(lambda shot: is_met(shot.text) or shot.exit_code is not None, timeout)
        if not is_met(shot.text):
            exited = f"the program exited with {shot.exit_code}"
            self._fail(expected, f"timed out after {timeout:g} s" if shot.exit_code is None else exited, shot)
        return self._captured(shot)

    def _screenshot_when(self, is_met: Callable[[ScreenShot], bool], timeout: float) -> ScreenShot:
        """Return the first screenshot that meets a condition, or the last one within the timeout."""
        deadline = time.monotonic() + timeout
        pause = _FIRST_PAUSE
        while not is_met(shot := self._driven.screenshot()) and time.monotonic() < deadline:
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
        return shot

    def _fail(self, expected: str, actual: str, shot: ScreenShot) -> NoReturn:
        __tracebackhide__ = True
        text = self._captured(shot)
        raise ExpectationFailed(f"expected {text.label} {expected}, but {actual}\n\n{text.transcript_around()}")

    def _captured(self, shot: ScreenShot) -> CapturedText:
        rows = shot.text.rstrip("\n").split("\n") if shot.text.strip() else []
        pressed = [f"# keys: {' '.join(self._keys)}"] if self._keys else []
        self._keys.clear()
        self._add_to_transcript(pressed if rows == self._last_rows else [*pressed, *(f"  {row}" for row in rows)])
        self._last_rows = rows
        label = f"the screen of `{plain_lines(self.command)}`"
        return CapturedText(shot.text, label, lambda: framed(rows))


def framed(rows: list[str]) -> str:
    """Return the rows of a screen between two lines of dashes, without control characters."""
    inert = [plain_lines(row) for row in rows]
    rule = "-" * min(max(map(len, inert), default=0), 120)
    return "\n".join([rule, *inert, rule])


def _contains(text: str, wanted: str | re.Pattern[str]) -> bool:
    return wanted in text if isinstance(wanted, str) else wanted.search(text) is not None


def _shown(wanted: str | re.Pattern[str]) -> str:
    return repr(wanted) if isinstance(wanted, str) else f"/{wanted.pattern}/"
