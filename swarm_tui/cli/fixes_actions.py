"""Fixes --pr, --patches, --strength, --send-back."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain

if TYPE_CHECKING:
    from swarm_tui.journal.folder import SweepFolder
    from swarm_tui.model.formatting import Progress
    from swarm_tui.model.test_strength import TestStrength
    from swarm_tui.review.changes import Change, Preview
    from swarm_tui.review.review import Review
    from swarm_tui.review.verdicts import Verdict


def add_hand_over_arguments(parser: argparse.ArgumentParser) -> None:
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


def is_asked(arguments: argparse.Namespace) -> bool:
    if arguments.push is not None and not arguments.pr:
        raise UsageError("--push requires --pr", "add --pr")
    if arguments.onto is not None and arguments.push is None:
        raise UsageError("--onto requires --push", "add --pr --push")
    return bool(arguments.pr or arguments.patches is not None)


def hand_over(
    review: Review,
    verdicts: Mapping[str, Verdict],
    preview: Preview,
    arguments: argparse.Namespace,
    sweep: str,
    base: str,
    weaker: Mapping[str, Sequence[str]],
) -> None:
    """Write the patches or the pull request."""
    from swarm_tui.review.shapes import conflict_summary

    if not preview.is_clean:
        raise SwarmError(f"the plan has conflicts: {conflict_summary(review.branch, preview, review.known_parts)}")
    if arguments.patches is not None:
        from swarm_tui.review.hand_over import write_patches

        names = write_patches(review, preview, arguments.patches)
        print("\n".join(str(arguments.patches / name) for name in names))
        print(f"{counted(len(names), 'patch', 'patches')}: `git am {arguments.patches}/*.patch`", file=sys.stderr)
    if arguments.pr:
        _pull_request(review, verdicts, preview, arguments, sweep, base, weaker)


def _pull_request(
    review: Review,
    verdicts: Mapping[str, Verdict],
    preview: Preview,
    arguments: argparse.Namespace,
    sweep: str,
    base: str,
    weaker: Mapping[str, Sequence[str]],
) -> None:
    from swarm_tui.review.hand_over import pull_request

    request = pull_request(review, preview, verdicts, sweep, weaker)
    if arguments.push is None:
        print(f"{request.title}\n\n{request.body}", end="")
        return
    import asyncio
    import tempfile

    from swarm_tui.adapters.forge import find_forge, open_pull_request, push_branch

    onto = arguments.onto or base
    if review.repository.ref(f"refs/heads/{onto}") is None:
        raise UsageError(f"unknown target branch: {plain(onto, 80)}", "name a branch: --onto BRANCH")
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
    """Return the branch with the plan; create it unless the integrated branch is the plan."""
    from swarm_tui.review.apply import applied_branch, apply_plan, plan_apply, reviewed_branch

    if not preview.changes_something:
        if review.repository.ref(f"refs/heads/{review.tip_name}") is None:
            raise UsageError(
                f"cannot push {plain(review.tip_name, 80)}: not a branch", "create a branch of it with `git branch`"
            )
        return review.tip_name
    made = applied_branch(review, preview, sweep)
    if made:
        return made
    branch = arguments.apply or reviewed_branch(review, sweep)
    return apply_plan(review, plan_apply(review, branch, reverted=preview.chosen, is_drop=True), sweep=sweep).branch


def print_strength(review: Review, folder: SweepFolder | None, *, is_json: bool) -> int:
    """Measure the changed tests that have no result yet, print all, and return 1 if any became weaker."""
    import asyncio

    from swarm_tui.strength.review import strength_of_review

    strength, claims = strength_of_review(review, folder)
    show = _show_progress if sys.stderr.isatty() else _say_nothing
    found = asyncio.run(strength.measure(show))
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    if is_json:
        print(json.dumps([strength_as_json(each, claims.get(each.test, "")) for each in found], indent=2))
    else:
        for row in strength_as_list(found, claims):
            print(row)
    return 1 if any(each.is_weaker for each in found) else 0


def _show_progress(progress: Progress) -> None:
    print(f"\r\x1b[K{progress.words}", end="", file=sys.stderr, flush=True)


def _say_nothing(progress: Progress) -> None:
    return


def strength_as_json(strength: TestStrength, claim: str) -> dict[str, Any]:
    """Return a changed test as JSON."""
    return {
        **strength.model_dump(mode="json"),
        "is_weaker": strength.is_weaker,
        "is_toothless": strength.is_toothless,
        "words": strength.words,
        "claim": claim,
    }


def strength_as_list(found: list[TestStrength], claims: dict[str, str]) -> list[str]:
    """Return the changed tests as lines; weaker ones with the reason that the agent gives."""
    rows = []
    for strength in found:
        sign = "▼" if strength.is_weaker else "○" if strength.is_toothless else " "
        rows.append(f"{sign} {plain(strength.test)}  {strength.words or 'not weaker'}")
        if not (strength.is_weaker or strength.is_toothless):
            continue
        for mark in strength.signs:
            place = f"line {mark.line}" if mark.line else "gone"
            rows.append(f"    {place}: {' -> '.join(part for part in (mark.before, mark.after) if part)}")
        rows += [f"    no longer detects: {fault}" for fault in strength.missed[:5]]
        claim = claims.get(strength.test, "")
        rows += [f"    agent: {plain(claim, 200)}"] if claim else []
    weaker = sum(strength.is_weaker for strength in found)
    rows.append(f"{len(found)} changed or new tests, {weaker} weaker")
    return rows


def send_back(review: Review, folder: SweepFolder, fix: Change, comment: str) -> None:
    """Request that the engine sends a fix or a hunk back to its agent, and record the reason."""
    import asyncio

    from swarm_tui.cli.engine_requests import send_request
    from swarm_tui.journal.open import open_sweep
    from swarm_tui.journal.requests import RequestKind
    from swarm_tui.review.open import hunk_text
    from swarm_tui.review.verdicts import Verdict
    from swarm_tui.sweep.resume import check_continued
    from swarm_tui.sweep.start import start_engine

    if not comment.strip():
        raise UsageError("--send-back requires a reason for the agent", "add --why TEXT")
    opened = open_sweep(folder)
    records = [record for record in opened.state.tests() if record.branch in fix.branches]
    author = next((record for branch in fix.branches for record in records if record.branch == branch), None)
    if author is None:
        raise UsageError(f"no agent in {folder.name} for {plain(fix.title, 60)!r}")
    asyncio.run(check_continued(folder, opened.spec))
    begin = partial(start_engine, folder, opened.spec.engine_environment)
    if not opened.has_running_engine:
        begin()
        opened = open_sweep(folder)
    commit, hunk = fix.hunk_of or fix.id, hunk_text(review, fix) or None
    # An engine that is about to exit does not read requests.
    send_request(
        opened, RequestKind.REVISE, tests=[author.test], text=comment.strip(), fix=commit, hunk=hunk, begin_again=begin
    )
    review.set_verdict(fix, Verdict.LATER, comment.strip())
    print(f"#{fix.rank} sent back to {author.agent}; to wait for it: `swarm-tui wait --until done`", file=sys.stderr)
