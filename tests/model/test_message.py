"""Messages fit into terminals, and lose no word by it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.model.text import LINE_BYTES, fit_to_terminal


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")) | st.sampled_from(" \n"), max_size=400),
    st.integers(1, 60),
)
def test_no_line_is_too_long_and_no_word_is_lost(text: str, times: int) -> None:
    fitted = fit_to_terminal(text * times)
    assert all(len(line.encode()) <= LINE_BYTES for line in fitted.split("\n"))
    assert "".join(fitted.split()) == "".join((text * times).split())


def test_words_stay_whole_and_lines_stay_lines() -> None:
    long = " ".join(f"word{number}" for number in range(2_000))
    assert fit_to_terminal(long).split() == long.split()
    assert fit_to_terminal("one\n\ntwo\n") == "one\n\ntwo"


def test_what_would_act_on_a_terminal_is_gone() -> None:
    assert fit_to_terminal("stop\x03 \x1b[201~now\x04") == "stop now"
