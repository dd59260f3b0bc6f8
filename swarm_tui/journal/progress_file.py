"""The progress of the built-in integrator, written to a file that the room and the commands read."""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from swarm_tui.files import read_regular, replacing
from swarm_tui.integrator.events import Integration
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.formatting import Progress, duration
from swarm_tui.model.text import parse_json, plain

PROGRESS_FILE: Final = "progress.json"
WRITTEN_EVERY: Final = 0.3
_SIZE_LIMIT: Final = 10_000


class ProgressFile:
    """Writes progress a few times a second at most. Write errors are ignored."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._doing = ""
        self._written_at = -WRITTEN_EVERY

    def write(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.doing == self._doing and now - self._written_at < WRITTEN_EVERY:
            return
        self._doing, self._written_at = progress.doing, now
        # Not synced to disk, because progress is useless after a crash.
        with contextlib.suppress(OSError), replacing(self._path, is_synced=False) as draft:
            draft.write(json.dumps({"at": time.time(), **asdict(progress)}).encode())


def integration_progress(folder: SweepFolder, integration: Integration, now: float) -> Progress | None:
    """Return the progress of a running integration; None if none is running."""
    if integration.state != "integrating":
        return None
    since = integration.started_at or 0.0
    text = plain(integration.last_line, 200) or f"for {duration(now - since)}"
    return read_progress(folder.integrator / PROGRESS_FILE, now, since) or Progress(text)


def read_progress(path: Path, now: float, since: float = 0.0) -> Progress | None:
    """Return the progress in a file; None if it is missing, invalid, or older than `since`."""
    try:
        fields = parse_json(read_regular(path, _SIZE_LIMIT))
        at, left, whole = float(fields["at"]), fields.get("seconds_left"), fields.get("whole")
        if at < since:
            return None
        progress = Progress(
            doing=plain(str(fields["doing"]), 100),
            done=max(0, int(fields["done"])),
            total=max(0, int(fields["total"])),
            noun=plain(str(fields["noun"]), 20),
            whole=float(whole) if whole is not None else None,
        )
        return replace(progress, seconds_left=max(0.0, float(left) - (now - at)) if left is not None else None)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None
