"""`swarm-tui fixes --pr`, `--patches` and `--branches`: hands a plan over to others, and pushes only where asked."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain

if TYPE_CHECKING:
    from swarm_tui.model.fixes import Preview
    from swarm_tui.model.verdicts import Verdict
    from swarm_tui.triage.review import Review


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pr", action="store_true", help="print the title and the text of a pull request")
    parser.add_argument(
        "--push",
        nargs="?",
        const="origin",
        metavar="REMOTE",
        help="with --pr: make the branch, push it, and open the pull request with gh or glab",
    )
    parser.add_argument("--onto", metavar="BRANCH", help="with --push: the branch that it is asked to go into")
    parser.add_argument("--patches", metavar="FOLDER", type=Path, help="write the plan as patches for `git am`")
    parser.add_argument("--branches", action="store_true", help="make one branch for each fix that stays")


def is_asked(arguments: argparse.Namespace) -> bool:
    if arguments.push is not None and not arguments.pr:
        raise UsageError("--push opens a pull request", "give --pr too")
    if arguments.onto is not None and arguments.push is None:
        raise UsageError("--onto says where a pull request goes", "give --pr --push too")
    return bool(arguments.pr or arguments.patches is not None or arguments.branches)


def hand_over(
    review: Review,
    verdicts: Mapping[str, Verdict],
    preview: Preview,
    arguments: argparse.Namespace,
    sweep: str,
    base: str,
) -> int:
    """Do what the options ask for; return the exit code."""
    from swarm_tui.triage.review_text import conflict_summary

    if not preview.is_clean:
        raise SwarmError(f"the plan does not build: {conflict_summary(review.branch, preview, review.known_parts)}")
    if arguments.patches is not None:
        from swarm_tui.triage.handing_over import write_patches

        names = write_patches(review, preview, arguments.patches)
        print("\n".join(str(arguments.patches / name) for name in names))
        print(f"{counted(len(names), 'patch', 'patches')}: `git am {arguments.patches}/*.patch`", file=sys.stderr)
    code = _make_branches(review, preview, sweep) if arguments.branches else 0
    if arguments.pr:
        _pull_request(review, verdicts, preview, arguments, sweep, base)
    return code


def _make_branches(review: Review, preview: Preview, sweep: str) -> int:
    from swarm_tui.triage.handing_over import branches_of_fixes

    made = branches_of_fixes(review, preview, sweep)
    for branch in made:
        needed = ", ".join(f"#{fix.rank}" for fix in branch.needed)
        title = plain(branch.fix.title, 80)
        if branch.problem:
            print(f"#{branch.fix.rank} {title}: {branch.problem}", file=sys.stderr)
        else:
            print(f"{branch.name}  {title}" + (f"  (with {needed}, on which it builds)" if needed else ""))
    return 1 if any(branch.problem for branch in made) else 0


def _pull_request(
    review: Review,
    verdicts: Mapping[str, Verdict],
    preview: Preview,
    arguments: argparse.Namespace,
    sweep: str,
    base: str,
) -> None:
    from swarm_tui.triage.pull_request import pull_request

    request = pull_request(review, preview, verdicts, sweep)
    if arguments.push is None:
        print(f"{request.title}\n\n{request.body}", end="")
        return
    import asyncio
    import tempfile

    from swarm_tui.adapters.forge import find_forge, open_pull_request, push_branch

    onto = arguments.onto or base
    if review.repository.ref(f"refs/heads/{onto}") is None:
        raise UsageError(f"{plain(onto, 80)} is no branch that a pull request could go into", "name one: --onto BRANCH")
    forge = find_forge(review.repository, arguments.push)
    branch = _branch_of_plan(review, preview, arguments, sweep)

    async def push_and_open() -> str:
        await push_branch(review.repository, arguments.push, branch)
        with tempfile.TemporaryDirectory(prefix="swarm-pr-") as scratch:
            return await open_pull_request(
                forge,
                review.repository.root,
                title=request.title,
                body=request.body,
                branch=branch,
                base=onto,
                scratch=Path(scratch),
            )

    print(asyncio.run(push_and_open()))


def _branch_of_plan(review: Review, preview: Preview, arguments: argparse.Namespace, sweep: str) -> str:
    """Return the branch that holds the plan; it is made where the integrated one is not it."""
    from swarm_tui.triage.apply import applied_branch, apply_proposal, propose, reviewed_branch

    if not preview.changes_something:
        if review.repository.ref(f"refs/heads/{review.tip_name}") is None:
            raise UsageError(f"{plain(review.tip_name, 80)} is no branch, so it cannot be pushed", "make one of it")
        return review.tip_name
    made = applied_branch(review, preview, sweep)
    if made:
        return made
    branch = arguments.apply or reviewed_branch(review, sweep)
    return apply_proposal(review, propose(review, branch, reverted=preview.chosen, is_drop=True), sweep=sweep).branch
