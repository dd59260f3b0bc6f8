"""The drawing of the Agent screen is plain text and fits, whatever agents have written."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from rich.cells import cell_len

from swarm_tui.journal import record as model
from swarm_tui.journal.pulled_files import PulledFile
from swarm_tui.journal.work_events import Try
from swarm_tui.model.pulled import Escalation, PulledChange, PulledWork
from swarm_tui.model.results import Baseline, State
from swarm_tui.room.agent.draw import draw_about, draw_tabs, draw_tries_and_files
from swarm_tui.room.draw.spans import Line, text_of, width_of
from swarm_tui.room.draw.transcript import LINE_LIMIT, draw_tail_line, draw_transcript_line, read_terminal_text
from swarm_tui.room.grid.side import draw_side
from swarm_tui.transcripts.entries import Entry, Role, parse_record
from swarm_tui.transcripts.layout import Density, lay_out
from swarm_tui.transcripts.merged import MergedEntry, TailEntry
from tests.transcripts.records import step

hostile = st.text(
    st.sampled_from("ab [/]\\\x1b\x07\x9b\x00\x7f\r\n\t0;31m]P宽\u0301\u202e\u200b") | st.characters(codec="utf-8"),
    max_size=60,
)


def is_harmless(line: Line) -> bool:
    return acts_not(text_of(line))


def acts_not(text: str) -> bool:
    """Return whether the text is free of control characters and line breaks."""
    return not any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in text)


@st.composite
def records(draw: st.DrawFn) -> model.TestRecord:
    return model.TestRecord(
        test=draw(hostile),
        agent=draw(hostile),
        state=draw(st.sampled_from([state for state in State if state is not State.DONE])),
        reason=draw(hostile),
        pulled=PulledWork(
            summary=draw(hostile),
            changes=(
                PulledChange(kind=draw(hostile), status=draw(hostile), summary=draw(hostile), commit=draw(hostile)),
            ),
            escalations=(Escalation(title=draw(hostile), detail_markdown=draw(hostile)),),
        ),
        question=draw(hostile),
        launched_at=draw(st.none() | st.just(1.0)),
        tries=(Try(1, draw(st.none() | st.booleans()), 1.0, 2.0, draw(hostile)),),
    )


@settings(deadline=None)
@given(records(), hostile, st.integers(20, 120))
def test_agent_header_and_tries_are_plain_and_fit(record: model.TestRecord, name: str, width: int) -> None:
    lines = [*draw_about(record, 3.0, width), draw_tabs({"file": name, "tries": "tries"}, "file")]
    rows = draw_tries_and_files(record, [PulledFile(name, Path("x"), 3)], frozenset({1}), width)
    assert all(is_harmless(line) for line in [*lines, *(row.line for row in rows)])
    assert all(width_of(line) <= width for line in lines[:-1])


@settings(deadline=None)
@given(hostile, hostile, st.sampled_from(Role), st.integers(40, 120))
def test_tail_is_plain_and_fits(text: str, name: str, role: Role, width: int) -> None:
    (entry, *_) = parse_record(step(text))
    for agents in (("a",), ("a", "b")):
        item = TailEntry(1.0, 0, 0, "a", entry._replace(role=role))
        line = draw_tail_line(MergedEntry(item, agents), name, width)
        assert is_harmless(line)
        assert width_of(line) <= width


@settings(deadline=None)
@given(hostile, hostile)
def test_highlighting_search_keeps_text(text: str, found: str) -> None:
    for line in lay_out(parse_record(step(text)), 60, Density.WHOLE):
        drawn = draw_transcript_line(line, found)
        assert text_of(drawn) == line.prefix + line.text
        assert is_harmless(drawn)


@settings(deadline=None)
@given(hostile)
def test_captured_screen_keeps_only_colours(text: str) -> None:
    for segments in read_terminal_text(text):
        shown = "".join(segment.text for segment in segments)
        assert acts_not(shown)
        assert len(shown) <= 2 * LINE_LIMIT


def test_captured_screen_colours_are_parsed() -> None:
    (line,) = read_terminal_text("plain \x1b[1;31mred\x1b[0;48;5;4mblue\x1b[38;2;1;2;3mown\x1b[39;49mend")
    assert [segment.text for segment in line] == ["plain ", "red", "blue", "own", "end"]
    styles = [segment.style for segment in line]
    assert styles[1] is not None
    assert styles[1].bold
    assert [str(style.color.name) if style and style.color else "" for style in styles] == [
        "",
        "color(1)",
        "",
        "#010203",
        "",
    ]


def test_merged_line_shows_number_of_agents() -> None:
    item = TailEntry(1.0, 0, 0, "a", Entry(Role.RESULT, "fixture 'host' not found", 1.0, is_error=True))
    line = text_of(draw_tail_line(MergedEntry(item, tuple("abcdefg")), "test_a", 120))
    assert "7 agents" in line
    assert line.endswith("same line from 7 agents")
    assert cell_len(line) <= 120


def test_agent_on_silent_host_is_stale() -> None:
    record = model.TestRecord(test="a::b", state=State.RUNNING, host="box1", stale_since=10.0)
    assert "stale: last report from box1 20 s ago" in "\n".join(map(text_of, draw_side(record, 60, 30.0)))
    here = model.TestRecord(test="a::b", state=State.RUNNING, stale_since=10.0)
    assert "stale: the poll failed 20 s ago" in "\n".join(map(text_of, draw_side(here, 60, 30.0)))


def test_baseline_is_shown_in_test_panel() -> None:
    record = model.TestRecord("a.py::test_a", baseline=Baseline.CLASH)
    shown = "\n".join(map(text_of, draw_side(record, 60, 0.0)))
    assert "baseline: passes alone, fails with other tests" in shown
    assert "conflicts with other tests" in text_of(draw_about(record, 0.0, 100)[0])
    green = structs.replace(record, baseline=Baseline.GREEN)
    assert "baseline: passes at the base" in "\n".join(map(text_of, draw_side(green, 60, 0.0)))
    assert "passes" not in text_of(draw_about(green, 0.0, 100)[0])
