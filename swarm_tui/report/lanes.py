"""Lays out the tests of a sweep over time: as many lanes as agents worked at once. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import NamedTuple


class AgentSpan(NamedTuple):
    """One test from the launch of its agent to its end."""

    start: float
    end: float
    test: int
    """Its index in the list of tests."""


class LaneSpan(NamedTuple):
    """A span and its lane."""

    span: AgentSpan
    lane: int


def assign_lanes(spans: Iterable[AgentSpan]) -> list[LaneSpan]:
    """Return every span with the lowest lane that is free at its start, so that lanes count agents at work."""
    placed: list[LaneSpan] = []
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    lanes = 0
    for span in sorted(spans):
        while busy and busy[0][0] <= span.start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane = lanes
            lanes += 1
        heapq.heappush(busy, (max(span.end, span.start), lane))
        placed.append(LaneSpan(span, lane))
    return placed
