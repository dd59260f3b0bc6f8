"""Patches of a plan, and a pull request with gh (GitHub) or glab (GitLab)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.history import EVERY_SUBMODULE
from swarm_tui.adapters.processes.environment import scrubbed_environment
from swarm_tui.adapters.processes.run import Finished, run_process
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.model.formatting import counted
from swarm_tui.model.masking import mask_secrets
from swarm_tui.model.report import IntegratorReport
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.review.apply import build_clean_branch, hunks_left_out
from swarm_tui.review.changes import Change, Preview
from swarm_tui.review.picking import CommitBuilder
from swarm_tui.review.ranking import Effect, read_measured_effects, read_tip_results, sentences_about_branch
from swarm_tui.review.review import Review
from swarm_tui.review.shapes import conflict_summary
from swarm_tui.review.test_changes import is_taken
from swarm_tui.review.verdicts import Verdict, VerdictLine


def plan_tip(review: Review, preview: Preview) -> str:
    """Build the plan as a branch without the reverted fixes; return its tip, which only the review contains."""
    if not preview.is_clean:
        raise SwarmError(f"the plan does not build: {conflict_summary(review.branch, preview, review.known_parts)}")
    if not preview.changes_something:
        return review.branch.tip
    builder = CommitBuilder(review.space, review.branch.tip)
    build_clean_branch(review, preview, builder)
    return builder.tip


def write_patches(review: Review, preview: Preview, folder: Path) -> list[str]:
    """Write the plan's commits as patches into a new or empty folder; return the names in the order of `git am`."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty", "give a new folder")
    with review.space.retained():
        tip = plan_tip(review, preview)
        folder.mkdir(parents=True, exist_ok=True)
        # Ignore the user's git settings, because `git am` must produce the previewed tree.
        words = ("--quiet", "--no-signature", "--no-attach", "--no-signoff", "--full-index", "--binary")
        views = (
            "--no-ext-diff",
            "--no-textconv",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            "--no-relative",
            EVERY_SUBMODULE,
        )
        commits = f"{review.branch.base}..{tip}"
        review.space.repository.run("format-patch", *words, *views, "-o", str(folder.absolute()), commits, timeout=300)
    return sorted(path.name for path in folder.iterdir())


_TESTS_NAMED = 5
_LINES_LIMIT = 40


@dataclass(frozen=True, slots=True)
class PullRequest:
    """Title and text of a pull request. Text of agents cannot act as markup, mention or link."""

    title: str
    body: str


