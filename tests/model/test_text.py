"""Text from agents is safe to print."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.model.text import MARKS_LIMIT, is_inside, is_safe_to_print, plain, plain_lines

anything = st.text(st.characters(exclude_categories=()), max_size=200)


@given(anything)
def test_plain_lines_removes_control_characters(text: str) -> None:
    assert not [c for c in plain_lines(text) if unicodedata.category(c) == "Cc" and c != "\n"]


@given(anything, st.integers(1, 50))
def test_plain_returns_printable_line_within_limit(text: str, limit: int) -> None:
    line = plain(text, limit)
    assert len(line) <= limit
    assert "\n" not in line
    assert not [c for c in line if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


@given(anything)
def test_plain_text_is_unchanged(text: str) -> None:
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
def test_complete_escape_sequences_are_removed(hostile: str, shown: str) -> None:
    assert plain(hostile) == shown


def test_excess_combining_marks_are_removed() -> None:
    piled = "a" + "\u0301" * 300 + "b"
    for shown in (plain(piled), plain(f"\x1b[1m{piled}"), plain_lines(piled)):
        assert shown == "a" + "\u0301" * MARKS_LIMIT + "b"


@pytest.mark.parametrize(
    "text", ["Việt Nam", "שָׁלוֹם", "ที่นี่", "हिन्दी", "日本語のテスト", "👩🏽❤️ ok", "e\u0301\u0302\u0303\u0304x"]
)
def test_text_of_any_language_is_unchanged(text: str) -> None:
    assert plain(text) == text
    assert plain_lines(text) == text


@pytest.mark.parametrize(
    ("raw", "is_safe"),
    [
        (b"+plain\tline\r\n-other \xc3\xa9\n\x0c\n", True),
        (b"+\x1b[2J\n", False),
        (b"+\xc2\x9b2J\n", False),
        (b"+hidden\rshown\n", False),
        (b"+\x07\n", False),
    ],
)
def test_control_bytes_are_not_safe_to_print(raw: bytes, is_safe: bool) -> None:
    assert is_safe_to_print(raw) is is_safe


@pytest.mark.parametrize("path", ["../x", "a/../b", ".git/hooks/x", "a/.GIT/x", "/x", "a//b", "", "a\0b", "."])
def test_path_outside_folder_is_rejected(path: str) -> None:
    assert not is_inside(path)


@given(st.lists(st.sampled_from(["a", "b.c", "..x", "-rf", " "]), min_size=1, max_size=4))
def test_path_inside_folder_is_accepted(parts: list[str]) -> None:
    assert is_inside("/".join(parts))
