"""The result of a command: exit code, outputs, and their lines in the order in which they were written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from swarm_tui.adapters.shell import OutputSource, Segment


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
    """One line of output, without its end."""

    source: OutputSource
    text: str


@dataclass(frozen=True)
class CommandResult:
    """One command that has ended; `earlier` are the commands of the same test just before it."""

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
        """Both outputs, in the order in which they were written."""
        return self._captured(*OutputSource)

    @cached_property
    def lines(self) -> tuple[OutputLine, ...]:
        """The lines of both outputs, in the order of their first characters."""
        return ordered_lines(self.segments)

    def _captured(self, *sources: OutputSource) -> CapturedText:
        from swarm_tui.e2e.transcript import recent_transcript

        data = b"".join(segment.data for segment in self.segments if segment.source in sources)
        name = sources[0].value if len(sources) == 1 else "output"
        return CapturedText(
            data.decode("utf-8", "replace"), f"{name} of `{self.command}`", lambda: recent_transcript(self)
        )


def ordered_lines(segments: tuple[Segment, ...]) -> tuple[OutputLine, ...]:
    """Return the lines of both outputs, each whole even when the other output was written in its middle."""
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
