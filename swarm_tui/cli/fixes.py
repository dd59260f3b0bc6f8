"""`swarm-tui fixes`: the fixes of a sweep or a branch, the effect of reverting some of them, and applying that plan."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm_tui.cli import fixes_hand_over
from swarm_tui.cli.open import has_terminal
from swarm_tui.cli.sweeps import add_repository_option, chosen_sweep
from swarm_tui.errors import UsageError
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain

if TYPE_CHECKING:
    from swarm_tui.journal.folder import SweepFolder
    from swarm_tui.model.fixes import Fix, Preview
    from swarm_tui.model.verdicts import Verdict
    from swarm_tui.triage.review import Review

DESCRIPTION = """\
Opens the merge view on the fixes of a sweep, or of any linear branch: one after the other, keep or revert.
Without a terminal, or with one of the options below, it prints what was decided and what that would give.
The checkout, the index and all existing commits are left alone."""
EXAMPLES = """\
  swarm-tui fixes                                     the newest sweep of this repository
  swarm-tui fixes --base main integrated              a branch that no sweep of ours made
  swarm-tui fixes --base main integrated --revert 3,a1b2c3d --json
                                                      would the branch build without these two?
  swarm-tui fixes 20261118 --revert 3 --why 'too broad' --apply
                                                      make it so, on swarm/<sweep>/reviewed
  swarm-tui fixes --teeth                             which changed tests notice less than before?
A fix is named by its rank or its commit; 3.2 is its second hunk (--json lists them); 0 is the commit of all test and
doc fixes, 0.3 its third part.
--revert and --keep count for this call, over the verdicts that were given before; with --apply they are kept as
verdicts too. Exit code 1: the plan does not build."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", nargs="?", metavar="SWEEP", help="a sweep; with --base, the tip of a branch")
    parser.add_argument("--base", metavar="REV", help="review the commits from REV to a tip (HEAD when not given)")
    parser.add_argument("--all", action="store_true", help="every commit is a fix, not only those marked [FIX_IMPL]")
    parser.add_argument("--revert", action="append", default=[], metavar="FIX,...", help="revert these")
    parser.add_argument("--keep", action="append", default=[], metavar="FIX,...", help="keep these")
    parser.add_argument("--send-back", metavar="FIX", help="send it back to its agent, which goes on; needs --why")
    parser.add_argument("--why", default="", metavar="TEXT", help="why, for the messages of the reverts")
    printed = parser.add_mutually_exclusive_group()
    printed.add_argument("--list", action="store_true", help="print the list, also on a terminal")
    printed.add_argument("--json", action="store_true", help="print the fixes and the plan as JSON")
    printed.add_argument("--diff", action="store_true", help="print what the plan as a whole does to the base")
    parser.add_argument(
        "--test", default="", metavar="COMMAND", help="what T and V run in place of pytest, in copies of the branch"
    )
    parser.add_argument(
        "--teeth", action="store_true", help="measure whether changed tests notice less; exit code 1 when one does"
    )
    fixes_hand_over.add_arguments(parser)
    parser.add_argument(
        "--apply", nargs="?", const="", metavar="BRANCH", help="make the plan so on a new branch (give SWEEP first)"
    )
    add_repository_option(parser)
    parser.add_argument("--drop", action="store_true", help="with --apply: a clean branch, instead of reverts on top")


