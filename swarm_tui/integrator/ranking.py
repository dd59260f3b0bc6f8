"""Ranks the fixes: by their effect on the tests, then by the number of agents, then by size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from swarm_tui.integrator.duplicates import DistinctFix
from swarm_tui.model.formatting import counted
from swarm_tui.model.pulled import without_marks
from swarm_tui.review.ranking import Effect


def reported_effect(fix: DistinctFix, why_not: str) -> Effect:
    """Return the effect that the agents reported for a fix that was not measured."""
    green = tuple(dict.fromkeys(commit.source.test for commit in fix.commits if commit.source.is_passing_after))
    return Effect(turned_green=green, why_not=why_not)


def rank_fixes(fixes: Iterable[DistinctFix], effects: Mapping[str, Effect]) -> list[DistinctFix]:
    """Return the fixes, best first; `effects` are indexed by the chosen commit of a fix."""

    def sort_key(fix: DistinctFix) -> tuple[int, bool, int, int, str, str]:
        effect = effects[fix.chosen.id]
        # A measured effect ranks above the same effect that was only reported.
        return (
            -effect.net,
            not effect.is_measured,
            -len(fix.agents),
            fix.chosen.lines,
            fix.chosen.subject,
            fix.chosen.source.branch,
        )

    return sorted(fixes, key=sort_key)


def reason_for_rank(fix: DistinctFix, effect: Effect) -> str:
    """Return the reason for a rank as one line."""
    parts = [f"turns {counted(len(effect.turned_green), 'test')} green"]
    if not effect.is_measured:
        why = f": {effect.why_not}" if effect.why_not else ""
        parts = [f"not measured{why}", f"{counted(len(effect.turned_green), 'test')} green as its agents report"]
    if effect.broken:
        parts.append(f"breaks {len(effect.broken)}")
    if effect.flaky:
        parts.append("that was flaky" if len(effect.flaky) == 1 else f"{len(effect.flaky)} of them were flaky")
    if effect.builds_on:
        parts.append(f"builds on {without_marks(effect.builds_on)!r}")
    if len(fix.agents) > 1:
        parts.append(f"{len(fix.agents)} agents submitted it ({fix.why_same})")
    parts.append(counted(fix.chosen.lines, "line"))
    return ", ".join(parts)
