"""Find an agent's transcript."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, Final

from swarm_tui.journal.record import TestRecord
from swarm_tui.model.text import plain_lines


def fits_pattern(path: str, pattern: str) -> bool:
    """Return whether a path matches a glob pattern. `*` does not match a slash."""
    parts, patterns = path.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


TRANSCRIPT_PATTERNS: Final = (
    "events/*/common_transcript/events.jsonl",
    "events/common_transcript/events.jsonl",
    "logs/*_transcript/events.jsonl",
)
"""Patterns of transcripts in an agent's state folder: those of mngr, then the logs that mngr reads."""
PULLED_TRANSCRIPT: Final = "transcript.jsonl"
SCREEN_NAME: Final = "screen.txt"
# mngr stores logs of its programs under this name, including the program that writes transcripts.
_MNGR_LOGS: Final = "logs"


@dataclass(frozen=True, slots=True)
class TranscriptSources:
    """The transcript files of an agent type; by default, those of mngr."""

    emitters: tuple[str, ...] = ()
    """The names of the emitters in the events of mngr, the most likely first."""
    session_logs: tuple[str, ...] = ()
    """Patterns of the agent's logs, then of its subagents; complete, while those of mngr are delayed."""

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns of all transcripts."""
        return (*self.session_logs, *TRANSCRIPT_PATTERNS)

    @property
    def has_subagents(self) -> bool:
        """Whether subagents write separate logs."""
        return len(self.session_logs) > 1


def choose_transcript(
    existing: Iterable[str], sources: TranscriptSources = TranscriptSources(), agent_id: str = ""
) -> str | None:
    """Return the agent's transcript among the files of a state folder, or None.

    `existing` are paths relative to the state folder. The agent's log is preferred, especially that of the session that
    mngr named after the agent; then the files of mngr, those of `emitters` first.
    """
    paths = list(existing)
    own = [path for path in paths if any(fits_pattern(path, pattern) for pattern in sources.session_logs[:1])]
    if own:
        session = agent_id.removeprefix("agent-")
        return min(own, key=lambda path: (PurePosixPath(path).stem.replace("-", "") != session, path))
    ranked = [(rank, path) for path in paths if (rank := _rank(path, sources.emitters)) is not None]
    return min(ranked)[1] if ranked else None


def subagent_logs(existing: Iterable[str], sources: TranscriptSources, transcript: str) -> list[str]:
    """Return the logs of the subagents in the session of a transcript."""
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
    """Return the agent's transcript on this machine: the live file, or the pulled one, or None.

    For agents with subagents, the live file is the one that the engine writes, which includes the subagents.
    """
    kept = agent_folder / PULLED_TRANSCRIPT if agent_folder is not None else None
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
    """Return the tries and the screen of an agent without a transcript as records."""
    lines: list[bytes] = [_step("system", "This agent writes no transcript: these are its tries and its screen.", None)]
    if record.launched_at is not None:
        lines.append(_step("system", f"launch {record.launch or 1}", record.launched_at))
    for each in record.tries:
        call = f"try-{each.number}"
        lines.append(_line({"type": "step", "source": "agent", "timestamp": _iso(each.at), "message": "",
                            "tool_calls": [{"tool_call_id": call, "function_name": "pytest",
                                            "arguments": {"description": f"try {each.number}"}}]}))  # fmt: skip
        if each.passed is not None:
            content = f"passed in {each.seconds:.1f} s" if each.passed else each.failure or "failed"
            result = {"source_call_id": call, "content": content, "extra": {"is_error": not each.passed}}
            lines.append(_line({"type": "observation", "timestamp": _iso(each.at + each.seconds), "results": [result]}))
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
