"""Finds the transcripts that agents write in their state folders."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_tui.places.place import AgentAddress, Place
from swarm_tui.transcripts.locate import TRANSCRIPT_PATTERNS, choose_transcript


async def find_transcripts(place: Place, agents: Sequence[tuple[AgentAddress, Sequence[str]]]) -> list[str | None]:
    """Return the path of each agent's transcript in its state folder, or None; agents come with their emitters."""
    if not agents:
        return []
    found = await place.find_files([address for address, _ in agents], TRANSCRIPT_PATTERNS)
    return [
        choose_transcript((file.path for file in files), emitters)
        for files, (_, emitters) in zip(found, agents, strict=True)
    ]
