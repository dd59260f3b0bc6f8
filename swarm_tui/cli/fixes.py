"""`swarm-tui fixes`: list the fixes of a sweep or a branch, preview reverts, and apply the plan."""

from __future__ import annotations

import argparse
import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm_tui.cli.fixes_actions import add_hand_over_arguments, hand_over, is_asked
from swarm_tui.cli.open import has_terminal
from swarm_tui.cli.sweeps import chosen_sweep
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain

if TYPE_CHECKING:
    from swarm_tui.journal.folder import SweepFolder
    from swarm_tui.review.changes import Change, Preview
    from swarm_tui.review.review import Review
    from swarm_tui.review.verdicts import Verdict

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
    add_hand_over_arguments(parser)
    parser.add_argument(
        "--apply", nargs="?", const="", metavar="BRANCH", help="apply the plan on a new branch (name SWEEP first)"
    )
    parser.add_argument(
        "--drop", action="store_true", help="with --apply: leave the fixes out instead of adding reverts"
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.drop and arguments.apply is None:
        raise UsageError("--drop requires --apply", "add --apply")
    if arguments.send_back:
        return _send_back(arguments)
    if _wants_screen(arguments):
        return _show_screen(arguments)
    with _open_review(arguments) as (review, sweep):
        if arguments.strength:
            from swarm_tui.cli.fixes_actions import print_strength

            return print_strength(review, _find_folder(arguments) if sweep else None, is_json=arguments.json)
        review.load_parts()
        review.load_judged_hunks()
        if arguments.json:
            for fix in review.fixes:
                review.load_hunks(fix)
        chosen = _chosen_verdicts(review, arguments)
        verdicts = _verdicts(review, chosen)
        review.load_left_out()
        reverted = [commit for commit, verdict in verdicts.items() if verdict == "revert"]
        preview = review.preview_of([*reverted, *(fix.id for fix in review.taken)])
        if not review.fixes:
            print("note: no commit is marked [FIX_IMPL]; to review all commits, add --all", file=sys.stderr)
        elif unlisted := review.branch.unlisted:
            commits = f"{unlisted} of {counted(len(review.branch.commits), 'commit')} not listed"
            print(f"note: {commits}, they are not marked [FIX_IMPL]; to list all, add --all", file=sys.stderr)
        for doubt in review.branch.doubts:
            print(f"note: {doubt}", file=sys.stderr)
        for risk in review.branch.risk_lines:
            print(f"warning: {risk}", file=sys.stderr)
        if review.store.damaged:
            print(f"note: {review.store.damaged} damaged lines in {review.store.folder.verdicts}", file=sys.stderr)
        if is_asked(arguments):
            base = arguments.base or _base_name(arguments)
            weaker = _weakened_tests(review, arguments, sweep)
            hand_over(review, verdicts, preview, arguments, sweep, base, weaker)
            return 0
        result: dict[str, Any] = {}
        if arguments.apply is not None:
            result = _apply(review, sweep, arguments, chosen, preview)
        _print_plan(review, verdicts, preview, arguments, sweep, result)
    return 0 if preview.is_clean else 1


def _send_back(arguments: argparse.Namespace) -> int:
    from swarm_tui.cli.fixes_actions import send_back

    if arguments.base is not None:
        raise UsageError(
            "--send-back conflicts with --base: the branch has no agents", "name a sweep instead of --base"
        )
    with _open_review(arguments) as (review, _):
        send_back(review, _find_folder(arguments), _find_fix(review, arguments.send_back), arguments.why)
    return 0


def _wants_screen(arguments: argparse.Namespace) -> bool:
    """Return whether to open the room: on a terminal, without an option that prints or plans."""
    is_printed = arguments.list or arguments.json or arguments.diff or arguments.strength or is_asked(arguments)
    is_printed = is_printed or arguments.apply is not None
    is_planned = bool(arguments.revert or arguments.keep or arguments.why)
    return has_terminal() and not is_printed and not is_planned


def _show_screen(arguments: argparse.Namespace) -> int:
    from swarm_tui.room.splash import splash

    if arguments.base is None:
        folder = _find_folder(arguments)
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


def _base_name(arguments: argparse.Namespace) -> str:
    from swarm_tui.journal.open import open_sweep

    return open_sweep(_find_folder(arguments)).spec.base_name


def _find_folder(arguments: argparse.Namespace) -> SweepFolder:
    return chosen_sweep(arguments.target, Path.cwd())


@contextmanager
def _open_review(arguments: argparse.Namespace) -> Iterator[tuple[Review, str]]:
    """Yield the review and the name of its sweep ("" for a branch)."""
    from swarm_tui.adapters.git import Repository
    from swarm_tui.review.open import review_sweep
    from swarm_tui.review.review import Review

    if arguments.base is not None:
        repository = Repository.open(Path.cwd())
        sweep = ""
        review = Review.open(repository, arguments.base, arguments.target or "HEAD", is_all=arguments.all)
    else:
        folder = _find_folder(arguments)
        sweep = folder.name
        review = review_sweep(folder, is_all=arguments.all)
    with review:
        yield review, sweep


def _verdicts(review: Review, chosen: dict[str, Verdict]) -> dict[str, Verdict]:
    """Return the verdicts on all test changes, fixes and hunks; those of this call override recorded ones."""
    from swarm_tui.review.verdicts import verdict_of_hunks

    found: dict[str, Verdict | None] = {part.id: review.verdict(part) for part in review.known_parts}
    for fix in review.fixes:
        whole = chosen.get(fix.id)
        own = {hunk.id: whole or review.verdict(hunk) for hunk in review.known_hunks(fix)}
        own |= {hunk: chosen[hunk] for hunk in own if hunk in chosen}
        is_split = bool(own) and (fix.id not in chosen or len(set(own.values())) > 1)
        found[fix.id] = verdict_of_hunks(list(own.values())) if is_split else whole or review.verdict(fix)
        found |= own
    found |= {commit: verdict for commit, verdict in chosen.items() if commit not in found or found[commit] is None}
    return {commit: verdict for commit, verdict in found.items() if verdict is not None}


def _chosen_verdicts(review: Review, arguments: argparse.Namespace) -> dict[str, Verdict]:
    from swarm_tui.review.verdicts import Verdict

    reverted = [_find_fix(review, name) for name in _names(arguments.revert)]
    kept = [_find_fix(review, name) for name in _names(arguments.keep)]
    for fix in kept:
        if fix in reverted:
            raise UsageError(f"fix {fix.rank} is in both --keep and --revert", "name it once")
    chosen = {fix.id: Verdict.REVERT for fix in reverted} | {fix.id: Verdict.KEEP for fix in kept}
    row = review.branch.tests
    if row is not None and row.id in chosen:
        # A verdict on row 0 applies to each of its test changes without its own verdict.
        chosen = {part.id: chosen[row.id] for part in review.known_parts} | chosen
        del chosen[row.id]
    return chosen


def _names(given: Iterable[str]) -> list[str]:
    return [name.strip() for names in given for name in names.split(",") if name.strip()]


def _find_fix(review: Review, name: str) -> Change:
    """Return the fix with a rank, such as 3 or #3, or a revision."""
    commit: str | None = ""
    row = review.branch.tests
    by_rank = {str(fix.rank): fix for fix in (*review.fixes, *((row,) if row is not None else ()))}
    by_rank |= {f"0.{number}": part for number, part in enumerate(review.known_parts, 1)}
    rank, dot, number = name.removeprefix("#").partition(".")
    if dot and rank != "0" and number.isdecimal() and rank in by_rank:
        return _find_hunk(review, by_rank[rank], int(number))
    found = by_rank.get(name.removeprefix("#"))
    if found is None:
        beginning = [fix for fix in review.fixes if len(name) >= 4 and fix.id.startswith(name.lower())]
        commit = beginning[0].id if len(beginning) == 1 else review.repository.find(name)
        found = review.branch.find(commit) if commit else None
    if found is not None:
        return found
    others = any(known.id == commit for known in review.branch.commits)
    hint = "the commit is not marked [FIX_IMPL]: add --all" if others else "run `swarm-tui fixes --list`"
    raise UsageError(f"unknown fix: {plain(name, 80)}", hint)


def _find_hunk(review: Review, fix: Change, number: int) -> Change:
    hunks = review.load_hunks(fix)
    if not 1 <= number <= len(hunks):
        listed = ", ".join(f"{fix.rank}.{place} {plain(hunk.title, 60)}" for place, hunk in enumerate(hunks[:20], 1))
        problem = f"fix {fix.rank} has {counted(len(hunks), 'hunk')}, not {number}"
        raise UsageError(problem, f"use {fix.rank} for the whole fix, or one of {listed}")
    return hunks[number - 1]


def _apply(
    review: Review, sweep: str, arguments: argparse.Namespace, chosen: dict[str, Verdict], preview: Preview
) -> dict[str, Any]:
    from swarm_tui.review.apply import apply_plan, checkout_hint, plan_apply, reviewed_branch
    from swarm_tui.review.changes import Kind

    branch = arguments.apply or reviewed_branch(review, sweep)
    proposal = plan_apply(review, branch, reverted=preview.chosen, is_drop=arguments.drop)
    given = [(fix, verdict) for commit, verdict in chosen.items() if (fix := review.find(commit)) is not None]
    # Hunks last: a verdict on the whole fix would override them.
    given.sort(key=lambda each: each[0].kind is Kind.HUNK)
    review.set_verdicts(
        [(fix, verdict) for fix, verdict in given if review.verdict(fix) != verdict or arguments.why], arguments.why
    )
    applied = apply_plan(review, proposal, sweep=sweep)
    commits = counted(applied.commits, "new commit")
    print(f"{applied.branch} is now {applied.commit[:12]} ({commits})", file=sys.stderr)
    print(f"to check it out: {checkout_hint(review.repository, applied)}", file=sys.stderr)
    return {"applied": {"branch": applied.branch, "commit": applied.commit, "commits": applied.commits}}


def _print_diff(review: Review, preview: Preview) -> None:
    """Print the diff from the base to the plan: sanitized on a terminal, otherwise as git wrote it, for `git apply`.

    A diff with control characters is written only to regular files, because a pipe may lead to a terminal.
    """
    from swarm_tui.model.text import is_safe_to_print
    from swarm_tui.review.shapes import conflict_summary

    if preview.tree is None:
        print(
            f"the plan has conflicts: {conflict_summary(review.branch, preview, review.known_parts)}", file=sys.stderr
        )
    elif sys.stdout.isatty():
        print("\n".join(review.net_diff(preview).lines))
    else:
        raw = review.raw_diff_of(review.branch.base_tree, preview.tree)
        if not is_safe_to_print(raw) and not stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode):
            raise SwarmError(
                "the diff contains control characters that can harm a terminal",
                "write it to a file: swarm-tui fixes --diff > plan.diff",
            )
        sys.stdout.flush()
        sys.stdout.buffer.write(raw)


