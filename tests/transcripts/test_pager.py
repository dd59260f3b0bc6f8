"""Moving through a transcript: positions are stable, and the end is followed until the user moves away."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.transcripts.entries import Role, parse_record
from swarm_tui.transcripts.filters import ERRORS, EntryFilter, Matches
from swarm_tui.transcripts.layout import Density
from swarm_tui.transcripts.pager import LinePosition, Pager
from swarm_tui.transcripts.window import MemorySource, RecordSpan, Window
from tests.transcripts.records import call, opened, page_text, result, step

records = st.lists(
    st.sampled_from(
        [
            step("one line"),
            step("宽" * 90),
            step("many\nlines\n" * 5),
            step("a user speaks", "user"),
            call("pytest -q"),
            result("ok\n" * 30),
            result("E   AssertionError: no"),
            b"plain text\n",
            b"\n",
            b'{"broken\n',
        ]
    ),
    max_size=40,
)
choices = st.sampled_from(
    [
        EntryFilter(),
        EntryFilter(words="line"),
        EntryFilter(words="LINE", is_inverse=True),
        EntryFilter(roles=frozenset({Role.USER})),
        EntryFilter(roles=frozenset(Role) - {Role.RESULT}),
        ERRORS,
        EntryFilter(words="is nowhere"),
    ]
)


def paged(lines: list[bytes], height: int = 7, entry_filter: EntryFilter | None = None) -> Pager:
    pager = Pager(Window(MemorySource(b"".join(lines))), 60, height)
    pager.poll(0.0)
    if entry_filter is not None:
        pager.set_filter(entry_filter)
        while pager.is_searching:
            pager.advance(1.0)
    return pager


def all_text(pager: Pager) -> list[str]:
    """Return every line of the transcript from its start, walking line by line."""
    pager.go_to_start()
    lines = page_text(pager)
    while pager.scroll(1):
        lines.append(page_text(pager)[-1])
    return lines


@given(records, choices, st.sampled_from(Density), st.integers(1, 30), st.integers(0, 60))
def test_moving_up_and_down_returns_to_start(
    lines: list[bytes], entry_filter: EntryFilter, density: Density, count: int, start: int
) -> None:
    pager = paged(lines, entry_filter=entry_filter)
    pager.set_density(density)
    pager.scroll(-start)
    before, page = pager.top, page_text(pager)
    moved = pager.scroll(-count)
    assert -count <= moved <= 0
    assert pager.scroll(-moved) == -moved
    assert (pager.top, page_text(pager)) == (before, page)


@given(records, choices)
def test_paging_shows_every_matching_record_once(lines: list[bytes], entry_filter: EntryFilter) -> None:
    pager = paged(lines, entry_filter=entry_filter)
    pager.set_density(Density.LINES)
    expected = sum(len(entry_filter.matching(parse_record(line.rstrip(b"\n")))) for line in lines)
    assert len(all_text(pager)) == expected


@given(records, st.integers(1, 20), st.integers(1, 20))
def test_page_down_continues_after_page(lines: list[bytes], height: int, steps: int) -> None:
    pager = paged(lines, height)
    pager.go_to_start()
    pager.scroll(steps)
    page = page_text(pager)
    moved = pager.scroll(height - 1)
    if moved == height - 1 and page:
        assert page_text(pager)[0] == page[-1]


@given(records, choices)
def test_slices_match_same_records_as_full_read(lines: list[bytes], entry_filter: EntryFilter) -> None:
    window = Window(MemorySource(b"".join(lines)))
    window.poll(0.0)
    matches = Matches(window, entry_filter)
    while not matches.is_done:
        matches.advance(0.0)
    expected, offset = [], 0
    for line in lines:
        if entry_filter.matching(parse_record(line.rstrip(b"\n"))):
            expected.append(RecordSpan(offset, offset + len(line)))
        offset += len(line)
    assert list(walk(matches)) == expected
    assert list(walk_back(matches, window.end)) == expected[::-1]
    assert matches.count == len(expected)


def walk(matches: Matches) -> Iterator[RecordSpan]:
    span = matches.after(0)
    while span is not None:
        yield span
        span = matches.after(span.end)


def walk_back(matches: Matches, offset: int) -> Iterator[RecordSpan]:
    span = matches.before(offset)
    while span is not None:
        yield span
        span = matches.before(span.start)


@given(records, st.lists(records, max_size=4), choices)
def test_later_records_are_found(first: list[bytes], more: list[list[bytes]], entry_filter: EntryFilter) -> None:
    source = MemorySource(b"".join(first))
    window = Window(source)
    window.poll(0.0)
    matches = Matches(window, entry_filter)
    for now, lines in enumerate(more, 1):
        source.append(b"".join(lines))
        window.poll(float(now))
        matches.advance(0.0)
    while not matches.is_done:
        matches.advance(1.0)
    everything = [line for lines in [first, *more] for line in lines]
    assert matches.count == sum(bool(entry_filter.matching(parse_record(line.rstrip(b"\n")))) for line in everything)


def test_pager_opens_at_end_and_follows(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(step(f"message {n}") for n in range(100)))
    pager = opened(path, height=5)
    assert page_text(pager)[-1].endswith("message 99")
    with path.open("ab") as file:
        file.write(step("message 100"))
    pager.poll(1.0)
    assert page_text(pager)[-1].endswith("message 100")
    assert pager.percent() == 100


def test_new_records_are_counted_without_moving(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(step(f"message {n}") for n in range(100)))
    pager = opened(path, height=5)
    pager.scroll(-10)
    page = page_text(pager)
    with path.open("ab") as file:
        file.write(b"".join(step(f"later {n}") for n in range(38)))
    pager.poll(1.0)
    assert (pager.unseen, pager.is_following) == (38, False)
    assert page_text(pager) == page
    pager.go_to_end()
    assert (pager.unseen, pager.is_following) == (0, True)
    assert page_text(pager)[-1].endswith("later 37")


def test_scrolling_down_to_the_end_follows_again(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(step(f"message {n}") for n in range(100)))
    pager = opened(path, height=5)
    assert pager.scroll(-10) == -10
    assert pager.scroll(100) == 10
    assert pager.is_following


def test_truncated_file_is_shown_again(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(step(f"message {n}") for n in range(100)))
    pager = opened(path, height=5)
    pager.set_filter(EntryFilter(words="message"))
    path.write_bytes(step("message anew"))
    pager.poll(1.0)
    assert [text[20:] for text in page_text(pager)] == ["message anew"]


def test_result_read_first_has_tool_name(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(step("x") * 50 + call("ls", "c7", "Bash") + result("files", "c7"))
    pager = opened(path, height=1)
    assert page_text(pager)[0].endswith("Bash  files")


def test_record_can_be_unfolded_and_folded(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(result("\n".join(f"line {n}" for n in range(50))))
    pager = opened(path, height=100)
    assert len(pager.visible_lines()) == 3
    pager.toggle(0)
    assert len(pager.visible_lines()) == 50
    pager.toggle(0)
    assert len(pager.visible_lines()) == 3


def test_search_goes_both_ways_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(result("E   bad" if n in (10, 500) else "ok") for n in range(1000)))
    pager = opened(path)
    found = [step.found for step in pager.search(ERRORS, pager.window.end, True) if step.found is not None]
    assert len(found) == 2
    earlier = [step.found for step in pager.search(ERRORS, found[0].start, True) if step.found is not None]
    assert earlier == found[1:]
    assert [step.found for step in pager.search(ERRORS, found[1].start, False) if step.found] == found[:1]
    pager.go_to(found[1].start)
    assert any("bad" in text for text in page_text(pager))
    assert not pager.is_following


def test_empty_or_missing_transcript_has_no_lines(tmp_path: Path) -> None:
    pager = opened(tmp_path / "missing")
    assert pager.visible_lines() == []
    assert pager.scroll(-5) == pager.scroll(5) == 0
    pager.go_to_start()
    assert pager.top == LinePosition(0)


def test_random_walks_with_resizes_stay_within_the_transcript(tmp_path: Path) -> None:
    chance = random.Random(7)
    path = tmp_path / "t.jsonl"
    path.write_bytes(
        b"".join(step("word " * chance.randrange(80)) + result("x\n" * chance.randrange(9)) for _ in range(60))
    )
    pager = opened(path)
    for _ in range(300):
        match chance.randrange(4):
            case 0:
                pager.scroll(chance.randrange(-40, 40))
            case 1:
                pager.resize(chance.randrange(20, 150), chance.randrange(1, 40))
            case 2:
                pager.set_density(chance.choice(list(Density)))
            case _:
                pager.toggle(chance.choice(pager.visible_lines()).position.offset)
        page = pager.visible_lines()
        assert len(page) == min(pager.height, len(page))
        assert page[0].position == pager.top


@pytest.mark.parametrize("words", ["ÄRGER", "ärger", 'say "x"', "back\\slash", "two  spaces", "a\nb"])
def test_text_is_found_despite_json_escapes(words: str, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(step("other") * 5 + step(f"here is {words.lower()} inside"))
    pager = opened(path)
    pager.set_filter(EntryFilter(words=words))
    assert pager.matches is not None
    assert pager.matches.count == 1


@pytest.mark.parametrize("words", ["<b>bold", "a&b", "it's"])
def test_text_is_found_despite_html_safe_json(words: str, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    escaped = step(f"here is {words} inside")
    for character in "<>&'":
        escaped = escaped.replace(character.encode(), f"\\u{ord(character):04x}".encode())
    path.write_bytes(step("other") * 5 + escaped)
    pager = opened(path)
    pager.set_filter(EntryFilter(words=words))
    assert pager.matches is not None
    assert pager.matches.count == 1
