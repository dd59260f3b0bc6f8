"""Reads the page (index.html) of a run of `mngr tmr`: only there are the ids of its tests. Hostile until parsed."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from swarm_tui.model.text import plain

ROWS_LIMIT: Final = 100_000
TEST_LIMIT: Final = 2_000
SUMMARY_LIMIT: Final = 8_000
_CELLS_LIMIT: Final = 20
_NO_BRANCH: Final = "-"
# Agents write HTML into the page, so that anything may be unclosed or nested. The tags that matter are found by
# themselves, each in one step and without going back: an HTML parser needs minutes for what is made to delay it.
_TAG: Final = re.compile(r"""<(/?)(h[1-6]|tr|t[dh]|code)(?![\w-])((?:[^<>"']|"[^"<]*"|'[^'<]*')*+)>""", re.IGNORECASE)
_ANY_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]*>")
_SECTION_ID: Final = re.compile(r"""(?<![\w-])id\s*=\s*["']?sec-([\w-]+)""", re.IGNORECASE)
_SECTION_WORDS: Final = re.compile(r"\s*([A-Z_]{4,40}) \(\d+\)\s*<")
"""The heading of a section on the first pages, which had no ids."""
_PROSE: Final = re.compile(r"""(?<![\w-])(?:colspan|class\s*=\s*["']?md\b)""", re.IGNORECASE)
"""Marks the cells with what an agent wrote."""
_CHANGE: Final = re.compile(r"([A-Z_]{4,40}) ?/?(SUCCEEDED|FAILED|BLOCKED|✓|✗|▬)")
_SIGNS: Final = {"✓": "SUCCEEDED", "✗": "FAILED", "▬": "BLOCKED"}


class PageRow(NamedTuple):
    """What the page says of one agent."""

    section: str
    """A word of `tmr/sections.py`, or one of a newer page."""
    test: str
    agent: str
    branch: str = ""
    changes: tuple[tuple[str, str], ...] = ()
    """The kinds of its changes, each with its status."""
    summary: str = ""
    is_in_prose: bool = False
    """Whether it stands within what an agent wrote, unless that was left unclosed."""


def read_page(content: str) -> list[PageRow]:
    """Return the rows of a page in its order; what is no row of a table of agents is passed over."""
    reader = _PageReader(content)
    for tag in _TAG.finditer(content):
        reader.take(tag)
    reader.end_row(len(content))
    return reader.rows


@dataclass
class _PageReader:
    """Collects the cells of each row below a heading that names a section."""

    content: str
    rows: list[PageRow] = field(default_factory=list)
    section: str = ""
    cells: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    """The cells that hold code: the agent first, then the branch."""
    summary: str = ""
    cell_start: int | None = None
    is_code: bool = False
    is_prose: bool = False
    is_in_prose: bool = False

    def take(self, tag: re.Match[str]) -> None:
        """Go on with the next tag."""
        slash, name, attributes = tag[1], tag[2].lower(), tag[3]
        if name == "code":
            self.is_code = True
        elif name in ("td", "th"):
            self._end_cell(tag.start())
            if not slash and name == "td" and len(self.cells) < _CELLS_LIMIT:
                self.cell_start, self.is_code = tag.end(), False
                self.is_prose = _PROSE.search(attributes) is not None
        elif name == "tr":
            is_in_prose = self.cell_start is not None and self.is_prose and not slash
            self.end_row(tag.start())
            self.is_in_prose = is_in_prose
        elif not slash:
            self._take_heading(tag)

    def end_row(self, end: int) -> None:
        """Keep what was read of a row."""
        self._end_cell(end)
        cells, codes, summary = self.cells, self.codes, self.summary
        self.cells, self.codes, self.summary = [], [], ""
        if not cells and summary and self.rows and not self.rows[-1].summary:
            # Newer pages have it in a row of its own.
            self.rows[-1] = self.rows[-1]._replace(summary=summary)
        if not self.section or len(cells) < 2 or len(self.rows) >= ROWS_LIMIT:
            return
        # Cells are test, [changes,] agent, branch, [merged].
        named = codes or cells[2 if len(cells) > 3 else 1 :]
        agent, branch = named[0], named[1] if len(named) > 1 else ""
        changes = tuple((kind, _SIGNS.get(word, word)) for kind, word in _CHANGE.findall(cells[1]))
        if cells[0] and agent:
            branch = "" if branch == _NO_BRANCH else branch
            self.rows.append(PageRow(self.section, cells[0], agent, branch, changes, summary, self.is_in_prose))

    def _end_cell(self, end: int) -> None:
        if self.cell_start is None:
            return
        # In the page a <wbr> stands after every ::, which is no text and so leaves no trace.
        limit = SUMMARY_LIMIT if self.is_prose else 2 * TEST_LIMIT
        text = self.content[self.cell_start : min(end, self.cell_start + 4 * limit)]
        cell = html.unescape(_ANY_TAG.sub("", text)).strip()[:limit]
        self.cell_start = None
        if self.is_prose:
            self.summary = self.summary or cell
            return
        self.cells.append(plain(cell, TEST_LIMIT))
        if self.is_code:
            self.codes.append(self.cells[-1])

    def _take_heading(self, tag: re.Match[str]) -> None:
        found = _SECTION_ID.search(tag[3]) or _SECTION_WORDS.match(self.content, tag.end())
        # Any other heading is part of what an agent wrote.
        if found is not None:
            self.end_row(tag.start())
            self.section = found[1].upper()