def _weakened_tests(review: Review, arguments: argparse.Namespace, sweep: str) -> Mapping[str, Sequence[str]]:
    """Return sentences on how fixes weaken, remove or rename tests, by commit."""
    from swarm_tui.strength.review import strength_of_review

    strength, _ = strength_of_review(review, _find_folder(arguments) if sweep else None)
    return strength.sentences((*review.fixes, *review.taken))


def _print_plan(
    review: Review,
    verdicts: dict[str, Verdict],
    preview: Preview,
    arguments: argparse.Namespace,
    sweep: str,
    result: dict[str, Any],
) -> None:
    from swarm_tui.review.ranking import read_measured_effects
    from swarm_tui.review.shapes import conflict_summary, review_as_json, review_as_list
    from swarm_tui.review.verdicts import closing_line

    branch, parts = review.branch, review.known_parts
    effects = read_measured_effects(review.outcome, branch.not_measured)
    weaker = {} if arguments.diff else _weakened_tests(review, arguments, sweep)
    if arguments.json:
        shown = review_as_json(branch, verdicts, preview, parts, review.known_hunks, effects, weaker)
        print(json.dumps(shown | result, indent=2))
    elif arguments.diff:
        _print_diff(review, preview)
    else:
        for row in review_as_list(branch, verdicts, parts, review.known_hunks, effects, weaker):
            print(row)
        if not preview.is_clean:
            print(f"the plan has conflicts: {conflict_summary(branch, preview, parts)}")
        elif preview.changes_something:
            left_out = f", {counted(len(preview.left_out), 'test change')} left out" if preview.left_out else ""
            hunks = f", {counted(len(preview.hunks), 'hunk')} of other fixes" if preview.hunks else ""
            print(f"the plan is clean: {len(preview.reverted)} reverted{hunks}{left_out}, tree {preview.tree}")
        print(closing_line(verdicts, [fix.id for fix in review.fixes]))
