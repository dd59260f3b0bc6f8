"""Transcripts merged into one stream, by time, with identical lines grouped."""

from __future__ import annotations

import random
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.transcripts.entries import Entry, Role
from swarm_tui.transcripts.filters import ERRORS, EntryFilter
from swarm_tui.transcripts.merged import REPEATED_WITHIN, MergedTail, TailEntry, merge_repeated
from swarm_tui.transcripts.window import MemorySource
from tests.transcripts.records import result, step


def said(text: str, at: float) -> bytes:
    return step(text, at=datetime.fromtimestamp(at, UTC).isoformat())


def item(at: float, who: str, text: str, number: int = 0) -> TailEntry:
    return TailEntry(at, 0, number, who, Entry(Role.AGENT, text, at))


streams = st.lists(st.lists(st.tuples(st.integers(0, 50), st.sampled_from(["a", "b", "c"])), max_size=12), max_size=5)


@given(streams, st.randoms(use_true_random=False))
def test_growing_transcripts_are_merged_by_time(made: list[list[tuple[int, str]]], chance: random.Random) -> None:
    sources = {f"agent-{place}": MemorySource() for place in range(len(made))}
    waiting = [[said(text, at) for at, text in sorted(lines)] for lines in made]
    tail = MergedTail(sources, 0.0)
    for now in range(1, 40):
        for source, lines in zip(sources.values(), waiting, strict=True):
            for _ in range(chance.randrange(4)):
                if lines:
                    source.append(lines.pop(0))
        tail.poll(float(now))
    left = sum(map(len, waiting))
    assert len(tail.entries) == sum(map(len, made)) - left
    assert [entry.at for entry in tail.entries] == sorted(entry.at for entry in tail.entries)


@given(
    st.lists(st.tuples(st.integers(0, 100), st.sampled_from("pqr"), st.sampled_from(["x 1", "x 2", "y"])), max_size=30)
)
def test_merging_groups_only_lines_close_in_time(lines: list[tuple[int, str, str]]) -> None:
    items = [item(float(at), who, text, number) for number, (at, who, text) in enumerate(sorted(lines))]
    merged = merge_repeated(items)
    assert sum(len(line.agents) for line in merged) == len(items)
    assert all(len(set(line.agents)) == len(line.agents) for line in merged)
    assert [line.first for line in merged] == sorted((line.first for line in merged), key=lambda it: (it.at, it.number))


def test_identical_lines_of_agents_are_grouped() -> None:
    items = [item(float(n) / 10, f"agent-{n}", f"try {n} failed: fixture 'host_{n}' at 0x{n:08x}") for n in range(37)]
    (line,) = merge_repeated(items)
    assert len(line.agents) == 37


def test_repeated_and_late_lines_are_not_grouped() -> None:
    merged = merge_repeated(
        [item(0, "p", "x"), item(1, "p", "x"), item(2, "q", "x"), item(3 + REPEATED_WITHIN, "r", "x")]
    )
    assert [line.agents for line in merged] == [("p",), ("p", "q"), ("r",)]


def test_partial_line_waits_and_truncated_file_restarts() -> None:
    source = MemorySource(said("one", 1))
    tail = MergedTail({"p": source}, 0.0)
    whole = said("two", 2)
    source.append(whole[:20])
    assert not tail.poll(0.1)
    source.append(whole[20:])
    assert tail.poll(0.2)
    assert [line.entry.text for line in tail.entries] == ["one", "two"]
    source.replace(said("anew", 3))
    assert tail.poll(0.3)
    assert [line.entry.text for line in tail.entries] == ["anew"]


def test_lines_stay_when_other_agents_change() -> None:
    sources = {name: MemorySource(said(f"{name} was here", at)) for at, name in enumerate("pqr")}
    tail = MergedTail({"p": sources["p"], "q": sources["q"]}, 0.0)
    numbers = {entry.agent: entry.number for entry in tail.entries}
    tail.follow({"q": sources["q"], "r": sources["r"]}, 1.0)
    assert [(entry.agent, entry.entry.text) for entry in tail.entries] == [("q", "q was here"), ("r", "r was here")]
    assert tail.entries[0].number == numbers["q"]
    assert tail.entries[1].number not in numbers.values()
    sources["p"].append(said("nobody listens", 8))
    sources["r"].append(said("again", 9))
    assert tail.poll(2.0)
    assert [entry.entry.text for entry in tail.entries] == ["q was here", "r was here", "again"]
    tail.follow({"q": MemorySource(said("anew", 3))}, 3.0)
    assert [entry.entry.text for entry in tail.entries] == ["anew"]


def test_stream_is_filtered_by_text_and_errors() -> None:
    tail = MergedTail({"p": MemorySource(said("fine", 1) + result("E   KeyError: 'x'") + said("also fine", 9))}, 0.0)
    assert len(tail.merged()) == 3
    assert [line.first.entry.text for line in tail.merged(EntryFilter(words="also"))] == ["also fine"]
    assert [line.first.entry.role for line in tail.merged(ERRORS)] == [Role.RESULT]
