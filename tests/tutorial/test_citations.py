"""Tests and citations as read from source code, without running it."""

from __future__ import annotations

import textwrap

import pytest

from swarm_tui.tutorial.blocks import comparable_lines
from swarm_tui.tutorial.citations import BrokenFile, Citation, TestFile, TestFunction, docstring_part, find_tests


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


def test_call_is_a_citation() -> None:
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
def test_call_forms_are_citations(statement: str) -> None:
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
def test_docstring_is_a_citation(docstring: str) -> None:
    assert cited(f'def test_a(e2e):\n    """{docstring}"""\n') == [BLOCK]


def test_docstring_without_block_is_no_citation() -> None:
    assert cited('def test_a():\n    """See the tutorial."""\n') == []


def test_backslash_at_line_end_has_both_readings() -> None:
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
        ("e2e.write_tutorial_block()", "an empty citation"),
    ],
)
def test_dynamic_citations_are_refused(call: str, reason: str) -> None:
    test = only_test(f"def test_a(e2e):\n    {call}\n")
    assert test.citations == ()
    assert len(test.refusals) == 1
    assert reason in test.refusals[0]
    assert "line 2" in test.refusals[0]


def test_tests_are_those_of_pytest() -> None:
    found = read_tests_of("""
        import unittest, pytest
        def test_plain(): ...
        async def test_async(): ...
        @pytest.mark.parametrize("n", [1, 2])
        @pytest.mark.slow
        def test_many(n): ...
        class TestGroup:
            limit = 3
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


def test_redefined_test_is_shadowed() -> None:
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
def test_invalid_python_file_is_named(source: bytes, line: int) -> None:
    found = find_tests(source, "test_x.py")
    assert isinstance(found, BrokenFile)
    assert (found.file, found.line) == ("test_x.py", line)
    assert found.reason


def test_declared_encoding_is_used() -> None:
    source = "# coding: latin-1\ndef test_a(e2e):\n    e2e.write_tutorial_block('mytool ü')\n".encode("latin-1")
    found = find_tests(source, "test_x.py")
    assert isinstance(found, TestFile)
    assert found.tests[0].citations[0].readings == ("mytool ü",)


def test_tests_have_file_line_and_source() -> None:
    source = (
        'import a\n\nclass TestIt:\n    def test_a(self, e2e):\n        e2e.write_tutorial_block("x")\n        more()\n'
    )
    found = find_tests(source.encode(), "tests/test_x.py", with_source=True)
    assert found == TestFile(
        (
            TestFunction(
                "tests/test_x.py",
                4,
                "TestIt::test_a",
                (Citation(5, ("x",)),),
                (),
                '    def test_a(self, e2e):\n        e2e.write_tutorial_block("x")\n        more()',
            ),
        )
    )
    without = find_tests(source.encode(), "tests/test_x.py")
    assert isinstance(without, TestFile)
    assert without.tests[0].source == ""


def test_redefined_class_has_no_tests() -> None:
    found = read_tests_of("class TestA:\n    def test_a(self): ...\nclass TestA:\n    def test_b(self): ...\n")
    assert ([test.name for test in found.tests], found.shadowed) == (["TestA::test_b"], ())


def test_too_deeply_nested_file_is_named() -> None:
    chain = b"if a: pass\n" + b"elif a: pass\n" * 1_200
    assert find_tests(b"\n" + chain, "test_x.py") == BrokenFile("test_x.py", 1, "nested too deeply")


def test_citations_are_read_in_order() -> None:
    test = only_test('''
        def test_a(e2e):
            """It helps.

            Tutorial block:
                from the docstring
            """
            e2e.write_tutorial_block("first")
            e2e.write_tutorial_block(BLOCK)
            if True:
                e2e.write_tutorial_block("in a branch")
            else:
                e2e.write_tutorial_block("in the other one")
            e2e.write_tutorial_block()
            other("not this")
            kept = e2e.write_tutorial_block("no statement of its own")
            e2e.write_tutorial_block("last")
    ''')
    assert [(citation.line, citation.readings) for citation in test.citations] == [
        (8, ("first",)),
        (17, ("last",)),
        (11, ("in a branch",)),
        (13, ("in the other one",)),
        (3, ("from the docstring",)),
    ]
    assert test.refusals == ("line 9 cites an expression; use a plain string", "line 14 has an empty citation")


@pytest.mark.parametrize(
    ("docstring", "part"),
    [
        ("It helps.", ""),
        ("Tutorial block: mytool a", "mytool a"),
        ("Tutorial block: mytool a\nmytool b\n", "mytool a\nmytool b"),
        ("Tutorial block:\n    mytool a\n\n    mytool b\nScope: it works.\n    mytool c", "mytool a\n\nmytool b"),
        ("It helps.\n\nTutorial block:\nmytool a\n\nmytool b", "mytool a"),
        ("It helps.\n\nTutorial block:\n\nmytool a\n\nmytool b", "mytool a"),
        ("It helps.\n\nTutorial block:\n    mytool a\n\n    mytool b\n\nMore.", "mytool a\n\nmytool b"),
        ("Tutorial block:\nmytool a\n\nmytool b\nScope: it works.", "mytool a\n\nmytool b"),
        ("Tutorial block:\n    if a:\n        mytool a\n", "if a:\n    mytool a"),
        ("Tutorial block:\n", ""),
    ],
)
def test_docstring_block_ends_with_indentation(docstring: str, part: str) -> None:
    assert docstring_part(docstring) == part


def test_joined_string_lines_are_read_as_written() -> None:
    source = 'def test_a(e2e):\n    e2e.write_tutorial_block("""mytool a \\\n--b""")\n'
    (citation,) = only_test(source).citations
    assert citation.readings == ("mytool a --b", "mytool a \\\n--b")
    plain = 'def test_a(e2e):\n    e2e.write_tutorial_block("""mytool a\n--b""")\n'
    assert only_test(plain).citations[0].readings == ("mytool a\n--b",)


def test_backslash_in_other_strings_is_read_by_python() -> None:
    for call in ('"""mytool \\t"""', '("mytool \\n"\n        "--b \\t")'):
        (citation,) = only_test(f"def test_a(e2e):\n    e2e.write_tutorial_block({call})\n").citations
        assert len(citation.readings) == 1
