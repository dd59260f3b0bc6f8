"""Command tutorial: blocks, check, fill, sync."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from swarm_tui.cli.progress import print_progress
from swarm_tui.cli.status import open_block_lines
from swarm_tui.cli.sweep_options import (
    add_display_options,
    add_options,
    checked_ci_output,
    read_options,
    say_cost,
    show_sweep,
)
from swarm_tui.cli.sweeps import repository_root
from swarm_tui.cli.wait_bar import WaitBar
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.files import read_regular
from swarm_tui.journal.folder import SweepFolder, write_beside
from swarm_tui.journal.open import open_sweep
from swarm_tui.model.formatting import counted
from swarm_tui.model.options import AGENTS, THEN
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.sweep.start import start_engine
from swarm_tui.tutorial.blocks import Block, parse_blocks, parse_unfilled
from swarm_tui.tutorial.check import TutorialCheck, check_tutorial, choose_blocks, narrow_check
from swarm_tui.tutorial.citations import TestFunction
from swarm_tui.tutorial.read import TEST_FILE_PATTERNS, read_blocks, read_tests, read_text


def add_sweep_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the common arguments of fill and sync."""
    groups = add_options(parser, "tutorial")
    agents = groups[AGENTS]
    agents.add_argument(
        "--batch", type=int, default=4, metavar="N", help="give each agent N blocks, 1 to 50 (default: 4)"
    )
    agents.add_argument(
        "--material",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="give agents this file or folder to read; repeatable",
    )
    agents.add_argument("--prompt", dest="mapper_prompt", metavar="FILE", help="use this prompt template (jinja2)")
    add_display_options(groups[THEN])


def sweep_tutorial(arguments: argparse.Namespace) -> int:
    """Start a sweep over the blocks of a tutorial and show it; return 0 if there is nothing to do."""
    from swarm_tui.sweep.order import begin_sweep
    from swarm_tui.sweep.tutorial_order import TutorialOptions, prepare_tutorial

    options = TutorialOptions(
        action=arguments.action,
        tutorial=arguments.file,
        tests=arguments.tests if arguments.action == "sync" else None,
        batch=arguments.batch,
        material=tuple(arguments.material),
    )
    output = checked_ci_output(arguments)
    patience = WaitBar(Path.cwd())
    prepared = patience.wait(
        prepare_tutorial(read_options(arguments), options, Path.cwd(), patience.say, mngr=arguments.mngr)
    )
    name = plain(str(arguments.file), 200)
    if prepared is None:
        is_fill = arguments.action == "fill"
        done = "each comment has commands" if is_fill else "each block has a test, and each test a block"
        print_progress(f"{name}: {done}; nothing to do")
        return 0
    spec, tests, loop = prepared
    spec = say_cost(spec, [test.test for test in tests], print_progress)
    folder = begin_sweep(spec, tests)
    blocks = counted(len(loop.items), "block")
    removed = f", {len(loop.removed)} tests of removed blocks" if loop.removed else ""
    print_progress(
        f"sweep {folder.name}: {blocks} for {counted(len(tests), 'agent')}{removed}, {counted(spec.slots, 'slot')}"
    )
    start_engine(folder, spec.engine_environment)
    code = show_sweep(folder, arguments, output=output)
    _print_closing_lines(folder)
    return code


def _print_closing_lines(folder: SweepFolder) -> None:
    """Print the open blocks and the command to review the branch."""
    opened = open_sweep(folder)
    for line in open_block_lines(opened):
        print_progress(line)
    if opened.state.integration.branch:
        print_progress(f"to keep or revert each block: `swarm-tui fixes {folder.name}`")


