"""Renders the page: one HTML file; the browser runs no other script and style than its own."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, Final

from swarm_tui.model.states import MARKS

_SCRIPTS: Final = ("elements.js", "markdown.js", "overview.js", "details.js", "filter.js", "main.js")
PLAYER_FILES: Final = ("asciinema-player.min.js", "asciinema-player.LICENSE")
_STYLES: Final = ("page.css",)


def render_page(summary: dict[str, Any]) -> str:
    """Return the page. Text from agents is in it only as JSON, which the script sets as text."""
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
    """Return the policy of the page: its own script by hash and the files beside it; no network.

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
    """Return JSON that is safe in a script element: no `<` ends it, no line separator breaks it."""
    return (
        json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )


def script_of_data(name: str, value: Any) -> str:
    """Return a script that passes data to the page: a page on a disk cannot fetch files, but it can load scripts."""
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
