"""Many transcripts as one stream: in the order of time, and what many say alike as one line."""

from __future__ import annotations

import random
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.transcripts.entries import Entry, Role
from swarm_tui.transcripts.filters import ERRORS, EntryFilter
from swarm_tui.transcripts.merged import ALIKE_WITHIN, MergedTail, TailEntry, fold_alike
from swarm_tui.transcripts.window import MemorySource
from tests.transcripts.records import result, step


def said(text: str, at: float) -> bytes:
    return step(text, at=datetime.fromtimestamp(at, UTC).isoformat())


def item(at: float, who: str, text: str, number: int = 0) -> TailEntry:
    return TailEntry(at, 0, number, who, Entry(Role.AGENT, text, at))


streams = st.lists(st.lists(st.tuples(st.integers(0, 50), st.sampled_from(["a", "b", "c"])), max_size=12), max_size=5)


@given(streams, st.randoms(use_true_random=False))
def test_however_the_transcripts_grow_the_stream_is_in_the_order_of_time(
    made: list[list[tuple[int, str]]], chance: random.Random
) -> None:
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
    assert len(tail.items) == sum(map(len, made)) - left
    assert [entry.at for entry in tail.items] == sorted(entry.at for entry in tail.items)


@given(
    st.lists(st.tuples(st.integers(0, 100), st.sampled_from("pqr"), st.sampled_from(["x 1", "x 2", "y"])), max_size=30)
)
def test_folding_loses_nothing_and_shares_only_within_a_short_time(lines: list[tuple[int, str, str]]) -> None:
    items = [item(float(at), who, text, number) for number, (at, who, text) in enumerate(sorted(lines))]
    folded = fold_alike(items)
    assert sum(len(line.agents) for line in folded) == len(items)
    assert all(len(set(line.agents)) == len(line.agents) for line in folded)
    assert [line.item for line in folded] == sorted((line.item for line in folded), key=lambda it: (it.at, it.number))


def test_the_same_line_of_many_agents_is_one() -> None:
    items = [item(float(n) / 10, f"agent-{n}", f"try {n} failed: fixture 'host_{n}' at 0x{n:08x}") for n in range(37)]
    (line,) = fold_alike(items)
    assert len(line.agents) == 37


def test_the_same_agent_saying_it_twice_and_others_much_later_are_lines_of_their_own() -> None:
    folded = fold_alike([item(0, "p", "x"), item(1, "p", "x"), item(2, "q", "x"), item(3 + ALIKE_WITHIN, "r", "x")])
    assert [line.agents for line in folded] == [("p",), ("p", "q"), ("r",)]


def test_a_torn_line_is_taken_once_it_is_whole_and_a_cut_file_begins_anew() -> None:
    source = MemorySource(said("one", 1))
    tail = MergedTail({"p": source}, 0.0)
    whole = said("two", 2)
    source.append(whole[:20])
    assert not tail.poll(0.1)
    source.append(whole[20:])
    assert tail.poll(0.2)
    assert [line.entry.text for line in tail.items] == ["one", "two"]
    source.replace(said("anew", 3))
    assert tail.poll(0.3)
    assert [line.entry.text for line in tail.items] == ["anew"]


def test_words_and_errors_choose() -> None:
    tail = MergedTail({"p": MemorySource(said("fine", 1) + result("E   KeyError: 'x'") + said("also fine", 9))}, 0.0)
    assert len(tail.folded()) == 3
    assert [line.item.entry.text for line in tail.folded(EntryFilter(words="also"))] == ["also fine"]
    assert [line.item.entry.role for line in tail.folded(ERRORS)] == [Role.RESULT]
