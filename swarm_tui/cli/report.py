"""`swarm-tui report`: write the results of a sweep as static HTML."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_tui.adapters.web import serve_folder
from swarm_tui.cli.progress import opened_sweep

if TYPE_CHECKING:
    from swarm_tui.model.shapes import PageJson

DESCRIPTION = """Write the results of a sweep as static HTML: numbers and timeline, each test with its tries, changes,
transcripts and recordings, everything that needs you, and the integrated branch with verdicts. The page opens offline,
from disk, or from any web server. Secrets in known formats are masked; read the page before you share it, because
masking can miss secrets."""
EXAMPLES = """\
  swarm-tui report                         write the newest sweep to report/ in its folder
  swarm-tui report 20261118 -o page        write this sweep to ./page
  swarm-tui report --serve                 also serve it to browsers on this machine
  swarm-tui report --json | jq -r .page    print its path, for scripts
Folders with other files than a report of swarm-tui are not overwritten."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sweep", nargs="?", metavar="SWEEP", help="an id, the beginning of one, or a folder (default: the newest)"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="write to this folder")
    parser.add_argument(
        "--serve", nargs="?", const=0, type=int, metavar="PORT", help="serve the page on 127.0.0.1 until ctrl+c"
    )
    parser.add_argument("--json", action="store_true", help="print the path and numbers as JSON")


def run(arguments: argparse.Namespace) -> int:
    from swarm_tui.report.page import write_report

    sweep = opened_sweep(arguments.sweep, Path.cwd())
    folder = (arguments.output or sweep.folder.root / "report").expanduser().resolve()
    started = time.monotonic()
    written = write_report(folder, sweep, time.time())
    seconds = time.monotonic() - started
    tests = len(sweep.state.records)
    print(f"{tests:,} tests, {written.files:,} files, {written.size / 1e6:.1f} MB in {seconds:.1f} s", file=sys.stderr)
    if arguments.json:
        result: PageJson = {
            "sweep": sweep.spec.sweep,
            "page": str(written.page),
            "tests": tests,
            "files": written.files,
            "bytes": written.size,
            "seconds": round(seconds, 3),
        }
        print(json.dumps(result), flush=True)
    elif arguments.serve is None:
        print(written.page)
    if arguments.serve is not None:
        serve_folder(folder, arguments.serve, lambda address: _print_address(address, arguments.json))
    return 0


def _print_address(address: str, is_json: bool) -> None:
    print(address, file=sys.stderr if is_json else sys.stdout, flush=True)
    print("served to this machine only; press ctrl+c to stop", file=sys.stderr)
