"""Open work on a tutorial, split into batches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.tutorial.blocks import parse_blocks, parse_unfilled
from swarm_tui.tutorial.citations import find_tests
from swarm_tui.tutorial.open_work import (
    batches_of,
    file_for,
    find_open_work,
    guess_tool,
    items_of_batch,
    name_of_batch,
    text_of_batch,
)
from swarm_tui.tutorial.read import CommittedTutorial

TUTORIAL = """\
#!/bin/sh
# words of the script itself

############
# GREETINGS
############

# greet the world
hello world

# greet everybody who is here

## LATER

# ── drawn ──

# Good night

# say good night to them all:
# one by one
"""


def cite(name: str, *lines: str) -> str:
    body = "\n".join(f"        {line}" for line in lines)
    return f'def {name}(e2e):\n    e2e.write_tutorial_block("""\n{body}\n    """)\n\n\n'


def committed(tutorial: str, source: str = "") -> CommittedTutorial:
    return CommittedTutorial(tutorial, (find_tests(source.encode(), "tests/test_it.py"),), ("tests/test_it.py",))


def test_comments_need_commands_but_headings_do_not() -> None:
    found = [(block.line, block.title, block.section) for block in parse_unfilled(TUTORIAL)]
    assert found == [
        (11, "greet everybody who is here", "GREETINGS"),
        (19, "say good night to them all: one by one", "Good night"),
    ]


@pytest.mark.parametrize("title", ["── Begin ──", "SEE ALSO", "Getting started", "=== more"])
def test_short_line_is_a_title(title: str) -> None:
    assert parse_unfilled(f"a\n\n# {title}\n\nb\n") == ()


@pytest.mark.parametrize("task", ["list it", "List all of what there is", "Is it there?", "`list` it", "Use it."])
def test_sentence_is_open_work(task: str) -> None:
    assert [block.title for block in parse_unfilled(f"a\n\n# {task}\n\nb\n")] == [task.removesuffix(":")]


def test_fill_covers_comments_and_sync_blocks() -> None:
    assert [item.block.line for item in find_open_work("fill", committed(TUTORIAL)).items] == [11, 19]
    assert [item.block.line for item in find_open_work("sync", committed(TUTORIAL)).items] == [8]


def test_edited_block_lists_its_tests() -> None:
    source = cite("test_old", "# greet the world", "hello worlds")
    (item,) = find_open_work("sync", committed(TUTORIAL, source)).items
    assert [miss.test.name for miss in item.near_misses] == ["test_old"]


def test_tests_of_deleted_blocks_are_removed() -> None:
    source = (
        cite("test_gone", "# something else altogether", "format --the-disk now")
        + cite("test_here", "# greet the world", "hello world")
        + cite("test_both", "# greet the world", "hello world").rstrip()
        + '\n    e2e.write_tutorial_block("""\n        # gone too\n        format --another-disk\n    """)\n\n\n'
        + "def test_plain():\n    pass\n"
    )
    assert [test.name for test in find_open_work("sync", committed(TUTORIAL, source)).removed] == ["test_gone"]


def test_batch_is_named_by_first_block_and_found_by_text() -> None:
    work = find_open_work("fill", committed(TUTORIAL))
    (batch,) = batches_of(work.items, 4)
    assert name_of_batch("tutorial.sh", batch) == "tutorial.sh::11 greet everybody who is here (+1)"
    assert items_of_batch("fill", work, text_of_batch(batch)) == batch
    assert [len(each) for each in batches_of(work.items, 1)] == [1, 1]


@given(st.lists(st.text("abc #<EOF\n", max_size=30), max_size=12), st.integers(1, 5))
def test_every_item_is_in_one_batch(parts: list[str], size: int) -> None:
    work = find_open_work("sync", committed("\n\n".join(parts)))
    batches = batches_of(work.items, size)
    assert [item for batch in batches for item in batch] == list(work.items)
    keys = {item.key for item in work.items}
    for batch in batches:
        if len(parse_blocks(text_of_batch(batch))) == len(batch):
            again = items_of_batch("sync", work, text_of_batch(batch))
            assert {item.key for item in again} == {item.key for item in batch} <= keys


def test_block_has_separate_test_file() -> None:
    (item,) = find_open_work("sync", committed(TUTORIAL)).items
    assert file_for(item, "tests", ()) == "tests/test_greet_the_world.py"
    assert file_for(item, ".", ["test_greet_the_world.py"]) == "test_greet_the_world_8.py"


def test_tool_is_most_frequent_command() -> None:
    assert guess_tool("cd x\ncd y\ncd z\nA=b tool go\n\ntool stop\n") == "tool"
    assert guess_tool("# nothing\n") == ""
