"""Formats a review: as JSON, as a list, and as the text of a pull request. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from swarm_tui.model.fixes import Fix, IntegratedBranch, Preview
from swarm_tui.model.masking import mask_secrets
from swarm_tui.model.outcome import IntegratorOutcome
from swarm_tui.model.text import plain
from swarm_tui.model.verdicts import Verdict, VerdictLine

Verdicts = Mapping[str, Verdict]


def review_as_json(
    branch: IntegratedBranch, verdicts: Verdicts, preview: Preview, parts: Sequence[Fix] = ()
) -> dict[str, Any]:
    """Return the review as it is printed with --json."""
    return {
        "base": branch.base,
        "tip": branch.tip,
        "squashed": branch.squashed,
        "fixes": [
            {
                "rank": fix.rank,
                "commit": fix.id,
                "title": fix.title,
                "branch": fix.branch,
                "agents": list(fix.agents),
                "verdict": verdicts.get(fix.id),
            }
            for fix in branch.fixes
        ],
        "parts": [
            {
                "number": f"0.{number}",
                "id": part.id,
                "title": part.title,
                "tests": list(part.tests),
                "agents": list(part.agents),
                "verdict": verdicts.get(part.id),
            }
            for number, part in enumerate(parts, 1)
        ],
        "plan": {
            "clean": preview.is_clean,
            "tree": preview.tree,
            "reverted": list(preview.reverted),
            "left_out": list(preview.left_out),
            "conflicts": [
                {"commit": conflict.commit, "with": list(conflict.opponents), "paths": list(conflict.paths)}
                for conflict in preview.conflicts
            ],
        },
    }


def review_as_list(branch: IntegratedBranch, verdicts: Verdicts, parts: Sequence[Fix] = ()) -> list[str]:
    """Return one line for each fix: rank, verdict, commit, size, title; before them row 0, and its parts."""
    width = max(len(str(len(branch.fixes))), len(f"0.{len(parts)}") if parts else 1)
    row = branch.tests
    above = [f"{0:>{width}}  {'':<6}  {row.id[:9]}  {_size(row):>11}  {row.title}"] if row is not None else []
    above += [
        f"{f'0.{number}':>{width}}  {verdicts.get(part.id, '·'):<6}  {'':9}  {_size(part):>11}  {part.title}"
        for number, part in enumerate(parts, 1)
    ]
    return above + [
        f"{fix.rank:>{width}}  {verdicts.get(fix.id, '·'):<6}  {fix.id[:9]}  {_size(fix):>11}  {fix.title}"
        for fix in branch.fixes
    ]


def conflict_summary(branch: IntegratedBranch, preview: Preview, parts: Sequence[Fix] = ()) -> str:
    """Return in one sentence which reverts of a plan conflict, and with what; `parts` are those of row 0."""
    titles = {commit.id: plain(commit.subject, 60) for commit in branch.commits}
    titles |= {fix.id: f"#{fix.rank} {plain(fix.title, 60)}" for fix in branch.fixes}
    titles |= {part.id: f"part 0.{number} {plain(part.title, 60)}" for number, part in enumerate(parts, 1)}
    sentences = []
    for conflict in preview.conflicts:
        against = " with " + ", ".join(titles[name] for name in conflict.opponents) if conflict.opponents else ""
        paths = ", ".join(plain(path, 80) for path in conflict.paths[:3]) + (", ..." if len(conflict.paths) > 3 else "")
        sentences.append(f"reverting {titles[conflict.commit]} conflicts{against} in {paths}")
    return "; ".join(sentences)


def _size(fix: Fix) -> str:
    return f"+{fix.added} -{fix.removed}"


def pull_request_text(
    branch: IntegratedBranch,
    lines: Mapping[str, VerdictLine],
    preview: Preview,
    outcome: IntegratorOutcome,
    sweep: str = "",
) -> str:
    """Return a text for a pull request: what stays, what was reverted and why, what was left out."""
    reverted = set(preview.reverted)
    kept = [fix for fix in branch.fixes if fix.id not in reverted]
    sections = [
        f"Fixes{f' of sweep {_as_code(sweep)}' if sweep else ''}, reviewed one by one.\n",
        _section("Fixes", (_fix_line(fix, lines) for fix in kept)),
        _section("Reverted", (_fix_line(fix, lines) for fix in branch.fixes if fix.id in reverted)),
        _squashed(branch, outcome),
        _section("Made uniform", (_as_code(item.summary_markdown) for item in outcome.normalizations)),
        _section("Not integrated", (f"{_as_code(item.branch)}: {_as_code(item.reason)}" for item in outcome.failed)),
        _section(
            "Needs someone",
            (f"{_as_code(item.title)}: {_as_code(item.detail_markdown)}" for item in outcome.escalations),
        ),
    ]
    return mask_secrets("\n".join(section for section in sections if section)).rstrip() + "\n"


def _squashed(branch: IntegratedBranch, outcome: IntegratorOutcome) -> str:
    if branch.squashed is None:
        return ""
    count = len(outcome.squashed_branches)
    return f"All test and documentation fixes are in {branch.squashed[:12]}{f' ({count} branches)' if count else ''}.\n"


def _section(title: str, items: Iterable[str]) -> str:
    lines = [f"- {item}" for item in items]
    return "\n".join([f"## {title}", "", *lines, ""]) if lines else ""


def _fix_line(fix: Fix, lines: Mapping[str, VerdictLine]) -> str:
    line = lines.get(fix.id)
    seen = "" if line and line.verdict in (Verdict.KEEP, Verdict.REVERT) else ", not looked at yet"
    why = f": {_as_code(line.why)}" if line and line.why else ""
    return f"{fix.id[:12]} {_as_code(fix.title)} ({_size(fix)}{seen}){why}"


def _as_code(text: str) -> str:
    """Return an agent's words as code: no mention, no issue reference, no link, no markup of theirs works."""
    return f"`{plain(text, 300).replace('`', chr(0x2019))}`"
