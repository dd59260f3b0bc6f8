"""`swarm-tui report`: the page of a sweep, as a folder that can be sent to anybody."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_tui.cli.sweeps import add_repository_option

if TYPE_CHECKING:
    from swarm_tui.model.shapes import ShownPage

DESCRIPTION = """Make the page of a sweep: its numbers and timeline, every test with its tries, changes, transcripts and
recordings, what needs a person, the integrated branch with verdicts. The folder is static: it opens without a
network, from a disk or any web server. Secrets of known forms are masked."""
EXAMPLES = """\
  swarm-tui report                         the newest sweep, into report/ in its folder
  swarm-tui report 20261118 -o page        that sweep, into ./page
  swarm-tui report --serve                 and show it to browsers on this machine
  swarm-tui report --json | jq -r .page    where it is, for scripts
A folder that holds anything which is no report of swarm-tui is never written to."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", nargs="?", metavar="SWEEP", help="id, its beginning, or folder; else the newest")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="where to write it")
    parser.add_argument(
        "--serve", nargs="?", const=0, type=int, metavar="PORT", help="serve it on 127.0.0.1 until ctrl+c"
    )
    parser.add_argument("--json", action="store_true", help="print where it is, and numbers, as JSON")
    add_repository_option(parser)


def run(arguments: argparse.Namespace) -> int:
    from swarm_tui.adapters.web import serve_folder
    from swarm_tui.cli.sweeps import opened_sweep
    from swarm_tui.report.folder import write_report

    sweep = opened_sweep(arguments.sweep, Path.cwd(), arguments.repository)
    folder = (arguments.output or sweep.folder.root / "report").expanduser().resolve()
    started = time.monotonic()
    written = write_report(folder, sweep, time.time())
    seconds = time.monotonic() - started
    tests = len(sweep.state.records)
    print(f"{tests:,} tests, {written.files:,} files, {written.size / 1e6:.1f} MB in {seconds:.1f} s", file=sys.stderr)
    if arguments.json:
        result: ShownPage = {
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
    print("served to this machine only; ctrl+c ends it", file=sys.stderr)
