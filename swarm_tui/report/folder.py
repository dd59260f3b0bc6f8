"""Writes the page and its data files into a folder, but never over files that swarm-tui did not write."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.journal.open import OpenedSweep
from swarm_tui.report.content import build_page
from swarm_tui.report.page import PLAYER_FILES, render_page, script_of_data, vendored

MARKER: Final = ".swarm-tui-report"
INDEX: Final = "index.html"
_DATA: Final = "data"
_PLAYER: Final = "player"


class WrittenReport(NamedTuple):
    """Where the page was written, how many files it has, and their size."""

    page: Path
    files: int
    size: int


def check_folder(folder: Path) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError(f"{folder} is a file", "give a folder with -o")
    if (folder / MARKER).is_file() or not any(folder.iterdir()):
        return
    raise UsageError(
        f"{folder} holds something that is no report of swarm-tui, so nothing was written",
        "give an empty or a new folder with -o",
    )


def write_report(folder: Path, sweep: OpenedSweep, made_at: float) -> WrittenReport:
    """Write the page of a sweep; an older report in the folder is replaced, other files in it stay."""
    check_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MARKER).write_text("A report made by swarm-tui; it is replaced when it is made again.\n")
        with tempfile.TemporaryDirectory(dir=folder, prefix=".draft-") as draft:
            written = _write_draft(Path(draft), sweep, made_at)
            for name in (_DATA, _PLAYER):
                shutil.rmtree(folder / name, ignore_errors=True)
                os.replace(Path(draft) / name, folder / name)
            os.replace(Path(draft) / INDEX, folder / INDEX)
    except OSError as error:
        raise SwarmError(
            f"the page cannot be written to {folder}", f"{error.strerror or error}; give another folder with -o"
        ) from error
    return WrittenReport(folder / INDEX, *written)


def _write_draft(draft: Path, sweep: OpenedSweep, made_at: float) -> tuple[int, int]:
    data, player = draft / _DATA, draft / _PLAYER
    data.mkdir()
    player.mkdir()

    def write_data(name: str, value: object) -> None:
        (data / f"{name}.js").write_text(script_of_data(name, value), encoding="utf-8", errors="replace")

    summary = build_page(sweep, made_at, write_data)
    for name in PLAYER_FILES:
        (player / name).write_bytes(vendored(name))
    (draft / INDEX).write_text(render_page(summary), encoding="utf-8", errors="replace")
    sizes = [path.stat().st_size for path in draft.rglob("*") if path.is_file()]
    return len(sizes), sum(sizes)
