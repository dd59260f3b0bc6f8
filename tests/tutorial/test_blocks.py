"""Parsing a tutorial into blocks with titles and sections."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.tutorial.blocks import comparable_lines, here_document_words, parse_blocks

TUTORIAL = """\
#!/usr/bin/env bash
set -euo pipefail
# all of mytool

##########################
# CREATING THINGS
#   One of the most common things you'll do.
##########################

## BASIC CREATION

# make a thing:
mytool create
# the thing is made

# This is worth knowing before the next one.

mytool create --name x

## REMOVING ##

# remove it
# for good
mytool remove \\
    --force

# ANOTHER PART

mytool list
"""


def test_blocks_have_lines_titles_and_sections() -> None:
    assert [(block.line, block.end_line, block.title, block.section) for block in parse_blocks(TUTORIAL)] == [
        (12, 14, "make a thing", "CREATING THINGS / BASIC CREATION"),
        (18, 18, "This is worth knowing before the next one.", "CREATING THINGS / BASIC CREATION"),
        (22, 25, "remove it for good", "CREATING THINGS / REMOVING"),
        (29, 29, "mytool list", "ANOTHER PART"),
    ]


def test_block_has_text_and_commands() -> None:
    block = parse_blocks("# one\nmytool a  \n\tmytool b\t# why\n")[0]
    assert block.text == "# one\nmytool a\n\tmytool b\t# why"
    assert block.commands == ("mytool a", "mytool b\t# why")
    assert block.key == ("# one", "mytool a", "mytool b\t# why")


def test_heading_in_block_is_section_or_title() -> None:
    first, second = parse_blocks("## Start\n# begin here\nmytool a\n\n## Go on\nmytool b\n")
    assert (first.section, first.title) == ("Start", "begin here")
    assert (second.section, second.title) == ("Go on", "Go on")


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/sh\nset -e\nmytool a\n",
        "# only words\n# and more\n",
        "#!/bin/sh",
        "",
        " \n\t\n",
    ],
)
def test_shebang_and_comments_alone_are_not_blocks(text: str) -> None:
    assert parse_blocks(text) == ()


def test_shebang_is_ignored_only_in_first_block() -> None:
    assert [block.line for block in parse_blocks("mytool a\n\n#!/bin/sh\nmytool b\n")] == [1, 3]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_line_endings_are_accepted(end: str) -> None:
    text = TUTORIAL.replace("\n", end)
    assert parse_blocks(text) == parse_blocks(TUTORIAL)
    assert parse_blocks(text.rstrip()) == parse_blocks(TUTORIAL)


def test_shebang_after_byte_order_mark_is_found() -> None:
    assert parse_blocks("\ufeff" + TUTORIAL) == parse_blocks(TUTORIAL)


def test_whitespace_line_ends_block() -> None:
    assert [block.text for block in parse_blocks("mytool a\n \t \nmytool b")] == ["mytool a", "mytool b"]


def test_unicode_separators_do_not_end_lines() -> None:
    text = "# grüße 你好\nmytool \u2028 'x\x0by'"
    assert parse_blocks(text)[0].text == text


@pytest.mark.parametrize(
    "text",
    [
        "cat > f <<EOF\none\n\n# two\nEOF\nmytool f",
        "cat > f <<-'EOF'\n\tone\n\n\tEOF\nmytool f",
        "mytool commit -m \"$(cat <<'EOF'\none\n\ntwo\nEOF\n)\"",
        "diff <(cat <<A) - <<B\n1\n\nA\n2\n\nB",
        'cat << "END OF"\none\n\nEND OF\nmytool f',
    ],
)
def test_empty_line_in_here_document_stays_in_block(text: str) -> None:
    blocks = parse_blocks(f"{text}\n\nmytool next\n")
    assert [block.text for block in blocks] == [text, "mytool next"]


@pytest.mark.parametrize(
    "line",
    [
        "mytool $((1 << 2))",
        "mytool <<< words",
        "mytool '<<EOF'",
        'mytool "<<EOF"',
        "mytool a # <<EOF",
        "# cat <<EOF",
        "mytool <<EOF",
    ],
)
def test_text_like_here_document_is_not_one(line: str) -> None:
    text = f"{line}\nmytool a\n\nmytool b\n"
    assert [block.text for block in parse_blocks(text)] == [f"{line}\nmytool a", "mytool b"]


def test_here_document_delimiters_are_read() -> None:
    assert here_document_words("a <<-'X Y' b <<\"Z\" c<<W; d <<\\V # <<U") == [
        ("X Y", True),
        ("Z", False),
        ("W", False),
        ("V", False),
    ]


def test_heading_boxes_may_use_other_characters() -> None:
    assert parse_blocks("# ======\n# FIRST\n# ======\n\nmytool a")[0].section == "FIRST"


LINES = st.sampled_from(["", " ", "mytool a", "\tmytool b", "# words.", "## HEAD", "cat <<E", "E", "#!/bin/sh", "####"])


@given(st.lists(LINES, max_size=30))
def test_no_command_is_lost_or_invented(lines: list[str]) -> None:
    """Each block has its reported position, and every command outside of the first shebang is in a block."""
    blocks = parse_blocks("\n".join(lines))
    inside: set[int] = set()
    for block in blocks:
        assert tuple(lines[block.line - 1 : block.end_line]) == block.lines
        assert block.commands
        numbers = set(range(block.line, block.end_line + 1))
        assert not inside & numbers
        inside |= numbers
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines and not lines[first].startswith("#!"):
        commands = {n for n, line in enumerate(lines, 1) if line.strip() and not line.strip().startswith("#")}
        assert commands <= inside


@given(st.text())
def test_any_text_can_be_parsed(text: str) -> None:
    for block in parse_blocks(text):
        assert comparable_lines(block.text) == block.key
