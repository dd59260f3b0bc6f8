"""Generate the reference pages of the folder `docs` from the code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).parents[2] / "docs"


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return a table as lines of Markdown."""
    heading = list(headings)
    cells = [heading, ["---"] * len(heading), *(list(row) for row in rows)]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in cells]


def pages() -> Mapping[str, str]:
    """Return the text of every generated page, by its path in the folder."""
    from tests.docs.agents import agents_page
    from tests.docs.commands import commands_page
    from tests.docs.configuration import configuration_page
    from tests.docs.shapes import json_page, schemas
    from tests.room.keys_page import keys_page

    return {
        "agents.md": agents_page(),
        "commands.md": commands_page(),
        "configuration.md": configuration_page(),
        "json.md": json_page(),
        "keys.md": keys_page(),
        **{f"schemas/{name}.json": text for name, text in schemas().items()},
    }