def pull_request(
    review: Review,
    preview: Preview,
    verdicts: Mapping[str, Verdict],
    sweep: str = "",
    weaker: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> PullRequest:
    """Return the pull request for the plan with this preview; `weaker` are the tests that fixes weaken, by commit."""
    outcome, branch = review.outcome, review.branch
    measured = read_measured_effects(outcome, branch.not_measured)
    reverted = set(preview.reverted)
    kept = [fix for fix in (*branch.fixes, *review.taken) if fix.id not in reverted]
    parts = [part for part in review.known_parts if part.id not in preview.left_out]
    rows = (*review.fixes, *review.taken, *review.known_parts)
    lines = {fix.id: line for fix in rows if (line := review.verdict_line(fix))}
    unread = [
        fix for fix in kept if fix not in review.taken and verdicts.get(fix.id) not in (Verdict.KEEP, Verdict.PARTLY)
    ]
    sections = [
        _opening(review, kept, parts, unread, sweep),
        _section(
            "Fixes",
            [
                _fix(
                    fix,
                    measured.get(fix.id),
                    lines.get(fix.id),
                    fix in unread,
                    hunks_left_out(review, preview, fix.commit),
                    weaker.get(fix.id, ()),
                )
                for fix in kept
            ],
        ),
        _section("Tests and docs", [_part(part) for part in parts]),
        _section("Reverted", [_dropped(fix, lines) for fix in branch.fixes if fix.id in reverted]),
        _section("Left out", [_dropped(part, lines) for part in review.known_parts if part.id in preview.left_out]),
        _section("About the whole branch", map(_as_code, sentences_about_branch(outcome))),
        *_from_the_integrator(outcome, review.taken),
        _section("Commits to review", map(_as_code, review.branch.risk_lines)),
    ]
    body = "\n".join(section for section in sections if section).rstrip() + "\n"
    return PullRequest(mask_secrets(_title(kept, parts)), mask_secrets(body))


def _title(kept: Sequence[Change], parts: Sequence[Change]) -> str:
    if len(kept) == 1 and not parts:
        return plain(kept[0].title, 100)
    words = [counted(len(kept), "fix", "fixes")] if kept else []
    words += [f"{len(parts)} better {'test' if len(parts) == 1 else 'tests and docs'}"] if parts else []
    return " and ".join(words) or "No changes"


def _opening(
    review: Review, kept: Sequence[Change], parts: Sequence[Change], unread: Sequence[Change], sweep: str
) -> str:
    origin = f"Created by agents, one for each test{f', in sweep {_as_code(sweep)}' if sweep else ''}"
    counts = [counted(len(kept), "fix", "fixes")]
    counts += [counted(len(parts), "test change")] if parts else []
    results = read_tip_results(review.outcome)
    tests = ""
    if results is not None and not results.doubts and not review.reverted:
        total = results.passed + len(results.failed)
        tests = f" With all of these changes, {results.passed} of {counted(total, 'test')} of the sweep pass."
    some = "any fix" if len(unread) == len(kept) else f"{len(unread)} of the fixes"
    review_note = f" No reviewer has looked at {some} yet." if unread else " A reviewer has looked at each fix."
    return f"{origin}: {', '.join(counts)}.{review_note if kept else ''}{tests}\n"


def _fix(
    fix: Change,
    effect: Effect | None,
    line: VerdictLine | None,
    is_unread: bool,
    hunks_out: tuple[Sequence[Change], int],
    weaker: Sequence[str],
) -> str:
    """Return one fix: its effect, and the evidence for and against it."""
    out, total = hunks_out
    facts = [f"`{fix.id[:12]}`", f"+{fix.added} −{fix.removed}"]
    facts += [f"without {len(out)} of its {total} hunks"] if out else []
    if effect is not None:
        is_refused = effect.why_not and not effect.is_measured
        how = f"not measured: {_as_code(effect.why_not)}" if is_refused else effect.source
        facts += [f"turns {counted(len(effect.turned_green), 'test')} green ({how})"] if effect.turned_green else []
        facts += [f"**breaks {counted(len(effect.broken), 'test')}**"] if effect.broken else []
    facts += [f"found by {len(fix.agents)} agents"] if len(fix.agents) > 1 else []
    facts += [f"{fix.origin}: {fix.by_integrator}"] if fix.origin else []
    facts += ["not reviewed yet"] if is_unread else [f"kept by {plain(line.by, 60)}"] if line and line.by else []
    rows = [f"**{_as_code(fix.title)}** ({', '.join(facts)})"]
    rows += [f"  - without {_as_code(hunk.title)}" for hunk in out]
    rows += [f"  - ▲ {_as_code(test)}" for test in (effect.turned_green[:_TESTS_NAMED] if effect else ())]
    rows += [f"  - ▼ {_as_code(test)}" for test in (effect.broken[:_TESTS_NAMED] if effect else ())]
    rows += [f"  - ▼ {_as_code(words)}" for words in weaker[:_TESTS_NAMED]]
    rows += [f"  - {_as_code(line.why)}"] if line and line.why and not is_unread else []
    return "\n".join(rows)


def _part(part: Change) -> str:
    return f"{_as_code(part.title)}" + (f" ({_as_code(part.tests[0])})" if part.tests else "")


def _dropped(fix: Change, lines: Mapping[str, VerdictLine]) -> str:
    line = lines.get(fix.id)
    return f"{_as_code(fix.title)}" + (f": {_as_code(line.why)}" if line and line.why else "")


def _from_the_integrator(outcome: IntegratorReport, taken: Sequence[Change]) -> list[str]:
    left_out = [left for left in outcome.failed if not is_taken(left, taken)]
    return [
        _section("Unified", [_as_code(item.summary_markdown) for item in outcome.normalizations]),
        _section("Not integrated", [f"{_as_code(item.branch)}: {_as_code(item.reason)}" for item in left_out]),
        _section(
            "Needs action",
            [f"{_as_code(item.title)}\n{_quoted(item.detail_markdown)}".rstrip() for item in outcome.escalations],
        ),
    ]


def _quoted(text: str) -> str:
    rows = plain_lines(text).strip().split("\n")[:_LINES_LIMIT]
    return "\n".join(f"  {_as_code(row)}  " for row in rows if row.strip())


def _section(title: str, items: Iterable[str]) -> str:
    lines = [f"- {item}" for item in items]
    return "\n".join([f"## {title}", "", *lines, ""]) if lines else ""


def _as_code(text: str) -> str:
    """Return text of an agent as code, so that no mention, issue reference, link or markup in it has an effect."""
    return f"`{plain(text, 300).replace('`', chr(0x2019))}`"


_TIMEOUT: Final = 300.0
_BODY_LIMIT: Final = 60_000
"""Characters. GitHub accepts 65,536, and the system 128 KiB in one argument."""
_LOGIN_VARIABLES: Final = ("GH_TOKEN", "GITHUB_TOKEN", "GITLAB_TOKEN", "GLAB_TOKEN", "GH_HOST", "GITLAB_HOST")


def find_forge(repository: Repository, remote: str) -> str:
    """Return the program for a remote, gh or glab; raise UsageError if neither fits."""
    url = repository.setting(f"remote.{remote}.url")
    if url is None:
        raise UsageError(f"unknown remote: {plain(remote, 60)}", "list the remotes with `git remote`: --push REMOTE")
    signs = ("gitlab", os.environ.get("GITLAB_HOST", "").lower().rpartition("/")[2])
    wanted = ("glab", "gh") if any(sign and sign in url.lower() for sign in signs) else ("gh", "glab")
    found = next((program for program in wanted if shutil.which(program) is not None), None)
    if found is None:
        raise UsageError(
            f"pull requests on {plain(url, 100)} need gh or glab, which are not installed",
            "print title and text with --pr alone, and push with `git push`",
        )
    return found


async def push_branch(repository: Repository, remote: str, branch: str) -> None:
    """Push a branch without force."""
    # Use plain git, with the login helpers of the user.
    words = ["git", "push", "--", remote, f"refs/heads/{branch}:refs/heads/{branch}"]
    finished = await _run(words, repository.root)
    if finished.code:
        raise SwarmError(f"cannot push {plain(branch, 100)}: {_last_words(finished)}")


async def open_pull_request(
    forge: str, folder: Path, *, title: str, body: str, branch: str, base: str, scratch: Path
) -> str:
    """Open a pull request and return the output of the program, which is the address."""
    if len(body) > _BODY_LIMIT:
        body = f"{body[:_BODY_LIMIT].rpartition(chr(10))[0]}\n\n… truncated; for the rest run `swarm-tui fixes --pr`.\n"
    text = scratch / "body.md"
    text.write_text(body, encoding="utf-8")
    if forge == "gh":
        words = ["gh", "pr", "create", "--title", title, "--body-file", str(text), "--head", branch, "--base", base]
    else:
        words = ["glab", "mr", "create", "--yes", "--title", title, "--description", body]
        words += ["--source-branch", branch, "--target-branch", base]
    finished = await _run(words, folder)
    if finished.code:
        raise SwarmError(f"branch pushed, but {forge} cannot open the pull request: {_last_words(finished)}")
    return plain(finished.text.strip().split("\n")[-1], 300).strip()


async def _run(words: list[str], folder: Path) -> Finished:
    login = {name: os.environ[name] for name in _LOGIN_VARIABLES if name in os.environ}
    return await run_process(words, cwd=folder, environment=scrubbed_environment(login), timeout=_TIMEOUT)


def _last_words(finished: Finished) -> str:
    lines = (finished.text + finished.error_text).strip().split("\n")
    return plain(" ".join(lines[-3:]), 300)
