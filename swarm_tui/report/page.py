"""Render and write the page."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import shutil
import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, Final, NamedTuple

from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.journal.open import OpenedSweep
from swarm_tui.model.results import MARKS
from swarm_tui.report.content import build_page

_SCRIPTS: Final = ("elements.js", "markdown.js", "overview.js", "details.js", "filter.js", "main.js")
PLAYER_FILES: Final = ("asciinema-player.min.js", "asciinema-player.LICENSE")
_STYLES: Final = ("page.css",)


def render_page(summary: dict[str, Any]) -> str:
    """Return the page. Text of agents is included only as JSON, which the script sets as text nodes."""
    script, style = _script(), _style()
    name = summary.get("title") or f"sweep {summary.get('sweep', '')}"
    return Template(_template("index.html")).substitute(
        title=html.escape(str(name)),
        policy=content_security_policy(),
        style=style,
        script=script,
        summary=json_for_html(summary),
    )


def content_security_policy() -> str:
    """Return the content security policy: the page's script by hash and its data files; no network.

    `strict-dynamic` rather than 'self', because 'self' matches nothing when Firefox opens a page from a disk.
    The player of recordings needs WebAssembly.
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(_script())}' 'strict-dynamic' 'wasm-unsafe-eval'",
            f"style-src '{_hash(_style())}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def json_for_html(value: Any) -> str:
    """Return JSON that is safe in a script element: without `<` and line separators."""
    return (
        json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )


def script_of_data(name: str, value: Any) -> str:
    """Return a script that passes data to the page, because pages on disk can load scripts but not fetch files."""
    return f"swarmReport.receive({json_for_html(name)},{json_for_html(value)});\n"


def vendored(name: str) -> bytes:
    return (files("swarm_tui.report") / "vendor" / name).read_bytes()


@cache
def _script() -> str:
    marks = {name: {"glyph": mark.glyph, "word": mark.word, "pill": mark.pill} for name, mark in MARKS.items()}
    return f'"use strict";\nconst MARKS = {json_for_html(marks)};\n' + "\n".join(_template(name) for name in _SCRIPTS)


@cache
def _style() -> str:
    colours = "".join(f".{name} {{ --mark: var(--{mark.role}); }}\n" for name, mark in MARKS.items())
    return "\n".join([vendored("asciinema-player.css").decode(), colours, *(_template(name) for name in _STYLES)])


def _template(name: str) -> str:
    return (files("swarm_tui.report") / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


MARKER: Final = ".swarm-tui-report"
INDEX: Final = "index.html"
_DATA: Final = "data"
_PLAYER: Final = "player"


class WrittenReport(NamedTuple):
    """The path of the written page, the number of files and their size."""

    page: Path
    files: int
    size: int


def check_folder(folder: Path) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError(f"not a folder: {folder}", "name a folder with -o")
    if (folder / MARKER).is_file() or not any(folder.iterdir()):
        return
    raise UsageError(
        f"{folder} contains other files than a report of swarm-tui; nothing was written",
        "name a new or empty folder with -o",
    )


def write_report(folder: Path, sweep: OpenedSweep, made_at: float) -> WrittenReport:
    """Write the page of a sweep; replace an older report in the folder and keep other files."""
    check_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MARKER).write_text("A report of swarm-tui; the next report replaces it.\n")
        with tempfile.TemporaryDirectory(dir=folder, prefix=".draft-") as draft:
            written = _write_draft(Path(draft), sweep, made_at)
            for name in (_DATA, _PLAYER):
                shutil.rmtree(folder / name, ignore_errors=True)
                os.replace(Path(draft) / name, folder / name)
            os.replace(Path(draft) / INDEX, folder / INDEX)
    except OSError as error:
        raise SwarmError(
            f"cannot write the page to {folder}: {error.strerror or error}", "name another folder with -o"
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
