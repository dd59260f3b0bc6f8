"""Text from agents is harmless when shown."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.model.text import plain, plain_lines

anything = st.text(st.characters(exclude_categories=()), max_size=200)


@given(anything)
def test_no_control_character_survives(text: str) -> None:
    assert not [c for c in plain_lines(text) if unicodedata.category(c) == "Cc" and c != "\n"]


@given(anything, st.integers(1, 50))
def test_a_line_is_one_printable_line_within_its_limit(text: str, limit: int) -> None:
    line = plain(text, limit)
    assert len(line) <= limit
    assert "\n" not in line
    assert not [c for c in line if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


@given(anything)
def test_what_is_plain_stays_as_it_is(text: str) -> None:
    assert plain_lines(plain_lines(text)) == plain_lines(text)


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]52;c;aGVsbG8=\x07clipboard", "clipboard"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mred", "red"),
        ("a\rb", "a b"),
        ("tab\there", "tab here"),
        ("[/red] $(touch x)", "[/red] $(touch x)"),
        ("rtl \u202egnp.exe", "rtl \ufffdgnp.exe"),
        ("\x1bPq#0\x1b\\sixel", "sixel"),
    ],
)
def test_escape_sequences_go_whole(hostile: str, shown: str) -> None:
    assert plain(hostile) == shown
