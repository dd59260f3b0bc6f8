"""`swarm-tui tutorial`: the blocks of a tutorial, and whether its tests still fit to it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

DESCRIPTION = """A tutorial is a shell script of blocks: commands with their comments, an empty line between one block
and the next. A test cites the block that it is about, by e2e.write_tutorial_block(\"\"\"...\"\"\") or by a part
"Tutorial block:" in its docstring."""
EXAMPLES = """\
  swarm-tui tutorial blocks tutorial.sh               every block with its line, title and section
  swarm-tui tutorial check tutorial.sh tests/e2e      blocks without a test, tests without a block
  swarm-tui tutorial check tutorial.sh tests --lenient --json
                                                      a block's lines in a test's source count as well
Exit code 1: a block or a test is without the other, or a test file could not be read."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `swarm-tui tutorial`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="blocks|check")
    blocks = actions.add_parser("blocks", help="list the blocks of a tutorial", allow_abbrev=False)
    blocks.add_argument("file", type=Path, metavar="FILE", help="the tutorial script")
    blocks.add_argument("--json", action="store_true", help="print the blocks as JSON")
    check = actions.add_parser("check", help="compare a tutorial with the tests that cite it", allow_abbrev=False)
    check.add_argument("file", type=Path, metavar="FILE", help="the tutorial script")
    check.add_argument("tests", type=Path, metavar="TESTS_DIR", help="the folder (or one file) with the tests")
    check.add_argument(
        "--lenient",
        action="store_true",
        help="a test also stands for a block whose lines appear in order in its source",
    )
    check.add_argument("--json", action="store_true", help="print the findings as JSON")


def run(arguments: argparse.Namespace) -> int:
    """List the blocks, or compare them with the tests."""
    if arguments.action == "blocks":
        return _list_blocks(arguments.file, as_json=arguments.json)
    return _check(arguments.file, arguments.tests, is_lenient=arguments.lenient, as_json=arguments.json)


def _list_blocks(path: Path, *, as_json: bool) -> int:
    from swarm_tui.tutorial.files import read_blocks
    from swarm_tui.tutorial.words import blocks_as_json, blocks_in_words

    blocks = read_blocks(path)
    print(json.dumps(blocks_as_json(str(path), blocks), indent=2) if as_json else blocks_in_words(str(path), blocks))
    return 0


def _check(path: Path, tests: Path, *, is_lenient: bool, as_json: bool) -> int:
    from swarm_tui.tutorial.check import check_tutorial
    from swarm_tui.tutorial.files import read_blocks, read_tests
    from swarm_tui.tutorial.words import check_as_json, check_in_words

    found = check_tutorial(read_blocks(path), read_tests(tests, with_source=is_lenient), is_lenient=is_lenient)
    print(json.dumps(check_as_json(found), indent=2) if as_json else check_in_words(found, str(path)))
    return 0 if found.is_whole else 1
