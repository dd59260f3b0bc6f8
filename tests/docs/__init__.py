"""Generate the pages of the folder `docs` from the code."""

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
    """Return the text of every page, by its path in the folder."""
    from tests.docs.agents import agents_page
    from tests.docs.commands import commands_page
    from tests.docs.configuration import configuration_page
    from tests.docs.shapes import json_page, schemas

    return {
        "README.md": _INDEX,
        "agents.md": agents_page(),
        "commands.md": commands_page(),
        "configuration.md": configuration_page(),
        "json.md": json_page(),
        **{f"schemas/{name}.json": text for name, text in schemas().items()},
    }


_INDEX: Final = """\
# Reference

Generated from the code by `python -m tests.docs`; a test fails if a page is out of date.

| page | content |
| --- | --- |
| [commands](commands.md) | commands with options and examples |
| [keys](../tutorial/keys.md) | keys of the room; [a first walk](../tutorial/walk.md) explains the most important ones |
| [configuration](configuration.md) | the config file, environment variables, and locations of files |
| [JSON](json.md) | output of `--json`, files of a sweep, and the [schemas](schemas) |
| [pictures](../screenshots/README.md) | the screens of the room |
| [agents](agents.md) | for authors of other agents: input, environment and report of an agent |
| [records](../swarm_tui/agents/records.md) | recorded work for the offline agent |
| [benchmarks](../tests/bench/README.md) | speed and memory compared with other programs: measurements and goals |
| [last figures](../tests/bench/FIGURES.md) | results of each benchmark, with date and machine |
| [attacks](../tests/attacks/README.md) | kills, damaged files, hostile agents: tests and results |
| [field](../tests/field/README.md) | sweeps of whole projects |
| [mutants](../tests/mutants/README.md) | mutants of the core that no quick test detects |
"""
