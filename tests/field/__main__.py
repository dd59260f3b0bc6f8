"""`python -m tests.field [NAME ...]`: sweeps over whole projects, and prints what was right about each.

Without names all of them. The published sources are fetched once and kept in ~/.cache/swarm-field (SWARM_FIELD_CACHE).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from swarm_tui.adapters.provision import find_mngr
from tests.field.made import MADE
from tests.field.public import PUBLIC
from tests.field.sweep import Row, sweep_over

_HEADINGS = ("project", "collected", "interpreter", "results", "fix", "unchanged", "nothing left", "seconds")


def main() -> int:
    projects = {project.name: project for project in (*PUBLIC, *MADE)}
    parser = argparse.ArgumentParser(prog="python -m tests.field", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(projects)}")
    parser.add_argument("--quick", action="store_true", help="only those that CI tries")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - projects.keys()
    if unknown:
        parser.error(f"no project is called {', '.join(sorted(unknown))}")
    chosen = [project for project in projects.values() if project.name in arguments.names or not arguments.names]
    mngr_path = asyncio.run(find_mngr()).path
    print(_line(_HEADINGS), flush=True)
    faults = 0
    for project in chosen:
        if arguments.quick and not project.is_quick:
            continue
        with tempfile.TemporaryDirectory(prefix="swarm-field-") as root:
            try:
                row = sweep_over(project, mngr_path, Path(root))
            except Exception as error:
                print(f"{project.name}: {error}", file=sys.stderr)
                row = Row.of_nothing("not tried")
        cells = ["yes" if cell == "yes" else "NO" for _, cell in row.cells]
        print(_line((project.name, *cells, f"{row.seconds:.0f}")), flush=True)
        for name, cell in row.faults.items():
            print(f"    {name}: {cell}", flush=True)
        faults += len(row.faults)
    return 1 if faults else 0


def _line(cells: tuple[str, ...]) -> str:
    return f"{cells[0]:16}" + "".join(f"{cell:>13}" for cell in cells[1:])


if __name__ == "__main__":
    sys.exit(main())
