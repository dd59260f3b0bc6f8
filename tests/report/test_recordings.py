"""Recordings come from agents: cut short, of other versions, damaged, endless; the page gets what can be played."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.report.details import CAST_SIZE_LIMIT, Cast, read_recording
from swarm_tui.transcripts.cast import BadRecording
from tests.report.sweeps import SECRET, cast_of


def read_cast(raw: bytes) -> Cast:
    """Read a recording that holds these bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.cast"
        path.write_bytes(raw)
        return read_recording(path)


def events_of(text: str) -> list[list[object]]:
    """Return the events of a written recording."""
    return [json.loads(line) for line in text.splitlines()[1:]]


def test_a_recording_comes_through_as_it_was() -> None:
    cast = read_cast(cast_of(["a", "b\r\n"]).encode())
    assert (cast.columns, cast.rows, cast.seconds, cast.note) == (60, 10, 0.1, "")
    assert events_of(cast.text) == [[0.0, "o", "a"], [0.1, "o", "b\r\n"]]


def test_version_three_becomes_version_two_with_its_intervals_added_up() -> None:
    lines = ['{"version": 3, "term": {"cols": 80, "rows": 24}}', "# a comment", '[0.5, "o", "a"]', '[0.5, "o", "b"]']
    cast = read_cast("\n".join(lines).encode())
    assert json.loads(cast.text.splitlines()[0]) == {"version": 2, "width": 80, "height": 24}
    assert events_of(cast.text) == [[0.5, "o", "a"], [1.0, "o", "b"]]


def test_what_was_typed_is_left_out() -> None:
    raw = cast_of(["password: "]) + '[1.0, "i", "hunter22"]\n[2.0, "m", "marker"]\n[3.0, "r", "100x30"]\n'
    cast = read_cast(raw.encode())
    assert "hunter22" not in cast.text
    assert events_of(cast.text)[-1] == [3.0, "r", "100x30"]


def test_a_secret_that_comes_letter_by_letter_is_masked() -> None:
    cast = read_cast(cast_of(["$ echo ", *SECRET, "\r\n"]).encode())
    shown = "".join(str(event[2]) for event in events_of(cast.text))
    assert SECRET not in shown
    assert shown.startswith("$ echo ghp_•")


def test_a_recording_that_was_cut_short_plays_up_to_there() -> None:
    cast = read_cast((cast_of(["a", "b"]) + '[2.0, "o", "ha').encode())
    assert [event[2] for event in events_of(cast.text)] == ["a", "b"]
    assert cast.note == "cut or damaged: 1 line left out"


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "invalid header"),
        (b"\x00\xff\n", "invalid header"),
        (b'{"version": 1, "width": 80, "height": 24, "stdout": []}', r": 1 \(use asciicast version 2 or 3"),
        (b'{"version": 9}\n', r": 9 \(use asciicast version 2 or 3"),
        (b'{"version": 2, "width": 80, "height": 24}\n', "has no output"),
    ],
)
def test_what_cannot_be_played_says_why(raw: bytes, words: str) -> None:
    with pytest.raises(BadRecording, match=words):
        read_cast(raw)


def test_a_terminal_of_absurd_size_is_bounded() -> None:
    raw = b'{"version": 2, "width": 9999999, "height": 9999999}\n[0, "o", "x"]\n[1, "r", "9999999x9999999"]\n'
    cast = read_cast(raw)
    assert (cast.columns, cast.rows) == (500, 500)
    assert "9999999" not in cast.text


def test_an_endless_recording_is_bounded() -> None:
    block = "x" * 1_000_000
    cast = read_cast(cast_of([block] * 12).encode())
    assert len(cast.text) < CAST_SIZE_LIMIT + 1_000
    assert cast.note == "only its beginning is here: it is too large"


@given(st.binary(max_size=60), st.lists(st.binary(max_size=30), max_size=4))
def test_no_bytes_whatever_raise_anything_but_a_reason(head: bytes, rest: list[bytes]) -> None:
    for start in (head, b'{"version": 2, "width": 80, "height": 24}'):
        try:
            read_cast(b"\n".join([start, *rest]))
        except BadRecording as error:
            assert str(error)  # noqa: PT017  # nothing or a reason: both are fine
