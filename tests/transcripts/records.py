"""Transcript records and files for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from swarm_tui.transcripts.pager import Pager
from swarm_tui.transcripts.window import FileSource, Window


def step(message: str, source: str = "agent", at: str = "2026-11-18T06:09:42Z", **more: Any) -> bytes:
    """Return an ATIF step as one line."""
    return line({"type": "step", "event_id": "s", "timestamp": at, "source": source, "message": message} | more)


def call(command: str, call_id: str = "c1", name: str = "Bash") -> bytes:
    """Return an ATIF step that calls a tool."""
    made = {"tool_call_id": call_id, "function_name": name, "arguments": {"command": command}}
    return step("", tool_calls=[made])


def result(content: str, call_id: str = "c1", at: str = "2026-11-18T06:09:43Z", **extra: Any) -> bytes:
    """Return an ATIF observation of one result."""
    told = {"source_call_id": call_id, "content": content} | ({"extra": extra} if extra else {})
    return line({"type": "observation", "event_id": "o", "timestamp": at, "results": [told]})


def line(record: dict[str, Any]) -> bytes:
    """Return a record as one line."""
    return json.dumps(record).encode() + b"\n"


def opened(path: Path, width: int = 80, height: int = 10) -> Pager:
    """Return a pager at the end of the file."""
    pager = Pager(Window(FileSource(path)), width, height)
    pager.poll(0.0)
    return pager


def page_text(pager: Pager) -> list[str]:
    """Return the text of the page."""
    return [(shown.line.prefix + shown.line.text).rstrip() for shown in pager.visible_lines()]
