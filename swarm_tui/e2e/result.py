"""What became of a command of a test: exit code, outputs, and the lines in the order in which they were written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from swarm_tui.adapters.shell import OutputSource, Segment


class CapturedText(str):
    """Text that knows where it comes from, so that a failed expectation can show what happened around it."""

    label: str
    tell_story: Callable[[], str]

    def __new__(cls, text: str, label: str, tell_story: Callable[[], str]) -> CapturedText:
        captured = super().__new__(cls, text)
        captured.label = label
        captured.tell_story = tell_story
        return captured


class OutputLine(NamedTuple):
    """One line of output, without its end."""

    source: OutputSource
    text: str


@dataclass(frozen=True)
class CommandResult:
    """One command that was run to its end; `earlier` are the commands of the same test just before it."""

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
        """Return what was written to the standard output."""
        return self._captured(OutputSource.STDOUT)

    @cached_property
    def stderr(self) -> CapturedText:
        """Return what was written to the standard error."""
        return self._captured(OutputSource.STDERR)

    @cached_property
    def output(self) -> CapturedText:
        """Return both outputs as a terminal would have shown them, in the order in which they were written."""
        return self._captured(*OutputSource)

    @cached_property
    def lines(self) -> tuple[OutputLine, ...]:
        """Return the lines of both outputs; a line stands where its first character was written."""
        return ordered_lines(self.segments)

    def _captured(self, *sources: OutputSource) -> CapturedText:
        from swarm_tui.e2e.transcript import recent_story

        data = b"".join(segment.data for segment in self.segments if segment.source in sources)
        name = sources[0].value if len(sources) == 1 else "output"
        return CapturedText(data.decode("utf-8", "replace"), f"{name} of `{self.command}`", lambda: recent_story(self))


def ordered_lines(segments: tuple[Segment, ...]) -> tuple[OutputLine, ...]:
    """Cut what was written into lines, each whole even when the other output was written in its middle."""
    lines: list[tuple[OutputSource, bytes]] = []
    unfinished: dict[OutputSource, int] = {}
    for source, data in ((segment.source, segment.data) for segment in segments):
        *whole, rest = data.split(b"\n")
        place = unfinished.pop(source, None)
        if place is not None:
            lines[place] = (source, lines[place][1] + (whole.pop(0) if whole else rest))
            if not data.count(b"\n"):
                unfinished[source] = place
                continue
        lines.extend((source, line) for line in whole)
        if rest:
            unfinished[source] = len(lines)
            lines.append((source, rest))
    return tuple(OutputLine(source, line.decode("utf-8", "replace")) for source, line in lines)
