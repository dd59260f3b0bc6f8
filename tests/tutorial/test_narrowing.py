"""A check limited to some blocks, selected by line or title."""

from __future__ import annotations

import pytest

from swarm_tui.errors import UsageError
from swarm_tui.tutorial.blocks import parse_blocks
from swarm_tui.tutorial.check import check_tutorial, choose_blocks, narrow_check
from swarm_tui.tutorial.citations import find_tests
from tests.tutorial.test_open_work import cite

BLOCKS = parse_blocks("# one\nrun one\n\n# two\nrun two\n\n# two\nrun two again\n")


def test_blocks_are_named_by_line_or_title() -> None:
    assert [block.line for block in choose_blocks(BLOCKS, ["4", "one"])] == [1, 4]
    assert [block.line for block in choose_blocks(BLOCKS, [" two "])] == [4, 7]
    with pytest.raises(UsageError, match="unknown block: 'three'"):
        choose_blocks(BLOCKS, ["one", "three"])


def test_findings_are_limited_to_blocks() -> None:
    source = cite("test_old", "# one", "run one --old") + cite("test_gone", "# gone", "altogether else")
    check = check_tutorial(BLOCKS, [find_tests(source.encode(), "test_it.py")])
    one = narrow_check(check, BLOCKS[:1])
    assert [each.test.name for each in one.unmatched_tests] == ["test_old"]
    assert not one.is_whole
    assert [block.line for block in narrow_check(check, BLOCKS[1:2]).uncited_blocks] == [4]
    good = check_tutorial(BLOCKS, [find_tests(cite("test_two", "# two", "run two").encode(), "test_it.py")])
    assert not good.is_whole
    assert narrow_check(good, BLOCKS[1:2]).is_whole