DESCRIPTION = """A tutorial is a shell script of blocks: commands with comments, separated by empty lines. A test cites
its block with e2e.write_tutorial_block(\"\"\"...\"\"\") or with a section "Tutorial block:" in its docstring. Agents
can write missing commands below a comment (fill) and missing tests of a block (sync). Each block is a separate commit
that you can keep or revert."""
EXAMPLES = """\
  swarm-tui tutorial blocks tutorial.sh               list blocks with line, title and section
  swarm-tui tutorial check tutorial.sh                find comments without commands
  swarm-tui tutorial check tutorial.sh tests/e2e      find blocks without a test, tests without a block
  swarm-tui tutorial check tutorial.sh tests --lenient --json
                                                      also accept a block's lines in a test's source
  swarm-tui tutorial fill tutorial.sh                 have agents write missing commands
  swarm-tui tutorial sync tutorial.sh tests/e2e       have agents write missing and remove obsolete tests
  swarm-tui fixes                                     keep or revert each block
  swarm-tui tutorial install-command                  install a slash command for Claude Code
Exit code 1: a block has no test or a test no block, a test file is unreadable, or agents did not succeed."""
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
        help="the folder or file with the tests (default: check that each comment has commands)",
    )
    check.add_argument(
        "--lenient",
        action="store_true",
        help="also accept a test whose source contains the lines of the block in order",
    )
    check.add_argument(
        "--block",
        action="append",
        default=[],
        metavar="BLOCK",
        help="check only this block, by line or title; repeatable",
    )
    check.add_argument("--json", action="store_true", help="print the results as JSON")
    fill = actions.add_parser("fill", help="have agents write missing commands below comments", allow_abbrev=False)
    fill.add_argument("file", type=Path, metavar="FILE", help="the tutorial script")
    add_sweep_arguments(fill)
    sync = actions.add_parser("sync", help="have agents write missing tests of blocks", allow_abbrev=False)
    sync.add_argument("file", type=Path, metavar="FILE", help="the tutorial script")
    sync.add_argument("tests", type=Path, metavar="TESTS_DIR", help="the folder with the tests")
    add_sweep_arguments(sync)
    install = actions.add_parser("install-command", help="write a slash command for Claude Code", allow_abbrev=False)
    install.add_argument("--dir", type=Path, metavar="DIR", help="the project (default: this repository or folder)")


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
    blocks = read_blocks(path)
    print(json.dumps(blocks_as_json(str(path), blocks), indent=2) if as_json else blocks_as_text(str(path), blocks))
    return 0


def _check(arguments: argparse.Namespace) -> int:
    path, is_lenient = arguments.file, arguments.lenient
    blocks = read_blocks(path)
    chosen = choose_blocks(blocks, arguments.block)
    found = check_tutorial(blocks, read_tests(arguments.tests, with_source=is_lenient), is_lenient=is_lenient)
    if arguments.block:
        found = narrow_check(found, chosen)
    print(json.dumps(check_as_json(found), indent=2) if arguments.json else check_as_text(found, str(path)))
    return 0 if found.is_whole else 1


def _check_comments(path: Path, names: Sequence[str], *, as_json: bool) -> int:
    text = read_text(path)
    blocks, waiting = parse_blocks(text), parse_unfilled(text)
    if names:
        chosen = choose_blocks([*blocks, *waiting], names)
        waiting = tuple(block for block in waiting if block in chosen)
    result = comments_as_json(len(blocks), waiting) if as_json else None
    print(json.dumps(result, indent=2) if result is not None else comments_as_text(str(path), len(blocks), waiting))
    return 1 if waiting else 0


def _install_command(folder: Path | None) -> int:
    place = install_slash_command(folder or repository_root(Path.cwd()))
    print(place)
    return 0


def blocks_as_json(tutorial: str, blocks: Sequence[Block]) -> dict[str, Any]:
    """Return the blocks of a tutorial as JSON values."""
    return {
        "file": tutorial,
        "blocks": [
            {
                "line": block.line,
                "end_line": block.end_line,
                "title": block.title,
                "section": block.section,
                "text": block.text,
                "commands": list(block.commands),
            }
            for block in blocks
        ],
    }


def blocks_as_text(tutorial: str, blocks: Sequence[Block]) -> str:
    """Return the blocks of a tutorial as text, by section, with lines and titles."""
    lines = [f"{plain(tutorial)}: {counted(len(blocks), 'block')}"]
    section: str | None = None
    width = len(str(blocks[-1].line)) if blocks else 1
    for block in blocks:
        if block.section != section:
            section = block.section
            lines += ["", plain(section) or "(no section)"]
        lines.append(f"  {block.line:>{width}}  {plain(block.title, limit=100)}")
    return "\n".join(lines)


def comments_as_json(blocks: int, waiting: Sequence[Block]) -> dict[str, Any]:
    return {"blocks": blocks, "comments_without_commands": [{"line": each.line, "text": each.text} for each in waiting]}


def comments_as_text(tutorial: str, blocks: int, waiting: Sequence[Block]) -> str:
    """Return the comments without commands as text."""
    name = plain(tutorial)
    lines = [f"{name}: {counted(blocks, 'block')}", ""]
    if not waiting:
        return "\n".join([*lines, "each comment has commands"])
    lines.append(f"{counted(len(waiting), 'comment')} without commands")
    return "\n".join([*lines, *(f"  {name}:{each.line}  {plain(each.title, limit=100)}" for each in waiting)])


def check_as_json(check: TutorialCheck) -> dict[str, Any]:
    """Return the results of a check as JSON values."""
    return {
        "blocks": check.blocks,
        "tests": check.tests,
        "uncited_blocks": [{"line": block.line, "text": block.text} for block in check.uncited_blocks],
        "unmatched_tests": [_place(each.test) for each in check.unmatched_tests],
        "near_misses": [
            {
                **_place(miss.test),
                "block_line": miss.block.line,
                "likeness": miss.likeness,
                "difference": list(miss.difference),
            }
            for miss in check.near_misses
        ],
        "refused_citations": [
            {**_place(each.test), "reason": refusal} for each in check.unmatched_tests for refusal in each.test.refusals
        ],
        "duplicates": [
            {"lines": [block.line for block in same], "text": same[0].text} for same in check.duplicate_blocks
        ],
        "shadowed_tests": [asdict(each) for each in check.shadowed_tests],
        "broken_files": [asdict(each) for each in check.broken_files],
    }


