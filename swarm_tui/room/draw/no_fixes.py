"""Draws what the merge view shows while there are no fixes: how far the sweep is, and what is to come."""

from __future__ import annotations

from dataclasses import dataclass, replace

from swarm_tui.model.formatting import counted, duration
from swarm_tui.model.progress import Progress
from swarm_tui.model.text import plain
from swarm_tui.room.draw.parts import Line, Part, cut_line, wrap_text
from swarm_tui.room.draw.progress import draw_progress


@dataclass(frozen=True, slots=True)
class NoFixesFacts:
    """How far a sweep is on its way to fixes."""

    sweep: str
    integration: str
    """none, integrating, done or failed"""
    detail: str
    progress: Progress | None
    """How far the integrator is, while it works."""
    integrating_for: float
    done: int
    total: int
    working: int
    waiting: int
    queued: int
    is_living: bool
    """Whether an engine is there that goes on by itself."""
    has_integrator: bool
    is_simulated: bool
    coming: tuple[tuple[str, str], ...] = ()
    """Tests whose agents have changed the program, and their summaries."""


def no_fixes_message(facts: NoFixesFacts) -> tuple[str, str, str]:
    """Return the title, a sentence or two, and their role."""
    done = f"{facts.done:,} of {counted(facts.total, 'test')} {'is' if facts.done == 1 else 'are'} done"
    detail = f": {plain(facts.detail, 500)}" if facts.detail else ""
    by_hand = f"`swarm-tui integrate {facts.sweep}` makes it"
    if facts.is_simulated and facts.integration in ("integrating", "done"):
        return "No fixes", "This sweep is simulated: no commit was made. `swarm-tui demo` makes real ones.", "dim"
    if facts.integration == "integrating":
        span = duration(facts.integrating_for)
        return (
            "Integrating",
            f"All work is put together on one branch, for {span} now. The fixes come by themselves.",
            "",
        )
    if facts.integration == "failed":
        again = f"`swarm-tui integrate {facts.sweep}` tries it again."
        return "Not integrated", f"The work could not be put together{detail}. {again}", "error"
    if facts.integration == "done":
        return "No fixes", f"The sweep is integrated, and there is nothing to decide{detail}.", ""
    if not facts.has_integrator:
        return "Not integrated", f"{done}. This sweep makes no integrated branch by itself: {by_hand}.", ""
    if facts.is_living and facts.done < facts.total:
        return "Not integrated yet", f"{done}. After the last one all work is integrated; the fixes come then.", ""
    if facts.is_living:
        return "Not integrated yet", f"{done}. Integration comes next, and the fixes with it.", ""
    if facts.done < facts.total:
        resumed = f"`swarm-tui resume {facts.sweep}` goes on, and integrates at the end."
        return "Not integrated", f"{done}, and no engine works on the rest. {resumed}", "warning"
    return "Not integrated", f"{done}. There is no integrated branch: {by_hand}.", "warning"


def draw_no_fixes(facts: NoFixesFacts, text: str, role: str, width: int) -> list[Line]:
    """Return the panel's lines: the message, who is still at work, and what is to come."""
    lines: list[Line] = [[Part(row, role)] for row in wrap_text(text, width, 12)]
    if facts.integration == "none" and facts.is_living:
        still = [
            (facts.working, "running", f"{counted(facts.working, 'agent')} at work"),
            (facts.waiting, "waiting", f"{facts.waiting:,} waiting for your answer: 1, then w"),
            (facts.queued, "queued", f"{counted(facts.queued, 'test')} still to begin"),
        ]
        counts: list[Line] = [[Part("· ", "faint"), Part(words, kind)] for number, kind, words in still if number]
        lines += [(), *counts] if counts else []
    if facts.integration == "integrating" and facts.progress is not None:
        progress = facts.progress
        lines += [(), [Part(progress.doing, "running")]]
        lines += [draw_progress(replace(progress, doing=""), width)] if progress.part is not None else []
    if facts.coming and facts.integration in ("none", "integrating"):
        number = len(facts.coming)
        lines += [
            (),
            [Part(f"{counted(number, 'agent')} {'has' if number == 1 else 'have'} mended the program so far:")],
        ]
        for name, summary in facts.coming:
            lines.append([Part("◆ ", "impl_fix"), Part(name), Part(f"  {summary}", "dim")])
    return [cut_line(line, width) for line in lines]
