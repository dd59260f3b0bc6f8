"""Formats a review as JSON, as a list, and as the text of a pull request. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from swarm_tui.model.text import plain
from swarm_tui.review.changes import Change, IntegratedBranch, Preview
from swarm_tui.review.verdicts import Verdict

if TYPE_CHECKING:
    from swarm_tui.model.shapes import EffectJson, ReviewJson
    from swarm_tui.review.ranking import Effect

Verdicts = Mapping[str, Verdict]
Effects = Mapping[str, "Effect"]
Weaker = Mapping[str, Sequence[str]]
_WEAKER_LISTED = 5
HunksOf = Callable[[Change], Sequence[Change]]
"""Returns the loaded hunks of a fix."""


def review_as_json(
    branch: IntegratedBranch,
    verdicts: Verdicts,
    preview: Preview,
    parts: Sequence[Change],
    hunks_of: HunksOf,
    effects: Effects,
    weaker: Weaker,
) -> ReviewJson:
    """Return the review in the format of --json.

    `effects` are the effects of fixes on tests, and `weaker` the tests that fixes weaken, remove or rename, by commit.
    """
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
                "by_integrator": fix.by_integrator,
                "verdict": verdicts.get(fix.id),
                "effect": _effect_as_json(effects.get(fix.id)),
                "weaker": list(weaker.get(fix.id, ())),
                "hunks": [
                    {
                        "number": f"{fix.rank}.{number}",
                        "title": hunk.title,
                        "added": hunk.added,
                        "removed": hunk.removed,
                        "verdict": verdicts.get(hunk.id),
                    }
                    for number, hunk in enumerate(hunks_of(fix), 1)
                ],
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
            "hunks": list(preview.hunks),
            "conflicts": [
                {"commit": conflict.commit, "with": list(conflict.opponents), "paths": list(conflict.paths)}
                for conflict in preview.conflicts
            ],
        },
    }


def _effect_as_json(effect: Effect | None) -> EffectJson | None:
    if effect is None:
        return None
    return {
        "is_measured": effect.is_measured,
        "turned_green": list(effect.turned_green),
        "broken": list(effect.broken),
        "why": effect.why,
    }


def review_as_list(
    branch: IntegratedBranch,
    verdicts: Verdicts,
    parts: Sequence[Change],
    hunks_of: HunksOf,
    effects: Effects,
    weaker: Weaker,
) -> list[str]:
    """Return one line for each fix: rank, verdict, commit, size, title and effect, after row 0 and its test changes.

    The hunks of a partly reverted fix follow the fix.
    """
    pieces = {f"0.{number}": part for number, part in enumerate(parts, 1)}
    split = {
        fix.id: {f"{fix.rank}.{number}": hunk for number, hunk in enumerate(hunks_of(fix), 1)}
        for fix in branch.fixes
        if verdicts.get(fix.id) != Verdict.REVERT and any(verdicts.get(each.id) == "revert" for each in hunks_of(fix))
    }
    names = [*pieces, *(name for hunks in split.values() for name in hunks)]
    width = max(len(name) for name in (str(len(branch.fixes)), *names))
    row = branch.tests
    above = [f"{0:>{width}}  {'':<6}  {row.id[:9]}  {_size(row):>11}  {row.title}"] if row is not None else []
    above += _piece_rows(pieces, verdicts, width)
    for fix in branch.fixes:
        effect = effects[fix.id].sentence if fix.id in effects else ""
        above.append(
            f"{fix.rank:>{width}}  {verdicts.get(fix.id, '·'):<6}  {fix.id[:9]}  {_size(fix):>11}  {fix.title}"
            + (f" · {fix.origin}: {fix.by_integrator}" if fix.origin else "")
            + (f" · {effect}" if effect else "")
            + (" ▼" if weaker.get(fix.id) else "")
        )
        above += [f"{'':>{width}}  ▼ {plain(words, 300)}" for words in weaker.get(fix.id, ())[:_WEAKER_LISTED]]
        above += _piece_rows(split.get(fix.id, {}), verdicts, width)
    return above


def _piece_rows(pieces: Mapping[str, Change], verdicts: Verdicts, width: int) -> list[str]:
    return [
        f"{name:>{width}}  {verdicts.get(piece.id, '·'):<6}  {'':9}  {_size(piece):>11}  {piece.title}"
        for name, piece in pieces.items()
    ]


def conflict_summary(branch: IntegratedBranch, preview: Preview, parts: Sequence[Change] = ()) -> str:
    """Return a sentence about the conflicting reverts of a plan; `parts` are the test changes of row 0."""
    titles = {commit.id: plain(commit.subject, 60) for commit in branch.commits}
    titles |= {fix.id: f"#{fix.rank} {plain(fix.title, 60)}" for fix in branch.fixes}
    titles |= {part.id: f"test change 0.{number} {plain(part.title, 60)}" for number, part in enumerate(parts, 1)}
    titles |= {fix: f"the left-out fix {fix[:9]}" for fix in preview.taken}
    sentences = []
    for conflict in preview.conflicts:
        against = " with " + ", ".join(titles[name] for name in conflict.opponents) if conflict.opponents else ""
        paths = ", ".join(plain(path, 80) for path in conflict.paths[:3]) + (", ..." if len(conflict.paths) > 3 else "")
        doing = "including" if conflict.commit in preview.taken else "reverting"
        sentences.append(f"{doing} {titles[conflict.commit]} conflicts{against} in {paths}")
    return "; ".join(sentences)


def _size(fix: Change) -> str:
    return fix.change_without_lines or f"+{fix.added} -{fix.removed}"
