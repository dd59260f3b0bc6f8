"""`swarm-tui fixes`: list the fixes of a sweep or a branch, preview reverts, and apply the plan."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_tui.cli.open import has_terminal
from swarm_tui.cli.sweeps import chosen_sweep
from swarm_tui.errors import UsageError
from swarm_tui.model.text import plain
from swarm_tui.room.splash import splash

if TYPE_CHECKING:
    from swarm_tui.review.review import Review

DESCRIPTION = """\
Review the fixes of a sweep, or of any linear branch: keep or revert each one.
Without a terminal, or with one of the options below, print the verdicts and a preview of the plan.
Your checkout, the index and existing commits do not change."""
EXAMPLES = """\
  swarm-tui fixes                                     review the newest sweep of this repository
  swarm-tui fixes --base main integrated              review any branch
  swarm-tui fixes --base main integrated --revert 3,a1b2c3d --json
                                                      preview the branch without these two fixes
  swarm-tui fixes 20261118 --revert 3 --why 'too broad' --apply
                                                      apply the plan on swarm/<sweep>/reviewed
  swarm-tui fixes --strength                          check whether changed tests became weaker
Name a fix by its rank or its commit. 3.2 is the second hunk of fix 3 (--json lists hunks). 0 is the commit of all test
and doc fixes, 0.3 its third test change.
--revert and --keep override earlier verdicts for this call; --apply also records them as verdicts.
Exit code 1: the plan has conflicts."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", nargs="?", metavar="SWEEP", help="a sweep, or with --base the tip of a branch")
    parser.add_argument("--base", metavar="REV", help="review the commits from REV to a tip (default: HEAD)")
    parser.add_argument(
        "--all", action="store_true", help="treat each commit as a fix, not only those marked [FIX_IMPL]"
    )
    parser.add_argument("--revert", action="append", default=[], metavar="FIX,...", help="revert these fixes")
    parser.add_argument("--keep", action="append", default=[], metavar="FIX,...", help="keep these fixes")
    parser.add_argument("--send-back", metavar="FIX", help="send a fix back to its agent for revision; requires --why")
    parser.add_argument("--why", default="", metavar="TEXT", help="the reason, for the messages of the reverts")
    printed = parser.add_mutually_exclusive_group()
    printed.add_argument("--list", action="store_true", help="print the list even on a terminal")
    printed.add_argument("--json", action="store_true", help="print the fixes and the plan as JSON")
    printed.add_argument("--diff", action="store_true", help="print the diff from the base to the plan")
    parser.add_argument(
        "--test", default="", metavar="COMMAND", help="run this command for the keys T and V, instead of pytest"
    )
    parser.add_argument(
        "--strength", action="store_true", help="check whether changed tests became weaker; exit code 1 if any did"
    )
    parser.add_argument("--pr", action="store_true", help="print the title and the text for a pull request")
    parser.add_argument(
        "--push",
        nargs="?",
        const="origin",
        metavar="REMOTE",
        help="with --pr: create and push the branch, and open the pull request with gh or glab",
    )
    parser.add_argument("--onto", metavar="BRANCH", help="with --push: the target branch of the pull request")
    parser.add_argument("--patches", metavar="FOLDER", type=Path, help="write the plan as patches for `git am`")
    parser.add_argument(
        "--apply", nargs="?", const="", metavar="BRANCH", help="apply the plan on a new branch (name SWEEP first)"
    )
    parser.add_argument(
        "--drop", action="store_true", help="with --apply: leave the fixes out instead of adding reverts"
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.drop and arguments.apply is None:
        raise UsageError("--drop requires --apply", "add --apply")
    if arguments.send_back and arguments.base is not None:
        raise UsageError(
            "--send-back conflicts with --base: the branch has no agents", "name a sweep instead of --base"
        )
    if arguments.push is not None and not arguments.pr:
        raise UsageError("--push requires --pr", "add --pr")
    if arguments.onto is not None and arguments.push is None:
        raise UsageError("--onto requires --push", "add --pr --push")
    if _wants_screen(arguments):
        return _show_screen(arguments)
    from swarm_tui.cli.fixes_actions import run_actions

    return run_actions(arguments)


def _wants_screen(arguments: argparse.Namespace) -> bool:
    """Return whether to open the room: on a terminal, without an option that prints or plans."""
    is_printed = arguments.list or arguments.json or arguments.diff or arguments.strength or arguments.pr
    is_written = arguments.patches is not None or arguments.apply is not None
    is_planned = arguments.revert or arguments.keep or arguments.why or arguments.send_back
    return has_terminal() and not (is_printed or is_written or is_planned)


def _show_screen(arguments: argparse.Namespace) -> int:
    if arguments.base is None:
        folder = chosen_sweep(arguments.target, Path.cwd())
        with splash(folder.name, panel="Ranked"):
            from swarm_tui.room.entry import open_fixes

            return open_fixes(folder.root, test_command=arguments.test)
    name = f"{plain(arguments.base, 40)}..{plain(arguments.target or 'HEAD', 40)}"
    with splash(name, panel="Ranked"):
        from concurrent.futures import ThreadPoolExecutor

        from swarm_tui.adapters.git import Repository
        from swarm_tui.review.review import Review

        repository = Repository.open(Path.cwd())

        def open_branch() -> Review:
            review = Review.open(repository, arguments.base, arguments.target or "HEAD", is_all=arguments.all)
            review.warm_up()
            return review

        with ThreadPoolExecutor(1) as beside:
            # Read the branch while importing the room; an error is reported on the command line.
            opening = beside.submit(open_branch)
            from swarm_tui.room.entry import open_review

        with opening.result() as review:
            return open_review(review, open_branch, name, test_command=arguments.test)
