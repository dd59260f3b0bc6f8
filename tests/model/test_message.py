"""Messages are wrapped to fit a terminal, and no word is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.model.text import LINE_BYTES, fit_to_terminal


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")) | st.sampled_from(" \n"), max_size=400),
    st.integers(1, 60),
)
def test_fit_to_terminal_keeps_words_and_limits_lines(text: str, times: int) -> None:
    fitted = fit_to_terminal(text * times)
    assert all(len(line.encode()) <= LINE_BYTES for line in fitted.split("\n"))
    assert "".join(fitted.split()) == "".join((text * times).split())


def test_fit_to_terminal_wraps_at_spaces() -> None:
    long = " ".join(f"word{number}" for number in range(2_000))
    assert fit_to_terminal(long).split() == long.split()
    assert fit_to_terminal("one\n\ntwo\n") == "one\n\ntwo"


def test_fit_to_terminal_removes_control_characters() -> None:
    assert fit_to_terminal("stop\x03 \x1b[201~now\x04") == "stop now"
