"""What `swarm-tui fixes` prints and writes: the list, the plan, pull requests, patches, test strength."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from swarm_tui.adapters.git import Repository
from swarm_tui.cli.engine_requests import send_request
from swarm_tui.cli.sweeps import chosen_sweep
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import open_sweep
from swarm_tui.journal.requests import RequestKind
from swarm_tui.model.formatting import Progress, counted
from swarm_tui.model.test_strength import TestStrength
from swarm_tui.model.text import is_safe_to_print, plain
from swarm_tui.review.apply import applied_branch, apply_plan, checkout_hint, plan_apply, reviewed_branch
from swarm_tui.review.changes import Change, Kind, Preview
from swarm_tui.review.hand_over import find_forge, open_pull_request, pull_request, push_branch, write_patches
from swarm_tui.review.open import hunk_text, review_sweep
from swarm_tui.review.ranking import read_measured_effects
from swarm_tui.review.review import Review
from swarm_tui.review.shapes import conflict_summary, review_as_json, review_as_list
from swarm_tui.review.verdicts import Verdict, closing_line, verdict_of_hunks
from swarm_tui.strength.review import strength_of_review
from swarm_tui.sweep.start import start_engine


def run_actions(arguments: argparse.Namespace) -> int:
    """Print or apply the plan, or hand it over. Return the exit code."""
    with _open_review(arguments) as (review, sweep):
        if arguments.send_back:
            send_back(review, _find_folder(arguments), _find_fix(review, arguments.send_back), arguments.why)
            return 0
        if arguments.strength:
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
        if arguments.pr or arguments.patches is not None:
            base = arguments.base or _base_name(arguments)
            weaker = _weakened_tests(review, arguments, sweep)
            hand_over(review, verdicts, preview, arguments, sweep, base, weaker)
            return 0
        result: dict[str, Any] = {}
        if arguments.apply is not None:
            result = _apply(review, sweep, arguments, chosen, preview)
        _print_plan(review, verdicts, preview, arguments, sweep, result)
    return 0 if preview.is_clean else 1


def _base_name(arguments: argparse.Namespace) -> str:
    return open_sweep(_find_folder(arguments)).spec.base_name


def _find_folder(arguments: argparse.Namespace) -> SweepFolder:
    return chosen_sweep(arguments.target, Path.cwd())


@contextmanager
def _open_review(arguments: argparse.Namespace) -> Iterator[tuple[Review, str]]:
    """Yield the review and the name of its sweep ("" for a branch)."""
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
    if not preview.is_clean:
        raise SwarmError(f"the plan has conflicts: {conflict_summary(review.branch, preview, review.known_parts)}")
    if arguments.patches is not None:
        names = write_patches(review, preview, arguments.patches)
        print("\n".join(str(arguments.patches / name) for name in names))
        print(f"{counted(len(names), 'patch', 'patches')}: `git am {arguments.patches}/*.patch`", file=sys.stderr)
    if not arguments.pr:
        return
    request = pull_request(review, preview, verdicts, sweep, weaker)
    if arguments.push is None:
        print(f"{request.title}\n\n{request.body}", end="")
        return
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
        "detects_nothing": strength.detects_nothing,
        "words": strength.words,
        "claim": claim,
    }


def strength_as_list(found: list[TestStrength], claims: dict[str, str]) -> list[str]:
    """Return the changed tests as lines; weaker ones with the reason that the agent gives."""
    rows = []
    for strength in found:
        sign = "▼" if strength.is_weaker else "○" if strength.detects_nothing else " "
        rows.append(f"{sign} {plain(strength.test)}  {strength.words or 'not weaker'}")
        if not (strength.is_weaker or strength.detects_nothing):
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
    # The engine's modules would make `fixes --list` 0.2 s slower.
    from swarm_tui.sweep.resume import check_continued

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
        opened,
        RequestKind.SEND_BACK,
        tests=[author.test],
        text=comment.strip(),
        fix=commit,
        hunk=hunk,
        begin_again=begin,
    )
    review.set_verdict(fix, Verdict.LATER, comment.strip())
    print(f"#{fix.rank} sent back to {author.agent}; to wait for it: `swarm-tui wait --until done`", file=sys.stderr)
