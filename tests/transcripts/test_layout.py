"""Entries as lines: widths, folding, markdown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from swarm_tui.transcripts.entries import Entry, Role, parse_record
from swarm_tui.transcripts.layout import (
    Density,
    StyledText,
    TextStyle,
    lay_out,
    prefix_width,
    read_markdown,
    wrap,
    wrap_runs,
)
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


def test_compact_view_has_one_line_per_event() -> None:
    raw = step("# Plan\n\nmany\nwords", tool_calls=[{"tool_call_id": "1", "function_name": "Bash", "arguments": {}}])
    lines = lay_out(parse_record(raw), 80, Density.LINES)
    assert len(lines) == 2
    assert lines[0].text == "Plan … (+3 lines)"


def test_folded_result_counts_hidden_lines() -> None:
    lines = lay_out(parse_record(result("\n".join(f"line {n}" for n in range(212)))), 80, Density.READABLE)
    assert [line.text for line in lines] == ["line 0", "line 1", "line 2 … (+209 lines)"]
    assert len(lay_out(parse_record(result("x\n" * 212)), 80, Density.WHOLE)) == 212


def test_folded_error_starts_at_the_error() -> None:
    text = "\n".join(["collected 1 item"] * 30 + ["E   AssertionError: assert 3 == 4", "test_a.py:3: AssertionError"])
    lines = lay_out(parse_record(result(text)), 80, Density.READABLE)
    assert lines[0].text == "E   AssertionError: assert 3 == 4"
    assert lines[1].text.endswith("(+30 lines)")
    assert all(line.is_error for line in lines)


def test_messages_are_not_folded() -> None:
    words = "\n".join(f"sentence {n}" for n in range(20))
    assert len(lay_out(parse_record(step(words)), 80, Density.READABLE)) == 20


def test_line_starts_with_time_role_and_tool() -> None:
    line = lay_out(parse_record(call("pytest -q")), 80, Density.LINES)[0]
    assert line.prefix[8:] == "   call     "
    assert line.text == "Bash  pytest -q"
    assert lay_out(parse_record(result("Error: x")), 80, Density.LINES)[0].prefix[9] == "!"


def test_narrow_line_starts_with_time_and_mark() -> None:
    line = lay_out(parse_record(call("pytest -q")), 40, Density.LINES)[0]
    assert len(line.prefix) == prefix_width(40) == 11


def test_markdown_is_rendered_without_losing_text() -> None:
    lines = read_markdown("## Why\nI **must** see `a.py`\n```py\nx = [1]\n```\n- one\n> quoted\n[link](http://x)")
    assert ["".join(run.text for run in runs) for runs in lines] == [
        "Why",
        "I must see a.py",
        "  x = [1]",
        "• one",
        "│ quoted",
        "link (http://x)",
    ]
    assert lines[0][0].style is TextStyle.HEADING
    assert [run.style for run in lines[1]] == [TextStyle.PLAIN, TextStyle.BOLD, TextStyle.PLAIN, TextStyle.CODE]


def test_underscores_and_stars_in_names_stay() -> None:
    for text in ("a*b*c", "__init__.py", "2 * 3 * 4", "**", "`", "[x]"):
        assert "".join(run.text for run in read_markdown(text)[0]) == text


def test_plain_file_uses_full_width_and_marks_errors() -> None:
    entries = parse_record(b"x" * 100) + parse_record(b"KeyError: 'x'")
    lines = lay_out(entries, 50, Density.WHOLE, is_file=True)
    assert [len(line.prefix + line.text) for line in lines] == [50, 50, 6, 15]
    assert lines[-1].prefix == "! "


def lines_of(entry: Entry, width: int = 80, density: Density = Density.READABLE) -> list[str]:
    return [line.text for line in lay_out([entry], width, density)]


def test_note_and_tool_precede_text_with_separate_style() -> None:
    (line,) = lay_out([Entry(Role.RESULT, "done", tool="Bash", note="cut")], 80, Density.READABLE)
    assert line.runs == (
        StyledText("(cut) ", TextStyle.NOTE),
        StyledText("Bash  ", TextStyle.TOOL),
        StyledText("done", TextStyle.PLAIN),
    )
    (failed,) = lay_out([Entry(Role.RESULT, "done", is_error=True)], 80, Density.READABLE)
    assert (failed.runs, failed.is_error) == ((StyledText("done", TextStyle.ERROR),), True)
    (called,) = lay_out([Entry(Role.CALL, "ls", tool="Bash")], 80, Density.READABLE)
    assert called.runs == (StyledText("Bash  ", TextStyle.TOOL), StyledText("ls"))
    assert lines_of(Entry(Role.USER, "", note="broken")) == ["(broken) "]
    assert lines_of(Entry(Role.USER, "")) == [""]


def test_fold_limit_depends_on_role() -> None:
    text = "\n".join(f"line {n}" for n in range(100))
    shown = {role: len(lines_of(Entry(role, text))) for role in Role}
    assert shown == {
        Role.USER: 40,
        Role.AGENT: 60,
        Role.THINKING: 2,
        Role.CALL: 2,
        Role.RESULT: 3,
        Role.SYSTEM: 3,
        Role.TEXT: 8,
    }
    assert lines_of(Entry(Role.RESULT, "1\n2\n3\n4"))[-1] == "3 … (+1 line)"
    assert lines_of(Entry(Role.RESULT, "1\n2\n3")) == ["1", "2", "3"]


def test_too_long_line_ends_in_dots() -> None:
    words = "word " * 60
    assert lines_of(Entry(Role.RESULT, words), 50, Density.LINES) == ["word word word word word word word wo…"]
    whole = lines_of(Entry(Role.RESULT, words), 50, Density.WHOLE)
    assert whole[0] == "word word word word word word word word"
    assert "".join(whole).replace(" ", "") == "word" * 60


def test_wide_characters_that_fit_are_not_wrapped() -> None:
    runs = (StyledText("日本", TextStyle.PLAIN), StyledText("語", TextStyle.CODE))
    assert wrap_runs(runs, 6) == [runs]
    assert wrap_runs(runs, 6)[0] is runs
    assert len(wrap_runs(runs, 5)) == 2


def test_lines_break_at_last_space_of_second_half() -> None:
    assert list(wrap("aaa bbb ccc", 7)) == [(0, 7), (8, 11)]
    assert list(wrap("aaa bbb ccc", 8)) == [(0, 7), (8, 11)]
    assert list(wrap("a bbbbbbbbbb", 8)) == [(0, 8), (8, 12)]
    assert list(wrap("abcdefgh ij", 8)) == [(0, 8), (9, 11)]
    assert list(wrap("宽宽宽宽", 5)) == [(0, 2), (2, 4)]
    assert list(wrap("宽宽", 1)) == [(0, 1), (1, 2)]
    assert list(wrap("", 8)) == []


def test_folded_error_without_error_line_starts_at_top() -> None:
    entry = Entry(Role.RESULT, "\n".join(f"line {n}" for n in range(9)), is_error=True)
    assert lines_of(entry) == ["line 0", "line 1", "line 2 … (+6 lines)"]
    told = entry._replace(text="one\ntwo\nthree\nfour\nKeyError: 7")
    assert lines_of(told) == ["KeyError: 7 … (+4 lines)"]
    assert lines_of(told._replace(is_error=False)) == ["one", "two", "three … (+2 lines)"]
    assert lines_of(told._replace(role=Role.SYSTEM)) == ["one", "two", "three … (+2 lines)"]
    assert lines_of(told._replace(text="one\ntwo\nKeyError: 7")) == ["one", "two", "KeyError: 7"]


def test_compact_line_is_not_blank() -> None:
    assert lines_of(Entry(Role.RESULT, "\n  \nfirst\nsecond"), density=Density.LINES) == ["first … (+1 line)"]
    assert lines_of(Entry(Role.RESULT, "\n\n"), density=Density.LINES) == [""]
    assert lines_of(Entry(Role.CALL, "\nls", tool="Bash"), density=Density.LINES) == ["Bash   … (+1 line)"]
    assert lines_of(Entry(Role.RESULT, "\nfirst")) == ["", "first"]


def test_only_first_line_has_time_and_role() -> None:
    first, second = lay_out([Entry(Role.AGENT, "one\ntwo", at=None)], 80, Density.WHOLE)
    assert (first.prefix, second.prefix) == (" " * 8 + "   agent    ", " " * 20)
    assert lay_out([Entry(Role.AGENT, "one")], 60, Density.WHOLE)[0].prefix == " " * 8 + "   agent    "
    assert lay_out([Entry(Role.AGENT, "one")], 59, Density.WHOLE)[0].prefix == " " * 11
    assert lay_out([Entry(Role.RESULT, "one", is_error=True)], 59, Density.WHOLE)[0].prefix == " " * 8 + " ! "


def test_record_has_at_most_2000_lines() -> None:
    many = [Entry(Role.RESULT, "\n".join("x" * 1_500))] * 3
    assert len(lay_out(many, 80, Density.WHOLE)) == 2_000


def test_narrowest_view_has_eight_cells() -> None:
    assert lines_of(Entry(Role.RESULT, "x" * 20), 5, Density.WHOLE) == ["x" * 8, "x" * 8, "x" * 4]
