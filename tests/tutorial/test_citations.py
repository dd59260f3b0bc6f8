"""What counts as a test and as a citation, read from the source alone."""

from __future__ import annotations

import textwrap

import pytest

from swarm_tui.tutorial.blocks import comparable_lines
from swarm_tui.tutorial.citations import BrokenFile, TestFile, TestFunction, find_tests


def read_tests_of(source: str) -> TestFile:
    found = find_tests(textwrap.dedent(source).encode(), "test_x.py")
    assert isinstance(found, TestFile)
    return found


def only_test(source: str) -> TestFunction:
    (test,) = read_tests_of(source).tests
    return test


def cited(source: str) -> list[tuple[str, ...]]:
    return [comparable_lines(citation.readings[0]) for citation in only_test(source).citations]


BLOCK = ("# see the commands", "mytool --help")


def test_a_call_cites() -> None:
    source = '''
        def test_a(e2e):
            e2e.write_tutorial_block("""
                # see the commands
                mytool --help
            """)
    '''
    assert cited(source) == [BLOCK]
    assert only_test(source).line == 2


@pytest.mark.parametrize(
    "statement",
    [
        'session.write_tutorial_block("# see the commands\\n" "mytool --help")',
        "self.e2e.write_tutorial_block(text='''# see the commands\n    mytool --help''')",
        "with thing:\n        e2e.write_tutorial_block('# see the commands\\nmytool --help')",
        "try:\n        await e2e.write_tutorial_block('# see the commands\\nmytool --help')\n    finally: ...",
    ],
)
def test_a_call_may_be_written_in_many_ways(statement: str) -> None:
    assert cited(f"async def test_a(e2e):\n    {statement}\n") == [BLOCK]


@pytest.mark.parametrize(
    "docstring",
    [
        "Tutorial block:\n        # see the commands\n        mytool --help\n\n    Scope: it works.\n    ",
        "Tutorial block:\n        # see the commands\n        mytool --help\n    ",
        "It helps.\n\n    Tutorial block:\n        # see the commands\n        mytool --help\n\n    More words.\n    ",
        "It helps.\n\n    tutorial block:\n    # see the commands\n    mytool --help\n\n    More words.\n    ",
        "\n    Tutorial block:\n\n        # see the commands\n\n        mytool --help\n    ",
        "Tutorial block: # see the commands\n    mytool --help\n    ",
    ],
)
def test_a_docstring_cites(docstring: str) -> None:
    assert cited(f'def test_a(e2e):\n    """{docstring}"""\n') == [BLOCK]


def test_a_docstring_without_the_part_cites_nothing() -> None:
    assert cited('def test_a():\n    """See the tutorial."""\n') == []


def test_a_backslash_at_the_end_of_a_line_is_read_both_ways() -> None:
    source = 'def test_a(e2e):\n    e2e.write_tutorial_block("""\n        mytool a \\\n          --b\n    """)\n'
    (citation,) = only_test(source).citations
    assert [comparable_lines(reading) for reading in citation.readings] == [
        ("mytool a           --b",),
        ("mytool a \\", "--b"),
    ]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ('e2e.write_tutorial_block(f"mytool {name}")', "f-string"),
        ("e2e.write_tutorial_block(BLOCK)", "expression"),
        ("e2e.write_tutorial_block('a' + 'b')", "expression"),
        ("e2e.write_tutorial_block('a'.strip())", "expression"),
        ("e2e.write_tutorial_block(b'mytool')", "expression"),
        ("e2e.write_tutorial_block()", "cites nothing"),
    ],
)
def test_what_cannot_be_compared_is_refused(call: str, reason: str) -> None:
    test = only_test(f"def test_a(e2e):\n    {call}\n")
    assert test.citations == ()
    assert len(test.refusals) == 1
    assert reason in test.refusals[0]
    assert "line 2" in test.refusals[0]


def test_what_pytest_would_collect_is_a_test() -> None:
    found = read_tests_of("""
        import unittest, pytest
        def test_plain(): ...
        async def test_async(): ...
        @pytest.mark.parametrize("n", [1, 2])
        @pytest.mark.slow
        def test_many(n): ...
        class TestGroup:
            def test_inside(self): ...
            class TestDeeper:
                def test_deep(self): ...
            def helper(self): ...
        class Case(unittest.TestCase):
            def test_case(self): ...
        if True:
            def test_conditional(): ...
        else:
            def test_conditional(): ...
        def helper():
            def test_not_this(): ...
        class Other:
            def test_not_that(self): ...
        class TestWithInit:
            def __init__(self): ...
            def test_nor_this(self): ...
        @pytest.fixture(scope="module")
        def test_fixture(): ...
    """)
    assert [test.name for test in found.tests] == [
        "test_plain",
        "test_async",
        "test_many",
        "TestGroup::test_inside",
        "TestGroup::TestDeeper::test_deep",
        "Case::test_case",
        "test_conditional",
        "test_conditional",
    ]


def test_a_test_whose_name_is_taken_again_never_runs() -> None:
    found = read_tests_of("def test_a(): ...\n\ndef test_b(): ...\n\ndef test_a(): ...\n")
    assert [(test.name, test.line) for test in found.tests] == [("test_b", 3), ("test_a", 5)]
    assert [(each.name, each.line, each.later_line) for each in found.shadowed] == [("test_a", 1, 5)]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (b"def test_a(:\n", 1),
        (b"x = 1\n\ndef test_a()\n", 3),
        (b"x = '\xff'\n", 1),
        (b"a\0b", 1),
        (b"x = " + b"(" * 5000, 1),
        (b"x = " + b"-" * 100_000 + b"1", 1),
    ],
)
def test_a_file_that_is_no_python_is_named(source: bytes, line: int) -> None:
    found = find_tests(source, "test_x.py")
    assert isinstance(found, BrokenFile)
    assert (found.file, found.line) == ("test_x.py", line)
    assert found.reason


def test_another_encoding_is_read_as_python_reads_it() -> None:
    source = "# coding: latin-1\ndef test_a(e2e):\n    e2e.write_tutorial_block('mytool ü')\n".encode("latin-1")
    found = find_tests(source, "test_x.py")
    assert isinstance(found, TestFile)
    assert found.tests[0].citations[0].readings == ("mytool ü",)
