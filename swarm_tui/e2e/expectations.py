"""Expectations on the result of a command. Failure messages include the transcript."""

from __future__ import annotations

import difflib
import re
from typing import overload

from swarm_tui.e2e.result import CapturedText, CommandResult, recent_transcript
from swarm_tui.model.text import plain_lines

_SHOWN_CHARACTERS = 4_000


class ExpectationFailed(AssertionError):
    """An expectation was not met. The message includes the transcript."""


class ResultExpectation:
    """The expectations on a command."""

    def __init__(self, result: CommandResult) -> None:
        self._result = result

    def to_succeed(self) -> None:
        """Expect exit code 0."""
        __tracebackhide__ = True
        if self._result.exit_code != 0:
            self._fail("to succeed")

    def to_fail(self) -> None:
        """Expect an exit code other than 0 from the command itself. A timeout does not count as a failure."""
        __tracebackhide__ = True
        if self._result.exit_code == 0 or self._result.is_timed_out:
            self._fail("to fail")

    def to_exit_with(self, code: int) -> None:
        """Expect this exit code."""
        __tracebackhide__ = True
        if self._result.exit_code != code or self._result.is_timed_out:
            self._fail(f"to exit with {code}")

    def _fail(self, expected: str) -> None:
        __tracebackhide__ = True
        result = self._result
        if result.is_timed_out:
            actual = f"it timed out and was stopped after {result.seconds:.1f} s"
        elif result.exit_code > 128:
            actual = f"it exited with {result.exit_code} (killed by signal {result.exit_code - 128})"
        else:
            actual = f"it exited with {result.exit_code}"
        raise ExpectationFailed(f"expected {_command(result)} {expected}, but {actual}\n\n{recent_transcript(result)}")


class TextExpectation:
    """The expectations on a text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def to_contain(self, part: str) -> None:
        """Expect the text to contain `part`."""
        __tracebackhide__ = True
        if part not in self._text:
            self._fail(f"to contain {part!r}")

    def not_to_contain(self, part: str) -> None:
        """Expect the text not to contain `part`."""
        __tracebackhide__ = True
        if part in self._text:
            self._fail(f"not to contain {part!r}")

    def to_match(self, pattern: str | re.Pattern[str]) -> None:
        """Expect a match of the regular expression somewhere in the text."""
        __tracebackhide__ = True
        if re.search(pattern, self._text) is None:
            shown = pattern if isinstance(pattern, str) else pattern.pattern
            self._fail(f"to match {shown!r}")

    def to_equal(self, wanted: str) -> None:
        """Expect exactly this text."""
        __tracebackhide__ = True
        if self._text != wanted:
            self._fail("to equal another text (- expected, + actual)", _difference(wanted, self._text))

    def to_be_empty(self) -> None:
        """Expect an empty text."""
        __tracebackhide__ = True
        if self._text:
            self._fail("to be empty")

    def _fail(self, expected: str, difference: str = "") -> None:
        __tracebackhide__ = True
        if isinstance(self._text, CapturedText):
            label, transcript = plain_lines(self._text.label), self._text.transcript_around()
        else:
            label, transcript = "the text", f"the text: {_shown(self._text)}"
        raise ExpectationFailed(
            "\n\n".join(part for part in (f"expected {label} {expected}", difference, transcript) if part)
        )


@overload
def expect(value: CommandResult) -> ResultExpectation: ...
@overload
def expect(value: str) -> TextExpectation: ...
def expect(value: CommandResult | str) -> ResultExpectation | TextExpectation:
    """Return expectations on the result of a command or on a text, as in `expect(result).to_succeed()`."""
    if isinstance(value, CommandResult):
        return ResultExpectation(value)
    if isinstance(value, str):
        return TextExpectation(value)
    raise TypeError(f"expect() requires the result of a command or a text, not {type(value).__name__}")


def _command(result: CommandResult) -> str:
    return f"`{plain_lines(result.command.strip())}`"


def _shown(text: str) -> str:
    shown = repr(text[:_SHOWN_CHARACTERS])
    return shown if len(text) <= _SHOWN_CHARACTERS else f"{shown} and {len(text) - _SHOWN_CHARACTERS:,} characters more"


def _difference(wanted: str, text: str) -> str:
    # ndiff takes quadratic time, so limit the texts.
    before, after = (part[:_SHOWN_CHARACTERS].splitlines(keepends=True) for part in (wanted, text))
    return "\n".join(
        f"{line[0]} {line[2:]!r}" for line in difflib.ndiff(before, after, charjunk=None) if line[0] in "+- "
    )
