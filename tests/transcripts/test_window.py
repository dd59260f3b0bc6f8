"""The window finds the same records as a full read, even while the file changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.transcripts.window import BLOCK, FileSource, MemorySource, RecordSpan, Window, WindowChange

lines = st.lists(st.binary(max_size=40).map(lambda raw: raw.replace(b"\n", b"")), max_size=30)
contents = st.builds(lambda parts, size: b"\n".join(parts) * size, lines, st.sampled_from([1, 1, 1, 500]))


def naive_spans(content: bytes) -> list[RecordSpan]:
    spans, start = [], 0
    for part in content.split(b"\n")[:-1]:
        spans.append(RecordSpan(start, start + len(part) + 1))
        start += len(part) + 1
    return spans


def opened(content: bytes) -> Window:
    window = Window(MemorySource(content))
    window.poll(0.0)
    return window


@given(contents)
def test_both_directions_find_all_records(content: bytes) -> None:
    window = opened(content)
    spans = naive_spans(content)
    assert list(window.spans_after(0)) == spans
    assert list(window.spans_before(window.end)) == spans[::-1]


@given(contents, st.integers(0, 100_000))
def test_every_offset_belongs_to_its_record(content: bytes, offset: int) -> None:
    window = opened(content)
    spans = naive_spans(content)
    found = window.containing(offset)
    expected = next((span for span in spans if span.start <= offset < span.end), spans[-1] if spans else None)
    assert found == expected


@given(contents)
def test_record_is_read_unchanged(content: bytes) -> None:
    window = opened(content)
    whole = [content[span.start : span.end].rstrip(b"\r\n") for span in naive_spans(content)]
    assert [window.read(span) for span in window.spans_after(0)] == whole


@given(contents, st.lists(st.binary(max_size=200), max_size=6))
def test_growth_in_any_pieces_gives_same_records(content: bytes, pieces: list[bytes]) -> None:
    source = MemorySource(content)
    window = Window(source)
    window.poll(0.0)
    for now, piece in enumerate(pieces, 1):
        source.append(piece)
        # A clock that hardly moves: nothing settles in between.
        assert window.poll(now / 1000) in (WindowChange.GREW, WindowChange.SAME)
        assert list(window.spans_after(0)) == naive_spans(bytes(source.content))


@given(st.lists(st.sampled_from([b"", b"x", b"y" * 30]), max_size=60), st.integers(1, 200))
def test_endless_lines_have_the_same_records_in_both_directions(parts: list[bytes], size: int) -> None:
    window = Window(MemorySource((b"\n".join(parts) + b"z" * size) * 3 + b"\n"), chunk=32)
    window.poll(0.0)
    forwards = list(window.spans_after(0))
    assert list(window.spans_before(window.end)) == forwards[::-1]
    assert all(span.end - span.start < 2 * 32 for span in forwards)
    assert [span.start for span in forwards[1:]] == [span.end for span in forwards[:-1]]


def test_partial_line_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b"')
    window = Window(FileSource(path))
    assert window.poll(0.0) is WindowChange.GREW
    assert [window.read(span) for span in window.spans_after(0)] == [b'{"a": 1}']
    with path.open("ab") as file:
        file.write(b": 2}\n")
    assert window.poll(0.1) is WindowChange.GREW
    assert [window.read(span) for span in window.spans_after(0)] == [b'{"a": 1}', b'{"b": 2}']


def test_unfinished_last_line_is_shown_after_pause(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\ntwo")
    window = Window(FileSource(path))
    window.poll(0.0)
    assert window.poll(0.5) is WindowChange.SAME
    assert window.poll(1.5) is WindowChange.GREW
    assert [window.read(span) for span in window.spans_after(0)] == [b"one", b"two"]
    with path.open("ab") as file:
        file.write(b".....")
    assert window.poll(1.6) is WindowChange.GREW
    assert [window.read(span) for span in window.spans_after(0)] == [b"one", b"two....."]


def test_missing_file_is_opened_when_created(tmp_path: Path) -> None:
    path = tmp_path / "late"
    window = Window(FileSource(path))
    assert window.poll(0.0) is WindowChange.GONE
    assert window.after(0) is None
    assert window.containing(0) is None
    path.write_bytes(b"here\n")
    assert window.poll(1.0) is WindowChange.GREW
    assert window.read(RecordSpan(0, 5)) == b"here"


def test_truncated_file_restarts(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"one\ntwo\nthree\n")
    window = Window(FileSource(path))
    window.poll(0.0)
    os.truncate(path, 4)
    assert window.poll(1.0) is WindowChange.RESTARTED
    assert list(window.spans_after(0)) == [RecordSpan(0, 4)]


def test_rotated_file_restarts(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"old\n")
    window = Window(FileSource(path))
    window.poll(0.0)
    path.rename(tmp_path / "t.1")
    assert window.poll(1.0) is WindowChange.GONE
    assert [window.read(span) for span in window.spans_after(0)] == [b"old"]
    path.write_bytes(b"new and longer\n")
    assert window.poll(2.0) is WindowChange.RESTARTED
    assert [window.read(span) for span in window.spans_after(0)] == [b"new and longer"]


def test_rewritten_longer_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"one\ntwo\n")
    window = Window(FileSource(path))
    window.poll(0.0)
    path.write_bytes(b"something else\nthat is longer\n")
    assert window.poll(1.0) is WindowChange.RESTARTED
    assert window.read(RecordSpan(0, 15)) == b"something else"


def test_read_past_unnoticed_truncation_returns_rest(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"x" * BLOCK + b"\n" + b"y" * BLOCK + b"\n")
    window = Window(FileSource(path))
    window.poll(0.0)
    os.truncate(path, 10)
    assert window.read(RecordSpan(BLOCK + 1, 2 * BLOCK + 2)) == b""


def test_link_or_pipe_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret\n")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        window = Window(FileSource(tmp_path / name))
        assert window.poll(0.0) is WindowChange.GONE
        assert window.after(0) is None


def test_huge_record_is_read_up_to_limit(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"first\n" + b"x" * 20_000_000 + b"\nlast\n")
    window = Window(FileSource(path))
    window.poll(0.0)
    spans = list(window.spans_before(window.end))
    assert [span.end - span.start for span in spans] == [5, 20_000_001, 6]
    assert len(window.read(spans[1])) == BLOCK


@pytest.mark.parametrize("content", [b"", b"\n", b"\n\n", b"a", b"\x00\xff\n"])
def test_small_and_unusual_files(content: bytes) -> None:
    window = opened(content)
    assert list(window.spans_before(window.end)) == naive_spans(content)[::-1]
