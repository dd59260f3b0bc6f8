"""Result of a command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

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
