"""`swarm-tui tutorial`: the blocks of a tutorial, whether its tests still fit to it, and agents that write both."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from swarm_tui.cli.tutorial_sweep import add_sweep_arguments, sweep_tutorial

DESCRIPTION = """A tutorial is a shell script of blocks: commands with their comments, an empty line between one block
and the next. A test cites the block that it is about, by e2e.write_tutorial_block(\"\"\"...\"\"\") or by a part
"Tutorial block:" in its docstring. Agents can write what is missing: the commands below a comment (fill), the tests of
a block (sync), one commit for each block, to be kept or reverted one by one."""
EXAMPLES = """\
  swarm-tui tutorial blocks tutorial.sh               every block with its line, title and section
  swarm-tui tutorial check tutorial.sh                comments that have no commands
  swarm-tui tutorial check tutorial.sh tests/e2e      blocks without a test, tests without a block
  swarm-tui tutorial check tutorial.sh tests --lenient --json
                                                      a block's lines in a test's source count as well
  swarm-tui tutorial fill tutorial.sh                 agents write the commands below such comments
  swarm-tui tutorial sync tutorial.sh tests/e2e       agents write the tests; those of removed blocks are to go
  swarm-tui fixes                                     then: keep or revert each block
  swarm-tui tutorial install-command                  the same as a slash command for Claude Code
Exit code 1: a block or a test is without the other, a test file could not be read, or agents did not succeed."""
_ACTIONS = "blocks|check|fill|sync|install-command"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar=_ACTIONS)
    blocks = actions.add_parser("blocks", help="list the blocks of a tutorial", allow_abbrev=False)
    blocks.add_argument("file", type=Path, metavar="FILE", help="the tutorial script")
    blocks.add_argument("--json", action="store_true", help="print the blocks as JSON")
    check = actions.add_parser("check", help="compare a tutorial with the tests that cite it", allow_abbrev=False)
    check.add_argument("file", type=Path, metavar="FILE", help="the tutorial script")
    check.add_argument(
        "tests",
        type=Path,
        nargs="?",
        metavar="TESTS_DIR",
        help="the folder (or one file) with the tests; without it, whether every comment has its commands",
    )
    check.add_argument(
        "--lenient",
        action="store_true",
        help="a test also stands for a block whose lines appear in order in its source",
    )
    check.add_argument(
        "--block", action="append", default=[], metavar="BLOCK", help="only this block, by line or title (repeatable)"
    )
    check.add_argument("--json", action="store_true", help="print the findings as JSON")
    fill = actions.add_parser("fill", help="agents write commands below comments without any", allow_abbrev=False)
    fill.add_argument("file", type=Path, metavar="FILE", help="the tutorial script")
    add_sweep_arguments(fill)
    sync = actions.add_parser("sync", help="agents write tests for blocks without any", allow_abbrev=False)
    sync.add_argument("file", type=Path, metavar="FILE", help="the tutorial script")
    sync.add_argument("tests", type=Path, metavar="TESTS_DIR", help="the folder with the tests")
    add_sweep_arguments(sync)
    install = actions.add_parser("install-command", help="write a slash command for Claude Code", allow_abbrev=False)
    install.add_argument("--dir", type=Path, metavar="DIR", help="the project (default: this repository, or folder)")


def run(arguments: argparse.Namespace) -> int:
    match arguments.action:
        case "blocks":
            return _list_blocks(arguments.file, as_json=arguments.json)
        case "check" if arguments.tests is None:
            return _check_comments(arguments.file, arguments.block, as_json=arguments.json)
        case "check":
            return _check(arguments)
        case "install-command":
            return _install_command(arguments.dir)
        case _:
            return sweep_tutorial(arguments)


def _list_blocks(path: Path, *, as_json: bool) -> int:
    from swarm_tui.tutorial.files import read_blocks
    from swarm_tui.tutorial.output import blocks_as_json, blocks_as_text

    blocks = read_blocks(path)
    print(json.dumps(blocks_as_json(str(path), blocks), indent=2) if as_json else blocks_as_text(str(path), blocks))
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from swarm_tui.tutorial.check import check_tutorial, choose_blocks, narrow_check
    from swarm_tui.tutorial.files import read_blocks, read_tests
    from swarm_tui.tutorial.output import check_as_json, check_as_text

    path, is_lenient = arguments.file, arguments.lenient
    blocks = read_blocks(path)
    chosen = choose_blocks(blocks, arguments.block)
    found = check_tutorial(blocks, read_tests(arguments.tests, with_source=is_lenient), is_lenient=is_lenient)
    if arguments.block:
        found = narrow_check(found, chosen)
    print(json.dumps(check_as_json(found), indent=2) if arguments.json else check_as_text(found, str(path)))
    return 0 if found.is_whole else 1


def _check_comments(path: Path, names: Sequence[str], *, as_json: bool) -> int:
    from swarm_tui.tutorial.blocks import parse_blocks, parse_unfilled
    from swarm_tui.tutorial.check import choose_blocks
    from swarm_tui.tutorial.files import read_text
    from swarm_tui.tutorial.output import comments_as_json, comments_as_text

    text = read_text(path)
    blocks, waiting = parse_blocks(text), parse_unfilled(text)
    if names:
        chosen = choose_blocks([*blocks, *waiting], names)
        waiting = tuple(block for block in waiting if block in chosen)
    result = comments_as_json(len(blocks), waiting) if as_json else None
    print(json.dumps(result, indent=2) if result is not None else comments_as_text(str(path), len(blocks), waiting))
    return 1 if waiting else 0


def _install_command(folder: Path | None) -> int:
    from swarm_tui.cli.sweeps import repository_root
    from swarm_tui.tutorial.slash_command import install_slash_command

    place = install_slash_command(folder or repository_root(Path.cwd()))
    print(place)
    return 0
