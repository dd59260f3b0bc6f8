"""The file in which the built-in integrator says how far it is; it is read by whoever looks."""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.formatting import duration
from swarm_tui.model.progress import Progress
from swarm_tui.model.state import Integration
from swarm_tui.model.text import plain
from swarm_tui.regular_file import read_regular

PROGRESS_FILE: Final = "progress.json"
WRITTEN_EVERY: Final = 0.3
_LARGEST: Final = 10_000


class ProgressFile:
    """Writes how far something is, a few times a second at most; what cannot be written is not shown."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._doing = ""
        self._written_at = -WRITTEN_EVERY

    def write(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.doing == self._doing and now - self._written_at < WRITTEN_EVERY:
            return
        self._doing, self._written_at = progress.doing, now
        # It is worth nothing after a crash, so that nothing waits for the disk.
        draft = self._path.with_name(f".{self._path.name}.draft")
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
            draft.write_text(json.dumps({"at": time.time(), **asdict(progress)}), encoding="utf-8")
            os.replace(draft, self._path)


def integration_progress(folder: SweepFolder, integration: Integration, now: float) -> Progress | None:
    """Return how far the integration of a sweep is, as well as its integrator says it; None when none is at work."""
    if integration.state != "integrating":
        return None
    since = integration.started_at or 0.0
    said = plain(integration.last_line, 200) or f"for {duration(now - since)}"
    return read_progress(folder.integrator / PROGRESS_FILE, now, since) or Progress(said)


def read_progress(path: Path, now: float, since: float = 0.0) -> Progress | None:
    """Return what the file says; None when there is none, or when it was written before `since`."""
    try:
        fields = json.loads(read_regular(path, _LARGEST))
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
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None