def check_as_text(check: TutorialCheck, tutorial: str) -> str:
    """Return the results of a check as text."""
    name = plain(tutorial)
    files = counted(check.files, "file")
    lines = [f"{name}: {counted(check.blocks, 'block')}, {counted(check.tests, 'test')} in {files}"]
    for part in (
        _broken_lines(check),
        _uncited_lines(check, name),
        _unmatched_lines(check),
        _near_lines(check, name),
        _duplicate_lines(check, name),
        _shadowed_lines(check),
    ):
        found = list(part)
        lines += ["", *found] if found else []
    if not check.files:
        lines += ["", f"no test files found; test files are named {' or '.join(TEST_FILE_PATTERNS)}"]
    if check.is_whole:
        lines += ["", "each block has a test, and each test a block"]
    return "\n".join(lines)


def _broken_lines(check: TutorialCheck) -> Iterator[str]:
    if check.broken_files:
        yield f"{counted(len(check.broken_files), 'file')} unreadable; their tests are not counted"
    for broken in check.broken_files:
        yield f"  {plain(broken.file)}:{broken.line}  {plain(broken.reason)}"


def _uncited_lines(check: TutorialCheck, name: str) -> Iterator[str]:
    if check.uncited_blocks:
        yield f"{counted(len(check.uncited_blocks), 'block')} without a test"
    near_lines = {miss.block.line for miss in check.near_misses}
    for block in check.uncited_blocks:
        yield f"  {name}:{block.line}  {plain(block.title, limit=100)}"
        if block.line not in near_lines:
            yield from (f"      {line}" for line in plain_lines(block.text).split("\n"))


def _unmatched_lines(check: TutorialCheck) -> Iterator[str]:
    if check.unmatched_tests:
        yield f"{counted(len(check.unmatched_tests), 'test')} without a block"
    for each in check.unmatched_tests:
        yield f"  {_where(each.test)}  {each.reason}"


def _near_lines(check: TutorialCheck, name: str) -> Iterator[str]:
    if check.near_misses:
        yield f"{counted(len(check.near_misses), 'near miss', 'near misses')}: the block has changed"
    for miss in check.near_misses:
        yield f"  {_where(miss.test)}  - citation, + {name}:{miss.block.line}"
        yield from (f"      {plain_lines(line)}" for line in miss.difference)


def _duplicate_lines(check: TutorialCheck, name: str) -> Iterator[str]:
    if check.duplicate_blocks:
        yield f"{counted(len(check.duplicate_blocks), 'block')} more than once; a citation refers to all of them"
    for same in check.duplicate_blocks:
        places = ", ".join(str(block.line) for block in same)
        yield f"  {name}: lines {places}  {plain(same[0].title, limit=100)}"


def _shadowed_lines(check: TutorialCheck) -> Iterator[str]:
    if check.shadowed_tests:
        yield f"{counted(len(check.shadowed_tests), 'test')} never run, because a later test has the same name"
    for each in check.shadowed_tests:
        yield f"  {plain(each.file)}:{each.line}  {plain(each.name)} (again in line {each.later_line})"


def _place(test: TestFunction) -> dict[str, Any]:
    return {"file": test.file, "line": test.line, "name": test.name}


def _where(test: TestFunction) -> str:
    return f"{plain(test.file)}:{test.line}  {plain(test.name)}"


COMMAND_FILE: Final = Path(".claude/commands/swarm-tutorial.md")
TEXT: Final = Path(__file__).parents[1] / "tutorial" / "swarm-tutorial.md"
_MARK: Final = b"<!-- written by `swarm-tui tutorial install-command`"


def install_slash_command(project: Path) -> Path:
    """Write the command into a project and return its path; raise UsageError if another file has this path."""
    if not project.is_dir():
        raise UsageError(f"not a folder: {plain(str(project), 200)}", "name the folder of the project with --dir")
    path = project / COMMAND_FILE
    try:
        if path.is_symlink() or (path.exists() and not _is_ours(path)):
            raise UsageError(
                f"{plain(str(path), 200)} exists, and swarm-tui did not write it", "move or remove the file"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        write_beside(path, TEXT.read_bytes(), mode=0o666)
    except OSError as error:
        raise SwarmError(f"cannot write {plain(str(path), 200)}: {error.strerror or error}") from error
    return path


def _is_ours(path: Path) -> bool:
    return path.is_file() and _MARK in read_regular(path)
