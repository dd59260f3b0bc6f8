"""Formats a review: as JSON, as a list, and as the text of a pull request. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from swarm_tui.model.fixes import Fix, IntegratedBranch, Preview
from swarm_tui.model.text import plain
from swarm_tui.model.verdicts import Verdict

if TYPE_CHECKING:
    from swarm_tui.model.shapes import ShownReview

Verdicts = Mapping[str, Verdict]


def review_as_json(
    branch: IntegratedBranch, verdicts: Verdicts, preview: Preview, parts: Sequence[Fix] = ()
) -> ShownReview:
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
    titles |= {fix: f"the left-out fix {fix[:9]}" for fix in preview.taken}
    sentences = []
    for conflict in preview.conflicts:
        against = " with " + ", ".join(titles[name] for name in conflict.opponents) if conflict.opponents else ""
        paths = ", ".join(plain(path, 80) for path in conflict.paths[:3]) + (", ..." if len(conflict.paths) > 3 else "")
        doing = "taking in" if conflict.commit in preview.taken else "reverting"
        sentences.append(f"{doing} {titles[conflict.commit]} conflicts{against} in {paths}")
    return "; ".join(sentences)


def _size(fix: Fix) -> str:
    return fix.change_without_lines or f"+{fix.added} -{fix.removed}"
