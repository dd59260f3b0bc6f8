"""The transcript of a test: its commands and their output, in order; and the part that explains a failure.

`# ` comment, `$ ` command (`> ` its further lines), two spaces before stdout, `! ` before stderr, `? ` exit code.
"""

from __future__ import annotations

from typing import Final

from swarm_tui.adapters.shell import OutputSource
from swarm_tui.e2e.result import CommandResult, OutputLine
from swarm_tui.model.text import plain_lines

_PREFIXES: Final = {OutputSource.STDOUT: "  ", OutputSource.STDERR: "! "}
_SHOWN_LINES: Final = 60
_SHOWN_EARLIER_LINES: Final = 12
_SHOWN_WIDTH: Final = 400


def comment_lines(comment: str) -> list[str]:
    return [f"# {line}".rstrip() for line in comment.strip().split("\n")] if comment.strip() else []


def command_lines(command: str) -> list[str]:
    """Return the lines of a command with the prompts of a shell."""
    first, *further = command.strip("\n").split("\n")
    return [f"$ {first}", *(f"> {line}" for line in further)]


def output_lines(lines: tuple[OutputLine, ...]) -> list[str]:
    """Return lines of output, each with the prefix of its stream."""
    return [_PREFIXES[line.source] + line.text for line in lines]


def result_lines(result: CommandResult) -> list[str]:
    """Return all lines of one command."""
    ended = [f"# it did not end by itself and was stopped after {result.seconds:.1f} s"] if result.is_timed_out else []
    return [
        *comment_lines(result.comment),
        *command_lines(result.command),
        *output_lines(result.lines),
        *ended,
        f"? {result.exit_code}",
    ]


def recent_transcript(result: CommandResult) -> str:
    """Return the transcript around a command for the message of a failure: short, without control characters."""
    parts = [_shortened(result_lines(earlier), _SHOWN_EARLIER_LINES) for earlier in result.earlier]
    parts.append(_shortened(result_lines(result), _SHOWN_LINES))
    return "\n".join(_inert(line) for part in parts for line in part)


def _shortened(lines: list[str], limit: int) -> list[str]:
    """Return a long list of lines without its middle; most of what is left is its end."""
    if len(lines) <= limit:
        return lines
    head = limit // 3
    tail = limit - head - 1
    return [*lines[:head], f"  [... {len(lines) - head - tail} lines left out ...]", *lines[-tail:]]


def _inert(line: str) -> str:
    shown = plain_lines(line[: 4 * _SHOWN_WIDTH]).replace("\n", " ")
    return shown if len(shown) <= _SHOWN_WIDTH else shown[: _SHOWN_WIDTH - 1] + "…"
