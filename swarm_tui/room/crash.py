"""Writes the report of a crash to a file: a traceback on the terminal could contain text of agents."""

from __future__ import annotations

import platform
import time
from pathlib import Path

from swarm_tui import __version__
from swarm_tui.model.masking import mask_secrets
from swarm_tui.model.text import plain_lines


def write_crash_report(folder: Path, trace: str, *, now: float | None = None) -> str:
    """Write the report and return its path, or the reason why there is none."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
    path = folder / "crashes" / f"{stamp}.txt"
    head = f"swarm-tui {__version__}, Python {platform.python_version()}, {platform.system()}\n\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(head + mask_secrets(plain_lines(trace)), encoding="utf-8")
    except OSError as error:
        return f"no file ({error.strerror or error}): {mask_secrets(plain_lines(trace.strip().splitlines()[-1]))}"
    return str(path)
