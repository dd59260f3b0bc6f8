"""Reads the page (index.html) of a run of `mngr tmr`: only there are the ids of its tests. Hostile until parsed."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final, NamedTuple

ROWS_LIMIT: Final = 100_000
_SECTION: Final = re.compile(r"sec-([A-Z_]+)")
_NO_BRANCH: Final = "-"


class PageRow(NamedTuple):
    """What the page says of one agent."""

    section: str
    """A word of `tmr/sections.py`, or one of a newer page."""
    test: str
    agent: str
    branch: str = ""


def read_page(html: str) -> list[PageRow]:
    """Return the rows of a page in its order; what is no row of a table of agents is passed over."""
    reader = _PageReader()
    reader.feed(html)
    reader.close()
    return reader.rows


class _PageReader(HTMLParser):
    """Collects the cells of each row below a heading that names a section."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.rows: list[PageRow] = []
        self._section = ""
        self._cells: list[str] = []
        self._codes: list[str] = []
        """The cells that hold code: the agent first, then the branch."""
        self._text: list[str] | None = None
        """The text of the open cell; None outside of cells."""
        self._is_code = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag in ("h1", "h2"):
            found = _SECTION.fullmatch(dict(attributes).get("id") or "")
            self._section = found[1] if found else ""
        elif tag == "tr":
            self._cells, self._codes = [], []
        elif tag == "td":
            self._text, self._is_code = [], False
        elif tag == "code" and self._text is not None:
            self._is_code = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "td" and self._text is not None:
            # In the page a <wbr> stands after every ::, which is no text and so leaves no trace.
            cell = "".join(self._text).strip()
            self._cells.append(cell)
            if self._is_code:
                self._codes.append(cell)
            self._text = None
        elif tag == "tr":
            self._add_row()

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def _add_row(self) -> None:
        cells, codes = self._cells, self._codes
        self._cells, self._codes = [], []
        if not self._section or len(cells) < 2 or len(self.rows) >= ROWS_LIMIT:
            return
        agent = codes[0] if codes else cells[1]
        branch = codes[1] if len(codes) > 1 and codes[1] != _NO_BRANCH else ""
        if cells[0] and agent:
            self.rows.append(PageRow(self._section, cells[0], agent, branch))
