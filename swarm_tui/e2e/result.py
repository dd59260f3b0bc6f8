"""Result of a command, and expectations on it. Failure messages include the transcript."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple, overload

from swarm_tui.adapters.processes.shell import OutputSource, Segment
from swarm_tui.model.text import plain_lines


class CapturedText(str):
    """Text with its origin, so that a failed expectation can show the transcript around it."""

    label: str
    transcript_around: Callable[[], str]

    def __new__(cls, text: str, label: str, transcript_around: Callable[[], str]) -> CapturedText:
        captured = super().__new__(cls, text)
        captured.label = label
        captured.transcript_around = transcript_around
        return captured


class OutputLine(NamedTuple):
    """One line of output, without the newline."""

    source: OutputSource
    text: str


@dataclass(frozen=True)
class CommandResult:
    """The result of one command. `earlier` are the previous commands of the same test."""

    command: str
    comment: str
    exit_code: int
    segments: tuple[Segment, ...] = field(repr=False)
    seconds: float
    is_timed_out: bool
    is_truncated: bool
    earlier: tuple[CommandResult, ...] = field(default=(), repr=False, compare=False)

    @cached_property
    def stdout(self) -> CapturedText:
        """The standard output."""
        return self._captured(OutputSource.STDOUT)

    @cached_property
    def stderr(self) -> CapturedText:
        """The standard error."""
        return self._captured(OutputSource.STDERR)

    @cached_property
    def output(self) -> CapturedText:
        """Standard output and standard error, in the order of output."""
        return self._captured(*OutputSource)

    @cached_property
    def lines(self) -> tuple[OutputLine, ...]:
        """The lines of standard output and standard error, in the order of their first characters."""
        return ordered_lines(self.segments)

    def _captured(self, *sources: OutputSource) -> CapturedText:

        data = b"".join(segment.data for segment in self.segments if segment.source in sources)
        name = sources[0].value if len(sources) == 1 else "output"
        return CapturedText(
            data.decode("utf-8", "replace"), f"{name} of `{self.command}`", lambda: recent_transcript(self)
        )


def ordered_lines(segments: tuple[Segment, ...]) -> tuple[OutputLine, ...]:
    """Return the lines of both outputs. A line stays complete even if the other output interrupts it."""
    lines: list[tuple[OutputSource, bytes]] = []
    unfinished: dict[OutputSource, int] = {}
    for source, data in ((segment.source, segment.data) for segment in segments):
        *whole, rest = data.split(b"\n")
        index = unfinished.pop(source, None)
        if index is not None:
            lines[index] = (source, lines[index][1] + (whole.pop(0) if whole else rest))
            if not data.count(b"\n"):
                unfinished[source] = index
                continue
        lines.extend((source, line) for line in whole)
        if rest:
            unfinished[source] = len(lines)
            lines.append((source, rest))
    return tuple(OutputLine(source, line.decode("utf-8", "replace")) for source, line in lines)


_PREFIXES: Final = {OutputSource.STDOUT: "  ", OutputSource.STDERR: "! "}
_SHOWN_LINES: Final = 60
_SHOWN_EARLIER_LINES: Final = 12
_SHOWN_WIDTH: Final = 400


def comment_lines(comment: str) -> list[str]:
    return [f"# {line}".rstrip() for line in comment.strip().split("\n")] if comment.strip() else []


def command_lines(command: str) -> list[str]:
    """Return the lines of a command with shell prompts."""
    first, *further = command.strip("\n").split("\n")
    return [f"$ {first}", *(f"> {line}" for line in further)]


def output_lines(lines: tuple[OutputLine, ...]) -> list[str]:
    """Return lines of output, each with the prefix of its stream."""
    return [_PREFIXES[line.source] + line.text for line in lines]


def result_lines(result: CommandResult) -> list[str]:
    """Return all lines of one command."""
    stopped = [f"# timed out and was stopped after {result.seconds:.1f} s"] if result.is_timed_out else []
    return [
        *comment_lines(result.comment),
        *command_lines(result.command),
        *output_lines(result.lines),
        *stopped,
        f"? {result.exit_code}",
    ]


def recent_transcript(result: CommandResult) -> str:
    """Return a short transcript of a command and the previous commands, without control characters."""
    parts = [_shortened(result_lines(earlier), _SHOWN_EARLIER_LINES) for earlier in result.earlier]
    parts.append(_shortened(result_lines(result), _SHOWN_LINES))
    return "\n".join(_inert(line) for part in parts for line in part)


def _shortened(lines: list[str], limit: int) -> list[str]:
    """Return a long list of lines without its middle part. More lines are kept at the end than at the start."""
    if len(lines) <= limit:
        return lines
    head = limit // 3
    tail = limit - head - 1
    return [*lines[:head], f"  [... {len(lines) - head - tail} lines left out ...]", *lines[-tail:]]


def _inert(line: str) -> str:
    shown = plain_lines(line[: 4 * _SHOWN_WIDTH]).replace("\n", " ")
    return shown if len(shown) <= _SHOWN_WIDTH else shown[: _SHOWN_WIDTH - 1] + "…"


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
