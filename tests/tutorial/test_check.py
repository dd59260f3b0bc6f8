"""The check of a tutorial against its tests."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.tutorial.blocks import parse_blocks
from swarm_tui.tutorial.check import TutorialCheck, check_tutorial
from swarm_tui.tutorial.citations import find_tests

HELP = "# see the other commands\nmytool --help"
LIST = "# list all things\nmytool list --all\n# newest first"


def citing(name: str, *blocks: str, more: str = "pass") -> str:
    calls = "".join(
        f'    e2e.write_tutorial_block("""\n{textwrap.indent(block, " " * 8)}\n    """)\n' for block in blocks
    )
    return f"def {name}(e2e):\n{calls}    {more}\n"


def check(tutorial: str, *tests: str, is_lenient: bool = False) -> TutorialCheck:
    source = "\n\n".join(tests).encode()
    found = find_tests(source, "test_x.py", with_source=is_lenient)
    return check_tutorial(parse_blocks(tutorial), [found], is_lenient=is_lenient)


def unmatched(found: TutorialCheck) -> list[str]:
    return [each.test.name for each in found.unmatched_tests]


def test_matching_tutorial_and_tests_have_no_findings() -> None:
    found = check(f"{HELP}\n\n{LIST}\n", citing("test_help", HELP), citing("test_list", LIST), citing("test_x", LIST))
    assert found.is_whole
    assert (found.blocks, found.tests, found.files) == (2, 3, 1)


def test_blocks_without_a_test_and_tests_without_a_block() -> None:
    found = check(f"{HELP}\n\n{LIST}\n", citing("test_help", HELP), citing("test_nothing"), citing("test_x", "other"))
    assert [block.line for block in found.uncited_blocks] == [4]
    assert unmatched(found) == ["test_nothing", "test_x"]
    assert [each.reason for each in found.unmatched_tests] == [
        "cites no block",
        "cites a block that is not in the tutorial",
    ]
    assert not found.is_whole


@pytest.mark.parametrize(
    ("cited", "fits"),
    [
        ("  # see the other commands\n      mytool --help", True),
        ("# see the other commands  \nmytool --help\t", True),
        ("# see the other commands\r\nmytool --help", True),
        ("mytool --help\n# see the other commands", False),
        ("mytool --help", False),
        ("# see the other commands\nmytool  --help", False),
        ("# see the other commands\nmytool --help\nmytool", False),
    ],
)
def test_same_lines_in_order_cite_block(cited: str, fits: bool) -> None:
    assert check(f"\t{HELP}\n", citing("test_help", cited)).is_whole is fits


def test_citation_may_contain_several_blocks() -> None:
    assert check(f"{HELP}\n\n{LIST}\n", citing("test_both", f"{HELP}\n\n{LIST}")).is_whole
    assert check(f"{HELP}\n\n{LIST}\n", citing("test_both", HELP, LIST)).is_whole


def test_every_citation_must_match() -> None:
    found = check(f"{HELP}\n", citing("test_both", HELP, "mytool gone"))
    assert found.uncited_blocks == ()
    assert unmatched(found) == ["test_both"]


def test_edited_block_is_near_match_with_diff() -> None:
    edited = LIST.replace("--all", "--everything")
    found = check(f"{HELP}\n\n{edited}\n", citing("test_help", HELP), citing("test_list", LIST))
    (miss,) = found.near_misses
    assert (miss.test.name, miss.block.line) == ("test_list", 4)
    assert miss.difference == (
        "  # list all things",
        "- mytool list --all",
        "+ mytool list --everything",
        "  # newest first",
    )
    assert not found.is_whole


@pytest.mark.parametrize(
    ("cited", "block"),
    [
        ("mytool ls", "mytool list"),
        ("# words\nmytool copy a b --force", "# quite another explanation of it all\nmytool copy a b --force"),
        ("mytool copy a b", "mytool copy a b\n# what it does"),
        ("mytool copy a b\nmytool list", "mytool copy a b\nmytool list\nmytool remove a"),
    ],
)
def test_similar_block_is_near_match(cited: str, block: str) -> None:
    assert len(check(f"{block}\n\nsomething else\n", citing("test_x", cited)).near_misses) == 1


def test_different_block_is_not_near_match() -> None:
    assert check(f"{HELP}\n", citing("test_x", "git push --tags origin")).near_misses == ()


def test_uncited_block_is_preferred_as_near_match() -> None:
    found = check(
        "mytool copy --one x\n\nmytool copy --two x\n",
        citing("test_one", "mytool copy --one x"),
        citing("test_two", "mytool copy --sum x"),
    )
    assert [miss.block.line for miss in found.near_misses] == [3]


def test_identical_blocks_are_reported_and_cited_together() -> None:
    found = check(f"{HELP}\n\n{LIST}\n\n  {HELP}\n", citing("test_help", HELP), citing("test_list", LIST))
    assert [[block.line for block in same] for same in found.duplicate_blocks] == [[1, 8]]
    assert found.is_whole


def test_citations_of_shadowed_tests_do_not_count() -> None:
    found = check(f"{HELP}\n\n{LIST}\n", citing("test_a", HELP), citing("test_a", LIST))
    assert [block.line for block in found.uncited_blocks] == [1]
    assert [each.name for each in found.shadowed_tests] == ["test_a"]


def test_f_string_citation_is_refused() -> None:
    found = check(f"{HELP}\n", f'def test_a(e2e):\n    e2e.write_tutorial_block(f"""{HELP}""")\n')
    assert "f-string" in found.unmatched_tests[0].reason
    assert not found.is_whole


def test_continued_command_in_plain_string_matches() -> None:
    block = "# make it\nmytool create \\\n    --name x"
    assert check(f"{block}\n", citing("test_create", block)).is_whole
    docstring = f'def test_a():\n    """Tutorial block:\n{textwrap.indent(block, " " * 8)}\n\n    Scope: it.\n    """\n'
    assert check(f"{block}\n", docstring).is_whole


def test_lenient_check_finds_lines_anywhere_in_source() -> None:
    in_comments = "def test_a():\n    # see the other commands\n    x = 1\n    '''\n    mytool --help\n    '''\n"
    in_turn = "def test_b():\n    '''\n    mytool --help\n    '''\n    # see the other commands\n"
    assert check(f"{HELP}\n", in_comments).uncited_blocks != ()
    assert check(f"{HELP}\n", in_comments, is_lenient=True).is_whole
    assert not check(f"{HELP}\n", in_turn, is_lenient=True).is_whole


def test_lenient_check_accepts_citations() -> None:
    assert check(f"{HELP}\n", citing("test_a", HELP.replace("\n", "\n\n")), is_lenient=True).is_whole


def test_invalid_file_is_reported_and_others_checked() -> None:
    good = find_tests(citing("test_help", HELP).encode(), "test_good.py")
    bad = find_tests(b"def (", "test_bad.py")
    found = check_tutorial(parse_blocks(HELP), [bad, good])
    assert [broken.file for broken in found.broken_files] == ["test_bad.py"]
    assert found.tests == 1
    assert found.uncited_blocks == ()
    assert not found.is_whole


WORD = st.sampled_from(["mytool", "list", "copy", "--all", "x", "y"])
BLOCKS = st.lists(st.lists(st.lists(WORD, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=3), max_size=8)


@given(BLOCKS, st.sets(st.integers(0, 7)), st.booleans())
def test_only_cited_blocks_count(blocks: list[list[str]], chosen: set[int], is_lenient: bool) -> None:
    tutorial = "\n\n".join("\n".join(lines) for lines in blocks)
    cited = [blocks[number] for number in sorted(chosen) if number < len(blocks)]
    found = check(
        tutorial, *(citing(f"test_{n}", "\n".join(lines)) for n, lines in enumerate(cited)), is_lenient=is_lenient
    )
    assert unmatched(found) == []
    if not is_lenient:
        assert [list(block.lines) for block in found.uncited_blocks] == [b for b in blocks if b not in cited]
