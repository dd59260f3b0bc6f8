"""The folder `docs`: pages that are made from the code, so that they cannot say anything else than it does."""

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

Made from the code by `python -m tests.docs`; a test fails where a page says something else than the code.

| page | what it lists |
| --- | --- |
| [commands](commands.md) | every command with its options and examples |
| [keys](../tutorial/keys.md) | every key of the room; [a first walk](../tutorial/walk.md) has those that one needs |
| [configuration](configuration.md) | the config file, environment variables, and where files are kept |
| [JSON](json.md) | what `--json` prints, what stands in a sweep's folder, and the [schemas](schemas) |
| [pictures](../screenshots/README.md) | the screens of the room |
| [agents](agents.md) | for authors of other agents: what an agent gets, and what it hands in |
| [records](../swarm_tui/agents/records.md) | work that the offline agent plays |
| [benchmarks](../tests/bench/README.md) | speed and memory beside other programs: what is measured, and the goals |
| [last figures](../tests/bench/FIGURES.md) | of each benchmark, with date and machine |
| [attacks](../tests/attacks/README.md) | kills, damage, hostile agents: what was tried, and what did not hold |
| [field](../tests/field/README.md) | sweeps over whole projects |
| [mutants](../tests/mutants/README.md) | small faults in the core that no quick test notices |
"""
