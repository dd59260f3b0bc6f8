"""Entries as lines: widths, folding, markdown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from swarm_tui.transcripts.entries import Entry, Role, parse_record
from swarm_tui.transcripts.layout import Density, lay_out, prefix_width, wrap
from swarm_tui.transcripts.markdown import Style, read_markdown
from tests.transcripts.records import call, result, step

printable = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"))
texts = st.text(printable | st.sampled_from("\n宽"), max_size=300)
entries = st.builds(Entry, st.sampled_from(Role), texts, st.none() | st.floats(0, 2e9), st.sampled_from(["", "Bash"]))


@given(entries, st.integers(20, 120), st.sampled_from(Density))
def test_every_line_fits_the_width(entry: Entry, width: int, density: Density) -> None:
    lines = lay_out([entry], width, density)
    assert lines
    for line in lines:
        assert cell_len(line.prefix) == prefix_width(width)
        # A character of two cells may stand alone in a room of one.
        assert cell_len(line.prefix + line.text) <= max(width, prefix_width(width) + 8) + 1


@given(st.text(printable, max_size=200), st.integers(2, 60))
def test_wrapping_loses_only_spaces(text: str, room: int) -> None:
    pieces = list(wrap(text, room))
    assert "".join(text[start:stop] for start, stop in pieces).replace(" ", "") == text.replace(" ", "")
    assert all(cell_len(text[start:stop]) <= room for start, stop in pieces)


def test_one_line_an_event() -> None:
    raw = step("# Plan\n\nmany\nwords", tool_calls=[{"tool_call_id": "1", "function_name": "Bash", "arguments": {}}])
    lines = lay_out(parse_record(raw), 80, Density.LINES)
    assert len(lines) == 2
    assert lines[0].text == "Plan … (+3 lines)"


def test_a_long_result_is_folded_and_says_how_much_is_hidden() -> None:
    lines = lay_out(parse_record(result("\n".join(f"line {n}" for n in range(212)))), 80, Density.READABLE)
    assert [line.text for line in lines] == ["line 0", "line 1", "line 2 … (+209 lines)"]
    assert len(lay_out(parse_record(result("x\n" * 212)), 80, Density.WHOLE)) == 212


def test_a_folded_error_shows_the_error_and_not_what_came_before() -> None:
    text = "\n".join(["collected 1 item"] * 30 + ["E   AssertionError: assert 3 == 4", "test_a.py:3: AssertionError"])
    lines = lay_out(parse_record(result(text)), 80, Density.READABLE)
    assert lines[0].text == "E   AssertionError: assert 3 == 4"
    assert lines[1].text.endswith("(+30 lines)")
    assert all(line.is_error for line in lines)


def test_messages_are_whole_and_results_are_not() -> None:
    words = "\n".join(f"sentence {n}" for n in range(20))
    assert len(lay_out(parse_record(step(words)), 80, Density.READABLE)) == 20


def test_time_role_and_tool_come_first() -> None:
    line = lay_out(parse_record(call("pytest -q")), 80, Density.LINES)[0]
    assert line.prefix[8:] == "   call     "
    assert line.text == "Bash  pytest -q"
    assert lay_out(parse_record(result("Error: x")), 80, Density.LINES)[0].prefix[9] == "!"


def test_in_a_narrow_view_only_time_and_mark_come_first() -> None:
    line = lay_out(parse_record(call("pytest -q")), 40, Density.LINES)[0]
    assert len(line.prefix) == prefix_width(40) == 11


def test_markdown_is_made_readable_and_keeps_its_words() -> None:
    lines = read_markdown("## Why\nI **must** see `a.py`\n```py\nx = [1]\n```\n- one\n> quoted\n[link](http://x)")
    assert ["".join(run.text for run in runs) for runs in lines] == [
        "Why",
        "I must see a.py",
        "  x = [1]",
        "• one",
        "│ quoted",
        "link (http://x)",
    ]
    assert lines[0][0].style is Style.HEADING
    assert [run.style for run in lines[1]] == [Style.PLAIN, Style.BOLD, Style.PLAIN, Style.CODE]


def test_names_with_underscores_and_stars_are_left_alone() -> None:
    for text in ("a*b*c", "__init__.py", "2 * 3 * 4", "**", "`", "[x]"):
        assert "".join(run.text for run in read_markdown(text)[0]) == text


def test_a_plain_file_has_the_whole_width_and_still_marks_errors() -> None:
    entries = parse_record(b"x" * 100) + parse_record(b"KeyError: 'x'")
    lines = lay_out(entries, 50, Density.WHOLE, is_file=True)
    assert [len(line.prefix + line.text) for line in lines] == [50, 50, 6, 15]
    assert lines[-1].prefix == "! "
