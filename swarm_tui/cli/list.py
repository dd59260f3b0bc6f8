"""`swarm-tui list`: list the sweeps of this repository."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from swarm_tui.cli.progress import opened_with_progress
from swarm_tui.cli.status import cost_of, sweep_state
from swarm_tui.cli.sweeps import chosen_sweep, repository_root
from swarm_tui.errors import SwarmError
from swarm_tui.hosts.lines import host_lines
from swarm_tui.journal.folder import list_sweeps
from swarm_tui.model.results import MARKS
from swarm_tui.model.text import plain
from swarm_tui.money.budget import cost_text

DESCRIPTION = """List the sweeps of this repository, newest first, or the sweep in a folder."""
EXAMPLES = """\
  swarm-tui list          list ids, states and counts
  swarm-tui list --json   the same as JSON
  swarm-tui list FOLDER   show a sweep from another machine"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", metavar="FOLDER", help="the folder of a sweep")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """List the sweeps, unreadable ones with the reason."""
    if arguments.folder is not None:
        folders = [chosen_sweep(arguments.folder, Path.cwd())]
    else:
        folders = list_sweeps(repository_root(Path.cwd()))
    rows = [_describe(folder) for folder in reversed(folders)]
    if arguments.json:
        print(json.dumps(rows, indent=1))
    elif not rows:
        print("no sweeps; to start one: `swarm-tui run`")
    for row in rows if not arguments.json else ():
        counts = " · ".join(f"{count} {MARKS[mark].word}" for mark, count in sorted(row["counts"].items()))
        cost = f"  {row['cost']}" if row.get("cost") else ""
        title = f"  {plain(row['title'], 60)}" if row["title"] else ""
        doubts = "".join(f"  ({doubt})" for doubt in row.get("integrity_warnings", ()))
        about = f"{counts or plain(row['reason'], 200)}{cost}{title}{doubts}"
        print(f"{row['sweep']:20} {row['state']:11} {_date(row['created'])}  {about}")
    return 0


def _date(at: float | None) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) if at else " " * 16


def _describe(folder: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"sweep": folder.name, "folder": str(folder.root), "title": "", "created": None, "counts": {}}
    try:
        opened = opened_with_progress(folder)
    except SwarmError as error:
        return row | {"state": "unreadable", "reason": str(error)}
    state = opened.state
    return row | {
        "state": sweep_state(opened),
        "reason": state.ended_reason,
        "title": opened.spec.title,
        "created": opened.spec.created_at,
        "base": opened.spec.base,
        "integrated": state.integration.branch if state.integration.state == "done" else None,
        "hosts": [line.name for line in host_lines(opened.spec, state.hosts, state.tests())],
        **cost_of(opened),
        "integrity_warnings": list(opened.integrity_warnings),
        "cost": cost_text(state, is_imputed=opened.spec.is_cost_imputed),
        "counts": {mark: count for mark, count in state.counts.items() if count},
    }
