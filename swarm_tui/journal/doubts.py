"""What may be wrong in what the journal of a sweep tells, in sentences."""

from __future__ import annotations

from swarm_tui.journal.fold import SweepState
from swarm_tui.model.formatting import counted


def doubts_of(state: SweepState) -> tuple[str, ...]:
    """Return a sentence for each kind of line that the journal lacks, or that is passed over; the gravest first."""
    sentences = []
    if state.foreign_lines:
        events = counted(state.foreign_lines, "event")
        sentences.append(f"the engine did not write {events} of the journal: passed over")
    if state.is_cut_short:
        sentences.append("the end of the journal is lost: what it told is not known")
    if state.broken_lines:
        sentences.append(f"{counted(state.broken_lines, 'line')} of the journal cannot be read: passed over")
    if state.lost_events:
        sentences.append(f"the journal lacks {counted(state.lost_events, 'event')}: what they told is not known")
    return tuple(sentences)
