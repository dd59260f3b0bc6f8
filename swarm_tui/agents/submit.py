"""How our own agents submit work and report presence."""

from __future__ import annotations

import json
import tarfile
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from swarm_tui.agents.contract import ARCHIVE_PATH, BUNDLE_FILE, PACKED_OUTPUT_FOLDER
from swarm_tui.files import replacing

_HUGE = 80_000_000


def write_report(path: Path, report: Mapping[str, Any], breakage: str) -> None:
    """Write the report; broken if the record requires it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report, indent=1)
    if breakage == "outcome":
        text = text[: len(text) // 2]
    with replacing(path, is_synced=False) as file:
        file.write(f"{text}\n".encode())


def publish_archive(state_folder: Path, output_folder: Path, bundle: Path | None, breakage: str) -> None:
    """Pack everything into one archive in the state folder. The work is finished when the archive exists."""
    archive = state_folder / ARCHIVE_PATH
    archive.parent.mkdir(parents=True, exist_ok=True)
    with replacing(archive, is_synced=False) as file:
        if breakage == "archive":
            file.write(b"\x1f\x8b this is not an archive")
            return
        with tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as packed:
            if breakage != "missing":
                packed.add(output_folder, PACKED_OUTPUT_FOLDER)
            if bundle is not None:
                packed.add(bundle, BUNDLE_FILE)
            _add_breakage(packed, breakage)


def _add_breakage(packed: tarfile.TarFile, breakage: str) -> None:
    if breakage == "path":
        content = b"this file is outside of its folder\n"
        for name in ("../../../escaped.txt", "/tmp/swarm-escaped.txt"):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            packed.addfile(entry, BytesIO(content))
        link = tarfile.TarInfo(f"{PACKED_OUTPUT_FOLDER}/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        packed.addfile(link)
    if breakage == "huge":
        entry = tarfile.TarInfo(f"{PACKED_OUTPUT_FOLDER}/huge.bin")
        entry.size = _HUGE
        packed.addfile(entry, BytesIO(bytes(_HUGE)))


EMITTER: Final = "offline/common_transcript"
SCHEMA: Final = "ATIF-v1.7"


class Presence:
    """Writes mngr's `active` file and activity lines, and the transcript."""

    def __init__(self, state_folder: Path, host_folder: Path) -> None:
        self.state_folder = state_folder
        self._active = state_folder / "active"
        self._activity = host_folder / "events" / "mngr" / "activity" / "events.jsonl"
        self._transcript = state_folder / "events" / "offline" / "common_transcript" / "events.jsonl"
        for path in (self._activity, self._transcript):
            path.parent.mkdir(parents=True, exist_ok=True)
        header = {"type": "header", "event_id": f"header-{uuid.uuid4().hex}", "emitter": EMITTER}
        self._write(header | {"schema_version": SCHEMA})

    def set_working(self, is_working: bool) -> None:
        """Mark the agent as working, or as waiting for the user."""
        if is_working:
            self._active.touch()
        else:
            self._active.unlink(missing_ok=True)
        activity = {"source": "mngr/activity", "type": "activity", "event_id": f"evt-{uuid.uuid4().hex}"}
        _append(self._activity, activity | {"timestamp": _now()})

    def write_message(self, text: str) -> None:
        """Write a message of the agent to the terminal and the transcript."""
        print(text, flush=True)
        self._step("agent", message=text)

    def write_answer(self, text: str) -> None:
        """Write the user's answer to the transcript."""
        self._step("user", message=text)

    def write_tool_call(self, name: str, arguments: dict[str, Any], shown: str = "") -> str:
        """Write a tool call to the transcript; return the id for its result."""
        if shown:
            print(shown, flush=True)
        call = f"call-{uuid.uuid4().hex[:12]}"
        self._step("agent", tool_calls=[{"tool_call_id": call, "function_name": name, "arguments": arguments}])
        return call

    def write_tool_result(self, call: str, content: str, *, is_shown: bool = False) -> None:
        if is_shown:
            print(content, flush=True)
        result = {"source_call_id": call, "content": content}
        self._write({"type": "observation", **_stamp(), "results": [result]})

    def _step(self, source: str, **fields: Any) -> None:
        model = {"model_name": "offline"} if source == "agent" else {}
        self._write({"type": "step", **_stamp(), "source": source, "message": "", **model, **fields})

    def _write(self, record: dict[str, Any]) -> None:
        _append(self._transcript, record)


def _stamp() -> dict[str, str]:
    return {"event_id": uuid.uuid4().hex, "emitter": EMITTER, "timestamp": _now()}


def _append(path: Path, record: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")