def run(arguments: argparse.Namespace) -> int:
    if arguments.drop and arguments.apply is None:
        raise UsageError("--drop says how to apply", "give --apply too")
    if arguments.send_back:
        return _send_back(arguments)
    if _wants_screen(arguments):
        return _show_screen(arguments)
    with _open_review(arguments) as (review, sweep):
        if arguments.teeth:
            from swarm_tui.cli.fixes_teeth import print_teeth

            return print_teeth(review, _find_folder(arguments) if sweep else None, is_json=arguments.json)
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
            print("note: no commit is marked [FIX_IMPL]; --all makes every commit a fix", file=sys.stderr)
        elif unlisted := review.branch.unlisted:
            commits = f"{unlisted} of {counted(len(review.branch.commits), 'commit')} not listed"
            print(f"note: {commits}, for want of [FIX_IMPL]; --all makes every commit a fix", file=sys.stderr)
        for doubt in review.branch.doubts:
            print(f"note: {doubt}", file=sys.stderr)
        for risk in review.branch.risk_lines:
            print(f"look: {risk}", file=sys.stderr)
        if review.store.damaged:
            print(f"note: {review.store.damaged} broken lines in {review.store.folder.verdicts}", file=sys.stderr)
        if fixes_hand_over.is_asked(arguments):
            base = arguments.base or _base_name(arguments)
            return fixes_hand_over.hand_over(review, verdicts, preview, arguments, sweep, base)
        result: dict[str, Any] = {}
        if arguments.apply is not None:
            result = _apply(review, sweep, arguments, chosen, preview)
        _print_plan(review, verdicts, preview, arguments, sweep, result)
    return 0 if preview.is_clean else 1


def _send_back(arguments: argparse.Namespace) -> int:
    from swarm_tui.cli.send_back import send_back

    if arguments.base is not None:
        raise UsageError("no sweep made this branch, so nobody can be asked", "leave out --base")
    with _open_review(arguments) as (review, _):
        send_back(review, _find_folder(arguments), _find_fix(review, arguments.send_back), arguments.why)
    return 0


def _wants_screen(arguments: argparse.Namespace) -> bool:
    """Return whether to open the room: there is a terminal, and no option asks for a plan or for printed output."""
    is_printed = (
        arguments.list or arguments.json or arguments.diff or arguments.teeth or fixes_hand_over.is_asked(arguments)
    )
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
        from swarm_tui.triage.review import Review

        repository = Repository.open(Path.cwd())

        def open_branch() -> Review:
            review = Review.open(repository, arguments.base, arguments.target or "HEAD", is_all=arguments.all)
            review.warm_up()
            return review

        with ThreadPoolExecutor(1) as beside:
            # git reads the branch while the room's modules are imported; an error is reported on the command line.
            opening = beside.submit(open_branch)
            from swarm_tui.room.entry import open_review

        with opening.result() as review:
            return open_review(review, open_branch, name, test_command=arguments.test)


def _base_name(arguments: argparse.Namespace) -> str:
    from swarm_tui.journal.open import open_sweep

    return open_sweep(_find_folder(arguments)).spec.base_name


def _find_folder(arguments: argparse.Namespace) -> SweepFolder:
    return chosen_sweep(arguments.target, Path.cwd(), arguments.repository)


@contextmanager
def _open_review(arguments: argparse.Namespace) -> Iterator[tuple[Review, str]]:
    """Yield the review that the arguments name, and the name of its sweep ("" without one)."""
    from swarm_tui.adapters.git import Repository
    from swarm_tui.triage.review import Review
    from swarm_tui.triage.sweep_review import review_sweep

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
    """Return the verdicts on all parts, fixes and hunks, with those of this call over the given ones."""
    from swarm_tui.model.verdicts import verdict_of_hunks

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
    from swarm_tui.model.verdicts import Verdict

    reverted = [_find_fix(review, name) for name in _names(arguments.revert)]
    kept = [_find_fix(review, name) for name in _names(arguments.keep)]
    for fix in kept:
        if fix in reverted:
            raise UsageError(f"fix {fix.rank} is to be kept and reverted", "name it once")
    chosen = {fix.id: Verdict.REVERT for fix in reverted} | {fix.id: Verdict.KEEP for fix in kept}
    row = review.branch.tests
    if row is not None and row.id in chosen:
        # A verdict on row 0 is one on all its parts that are not named themselves.
        chosen = {part.id: chosen[row.id] for part in review.known_parts} | chosen
        del chosen[row.id]
    return chosen


def _names(given: Iterable[str]) -> list[str]:
    return [name.strip() for names in given for name in names.split(",") if name.strip()]


