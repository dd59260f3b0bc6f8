"""Lines of text keep to their width with any characters."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from swarm_tui.room.draw.frame import draw_bar
from swarm_tui.room.draw.spans import (
    Span,
    align_right,
    cut_line,
    cut_middle,
    cut_text,
    fold_line,
    pad_text,
    spread,
    text_of,
    whole_entries,
    width_of,
    wrap_text,
)

texts = st.text(alphabet=st.sampled_from("ab 日本é…😀\u0301-"), max_size=40)
widths = st.integers(0, 30)
lines = st.lists(texts.map(Span), max_size=5)


@given(texts, widths)
def test_cut_text_fits(text: str, width: int) -> None:
    assert cell_len(cut_text(text, width)) <= width
    assert cell_len(cut_middle(text, width)) <= width


@given(texts, st.integers(3, 30))
def test_folded_line_fits_and_keeps_every_character(text: str, width: int) -> None:
    rows = fold_line([Span(text, "strong")], width, limit=10_000)
    assert all(width_of(row) <= width for row in rows)
    assert "".join(text_of(row) if not number else text_of(row)[1:] for number, row in enumerate(rows)) == text
    in_parts = fold_line([Span(character) for character in text], width, limit=10_000)
    assert [text_of(row) for row in in_parts] == [text_of(row) for row in rows]


@given(texts, widths)
def test_text_that_fits_is_not_cut(text: str, width: int) -> None:
    if cell_len(text) <= width:
        assert cut_text(text, width) == text
        assert cut_middle(text, width) == text


@given(texts, st.integers(1, 30))
def test_padded_text_has_exact_width(text: str, width: int) -> None:
    assert cell_len(pad_text(text, width)) == width
    assert cell_len(align_right(text, width)) == width


@given(lines, widths)
def test_cut_line_fits(line: list[Span], width: int) -> None:
    cut = cut_line(line, width)
    assert width_of(cut) <= width
    if width_of(line) <= width:
        assert text_of(cut) == text_of(line)


@given(lines, lines, st.integers(1, 60))
def test_spread_cuts_left_end_if_too_long(left: list[Span], right: list[Span], width: int) -> None:
    line = spread(left, right, width)
    assert width_of(line) <= width
    if width_of(right) < width:
        assert width_of(line) == width
        assert text_of(line).endswith(text_of(right))


@given(st.lists(texts.map(lambda text: [Span(text)]), max_size=6), st.integers(1, 60))
def test_entries_are_whole_or_left_out(entries: list[list[Span]], width: int) -> None:
    shown = text_of(whole_entries(entries, width))
    assert cell_len(shown) <= width
    assert any(shown == "  ".join(text_of(entry) for entry in entries[:number]) for number in range(len(entries) + 1))


@given(texts, st.integers(2, 20))
def test_wrapped_lines_fit_and_lose_only_spaces(text: str, width: int) -> None:
    wrapped = wrap_text(text, width)
    assert all(cell_len(line) <= width for line in wrapped)
    assert "".join(wrapped).replace(" ", "") == text.replace(" ", "")


@given(
    st.dictionaries(st.sampled_from(["clean", "better", "running", "queued", "error"]), st.integers(0, 5000)), widths
)
def test_bar_has_width_and_cell_for_each_state(counts: dict[str, int], width: int) -> None:
    bar = draw_bar(counts, width)
    assert width_of(bar) == width
    present = [mark for mark, number in counts.items() if number]
    if present and width >= len(present):
        assert len([part for part in bar if part.text]) == len(present)
