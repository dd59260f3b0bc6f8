"""Terminal recordings are read and played, even if they are invalid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.transcripts.cast import SPEEDS, BadRecording, Playback, Recording, parse_size

HEADER = {"version": 2, "width": 80, "height": 24, "title": "a \x1b[31mtitle"}


def record(path: Path, header: dict[str, Any], *events: list[Any]) -> Recording:
    path.write_text("\n".join(json.dumps(line) for line in (header, *events)))
    return Recording(path)


def test_version_2_times_are_absolute(tmp_path: Path) -> None:
    made = record(tmp_path / "a.cast", HEADER, [0.5, "o", "one"], [1.5, "o", "two"])
    assert (made.columns, made.rows, made.title) == (80, 24, "a title")
    assert list(made.times) == [0.5, 1.5]
    assert made.event(1) == ("o", "two")
    assert made.duration == 1.5


def test_version_3_times_are_relative(tmp_path: Path) -> None:
    header = {"version": 3, "term": {"cols": 100, "rows": 50}}
    path = tmp_path / "a.cast"
    path.write_text(json.dumps(header) + '\n[0.5, "o", "one"]\n# a comment\n[1.0, "r", "90x30"]\n')
    made = Recording(path)
    assert (made.columns, made.rows, list(made.times)) == (100, 50, [0.5, 1.5])
    assert made.event(1) == ("r", "90x30")


def test_long_pauses_are_cut(tmp_path: Path) -> None:
    made = record(tmp_path / "a.cast", HEADER | {"idle_time_limit": 2}, [1, "o", "a"], [100, "o", "b"], [101, "o", "c"])
    assert list(made.times) == [1.0, 3.0, 4.0]


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"not json\n", b"[]\n", b'{"version": 1, "stdout": []}\n', b'{"version": "2"}\n', b"\x00\xff\n"],
)
def test_invalid_recording_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.cast"
    path.write_bytes(content)
    with pytest.raises(BadRecording):
        Recording(path)


def test_missing_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRecording):
        Recording(tmp_path / "none.cast")


def test_invalid_lines_are_counted_and_ignored(tmp_path: Path) -> None:
    path = tmp_path / "a.cast"
    lines = [
        json.dumps(HEADER),
        '[1, "o", "a"]',
        "[2,",
        "{}",
        '["x", "o", "b"]',
        "[3]",
        '[1e999, "o", "c"]',
        '[4, "o", "d"]',
    ]
    path.write_text("\n".join(lines))
    made = Recording(path)
    assert (list(made.times), made.broken_lines) == ([1.0, 4.0], 5)


def test_huge_sizes_are_limited(tmp_path: Path) -> None:
    made = record(tmp_path / "a.cast", {"version": 2, "width": 10**9, "height": -5})
    assert (made.columns, made.rows) == (500, 24)
    assert parse_size("99999999x3") == (3, 500)
    assert parse_size("x") is None
    assert parse_size("²x²") is None


def test_infinite_numbers_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "a.cast"
    huge = "9" * 400
    path.write_text(
        f'{{"version": 2, "width": {huge}, "idle_time_limit": {huge}}}\n[{huge}, "o", "a"]\n[1, "o", "b"]\n'
    )
    made = Recording(path)
    assert (made.columns, list(made.times), made.broken_lines) == (500, [1.0], 1)


steps = st.lists(
    st.one_of(
        st.floats(0.0, 3.0).map(lambda seconds: ("advance", seconds)),
        st.floats(-1.0, 40.0).map(lambda at: ("seek", at)),
        st.integers(-7, 7).map(lambda step: ("speed", float(step))),
        st.just(("pause", 0.0)),
    ),
    max_size=30,
)


@given(st.lists(st.floats(0.0, 2.0), max_size=30), steps)
def test_playback_shows_all_events_once_in_order(
    tmp_path_factory: pytest.TempPathFactory, pauses: list[float], doings: list[tuple[str, float]]
) -> None:
    times = [sum(pauses[: index + 1]) for index in range(len(pauses))]
    path = tmp_path_factory.mktemp("casts") / "a.cast"
    recording = record(path, HEADER, *([at, "o", str(index)] for index, at in enumerate(times)))
    playback = Playback(recording)
    seen: list[str] = []
    for doing, value in doings:
        match doing:
            case "advance":
                before = playback.at
                seen += [data for _, data in playback.advance(value, limit=3)]
                assert before <= playback.at <= recording.duration or playback.is_paused
            case "seek":
                seen = [data for _, data in playback.seek(value)]
            case "speed":
                playback.change_speed(int(value))
                assert playback.speed in SPEEDS
            case _:
                playback.is_paused = not playback.is_paused
        assert seen == [str(index) for index in range(len(seen))]
        # What is printed at one and the same moment may come in two bits.
        assert all(at <= playback.at for at in times[: len(seen)])
    recording.close()
