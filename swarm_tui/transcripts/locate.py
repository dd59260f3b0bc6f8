"""Finds the transcript of an agent, and composes a substitute for agents that write none."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final

from swarm_tui.model.paths import fits_pattern
from swarm_tui.model.state import TestRecord
from swarm_tui.model.text import plain_lines

TRANSCRIPT_PATTERNS: Final = (
    "events/*/common_transcript/events.jsonl",
    "events/common_transcript/events.jsonl",
    "logs/*_transcript/events.jsonl",
)
"""Where transcripts lie in an agent's state folder: mngr's common ones, then the logs that they are made of."""
HARVESTED_NAME: Final = "transcript.jsonl"
SCREEN_NAME: Final = "screen.txt"
# mngr keeps the logs of its own programs under this name, one of them that of the program that writes transcripts.
_MNGR_LOGS: Final = "logs"


@dataclass(frozen=True, slots=True)
class TranscriptSources:
    """Where the agents of one kind write their transcripts; without any, the files that mngr knows."""

    emitters: tuple[str, ...] = ()
    """The names under which they write in mngr's events, the likeliest first."""
    session_logs: tuple[str, ...] = ()
    """Patterns of their own logs, the agent's before those of its subagents; whole, where mngr's come late."""

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns of all files that may be transcripts."""
        return (*self.session_logs, *TRANSCRIPT_PATTERNS)

    @property
    def has_subagents(self) -> bool:
        """Whether subagents write logs of their own."""
        return len(self.session_logs) > 1


def choose_transcript(
    existing: Iterable[str], sources: TranscriptSources = TranscriptSources(), agent_id: str = ""
) -> str | None:
    """Return which of the files in a state folder is the agent's transcript, or None when none of them is one.

    `existing` are paths relative to the state folder. An own log comes first, above all the one of the session that
    mngr named after the agent; then what mngr wrote, the files of `emitters` before those of others.
    """
    paths = list(existing)
    own = [path for path in paths if any(fits_pattern(path, pattern) for pattern in sources.session_logs[:1])]
    if own:
        session = agent_id.removeprefix("agent-")
        return min(own, key=lambda path: (PurePosixPath(path).stem.replace("-", "") != session, path))
    ranked = [(rank, path) for path in paths if (rank := _rank(path, sources.emitters)) is not None]
    return min(ranked)[1] if ranked else None


def subagent_logs(existing: Iterable[str], sources: TranscriptSources, transcript: str) -> list[str]:
    """Return the logs of the subagents of the session that wrote a transcript."""
    folder = transcript.removesuffix(".jsonl") + "/"
    fitting = (path for path in existing if any(fits_pattern(path, each) for each in sources.session_logs[1:]))
    return sorted(path for path in fitting if path.startswith(folder))


def _rank(path: str, emitters: Sequence[str]) -> tuple[int, int] | None:
    match PurePosixPath(path).parts:
        case ("events", emitter, "common_transcript", "events.jsonl") if emitter != _MNGR_LOGS:
            group = 0
        case ("events", "common_transcript", "events.jsonl"):
            group, emitter = 1, ""
        case ("logs", folder, "events.jsonl") if folder.endswith("_transcript"):
            group, emitter = 2, folder.removesuffix("_transcript")
        case _:
            return None
    return group, emitters.index(emitter) if emitter in emitters else len(emitters)


def find_transcript(
    state_dir: str, agent_folder: Path | None, sources: TranscriptSources = TranscriptSources(), agent_id: str = ""
) -> Path | None:
    """Return the agent's transcript on this machine: the live one, else what was harvested; None without one.

    A live one with subagents is the one that the engine keeps, where their words stand between the agent's.
    """
    kept = agent_folder / HARVESTED_NAME if agent_folder is not None else None
    has_kept = kept is not None and kept.is_file()
    live = Path(state_dir) if state_dir else None
    if live is not None and live.is_absolute():
        found = [path for pattern in sources.patterns for path in live.glob(pattern)]
        files = [path.relative_to(live).as_posix() for path in found if path.is_file() and not path.is_symlink()]
        chosen = choose_transcript(files, sources, agent_id)
        if chosen is not None and not (has_kept and subagent_logs(files, sources, chosen)):
            return live / chosen
    return kept if has_kept else None


def substitute_transcript(record: TestRecord, screen: str) -> bytes:
    """Return the tries and the screen of an agent without a transcript as records of one."""
    lines: list[bytes] = [_step("system", "This agent writes no transcript: these are its tries and its screen.", None)]
    if record.launched_at is not None:
        lines.append(_step("system", f"launched, attempt {record.attempt or 1}", record.launched_at))
    for made in record.tries:
        call = f"try-{made.number}"
        lines.append(_line({"type": "step", "source": "agent", "timestamp": _iso(made.at), "message": "",
                            "tool_calls": [{"tool_call_id": call, "function_name": "pytest",
                                            "arguments": {"description": f"try {made.number}"}}]}))  # fmt: skip
        if made.passed is not None:
            content = f"passed in {made.seconds:.1f} s" if made.passed else made.failure or "failed"
            result = {"source_call_id": call, "content": content, "extra": {"is_error": not made.passed}}
            lines.append(_line({"type": "observation", "timestamp": _iso(made.at + made.seconds), "results": [result]}))
    if record.question:
        lines.append(_step("agent", record.question, record.since))
    lines += [line.encode() + b"\n" for line in plain_lines(screen).rstrip().split("\n")] if screen.strip() else []
    return b"".join(lines)


def _step(source: str, message: str, at: float | None) -> bytes:
    return _line({"type": "step", "source": source, "message": message, "timestamp": _iso(at)})


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"


def _iso(at: float | None) -> str | None:
    return datetime.fromtimestamp(at, UTC).isoformat() if at is not None else None