def _find_fix(review: Review, name: str) -> Fix:
    """Return the fix that a rank, such as 3 or #3, or a revision names."""
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
    hint = "it is not marked [FIX_IMPL]: --all makes every commit a fix" if others else "`swarm-tui fixes` lists them"
    raise UsageError(f"{plain(name, 80)} is none of the {len(review.fixes)} fixes", hint)


def _find_hunk(review: Review, fix: Fix, number: int) -> Fix:
    hunks = review.load_hunks(fix)
    if not 1 <= number <= len(hunks):
        listed = ", ".join(f"{fix.rank}.{place} {plain(hunk.title, 60)}" for place, hunk in enumerate(hunks[:20], 1))
        raise UsageError(f"fix {fix.rank} has {counted(len(hunks), 'hunk')}: {listed}", f"{fix.rank} is all of it")
    return hunks[number - 1]


def _apply(
    review: Review, sweep: str, arguments: argparse.Namespace, chosen: dict[str, Verdict], preview: Preview
) -> dict[str, Any]:
    from swarm_tui.triage.apply import apply_proposal, checkout_hint, propose, reviewed_branch
    from swarm_tui.triage.hunks import HUNK_PREFIX

    branch = arguments.apply or reviewed_branch(review, sweep)
    proposal = propose(review, branch, reverted=preview.chosen, is_drop=arguments.drop)
    given = [(fix, verdict) for commit, verdict in chosen.items() if (fix := review.find(commit)) is not None]
    # Those on hunks last: one on the whole fix would overrule them.
    given.sort(key=lambda each: each[0].id.startswith(HUNK_PREFIX))
    review.set_verdicts(
        [(fix, verdict) for fix, verdict in given if review.verdict(fix) != verdict or arguments.why], arguments.why
    )
    applied = apply_proposal(review, proposal, sweep=sweep)
    made = f"{applied.commits} commit{'' if applied.commits == 1 else 's'}"
    print(f"{applied.branch} is {applied.commit[:12]}: {made} made", file=sys.stderr)
    print(f"to get it: {checkout_hint(review.repository, applied)}", file=sys.stderr)
    return {"applied": {"branch": applied.branch, "commit": applied.commit, "commits": applied.commits}}


def _print_diff(review: Review, preview: Preview) -> None:
    """Print the diff from the base to the plan: as plain text on a terminal, else as git wrote it, for `git apply`."""
    from swarm_tui.triage.review_text import conflict_summary

    if preview.tree is None:
        print(
            f"the plan does not build: {conflict_summary(review.branch, preview, review.known_parts)}", file=sys.stderr
        )
    elif sys.stdout.isatty():
        print("\n".join(review.net_diff(preview).lines))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(review.raw_diff_of(review.branch.base_tree, preview.tree))


def _print_plan(
    review: Review,
    verdicts: dict[str, Verdict],
    preview: Preview,
    arguments: argparse.Namespace,
    sweep: str,
    result: dict[str, Any],
) -> None:
    from swarm_tui.triage.plan import closing_line
    from swarm_tui.triage.review_text import conflict_summary, review_as_json, review_as_list

    if arguments.json:
        print(
            json.dumps(
                review_as_json(review.branch, verdicts, preview, review.known_parts, review.known_hunks) | result,
                indent=2,
            )
        )
    elif arguments.diff:
        _print_diff(review, preview)
    else:
        for row in review_as_list(review.branch, verdicts, review.known_parts, review.known_hunks):
            print(row)
        if not preview.is_clean:
            print(f"the plan does not build: {conflict_summary(review.branch, preview, review.known_parts)}")
        elif preview.changes_something:
            left_out = f", {counted(len(preview.left_out), 'part')} left out" if preview.left_out else ""
            hunks = f", {counted(len(preview.hunks), 'hunk')} of others" if preview.hunks else ""
            print(f"the plan is clean: {len(preview.reverted)} reverted{hunks}{left_out}, tree {preview.tree}")
        print(closing_line(verdicts, [fix.id for fix in review.fixes]))
