"""The page of a run is read as any writer and any agent may have left it."""

from __future__ import annotations

import pytest

from swarm_tui.tmr.page import PageRow, read_page
from tests.tmr.runs import SUMMARY, MadeAgent, outcome, page


def test_ids_are_read_as_they_were_collected() -> None:
    test = 'tests/test_a.py::TestB::test_c[x::y-<b>&amp;-"q"]'
    (row,) = read_page(page([(MadeAgent(test, None, "IMPL_FIXES", (("FIX_IMPL", "a", "b"),)), "tmr-1-c", "tmr/1/c")]))
    assert (row.section, row.test, row.agent, row.branch) == ("IMPL_FIXES", test, "tmr-1-c", "tmr/1/c")


def test_what_agents_write_into_the_page_hides_no_row_of_another() -> None:
    rows = [(MadeAgent(f"a.py::test_{n}", outcome(True, True), "CLEAN_PASS"), f"tmr-1-test-{n}", "-") for n in "abc"]
    for written in ("</td></table><h2>So</h2>", "<table><tr><td>x", "<!-- <script>", "<h1 id=x>&lt;<td>", '<a "'):
        found = read_page(page(rows).replace(SUMMARY, written))
        assert [(row.section, row.test) for row in found] == [("CLEAN_PASS", f"a.py::test_{n}") for n in "abc"]


@pytest.mark.parametrize(
    ("html", "row"),
    [
        (
            "<H2 style='x' ID='sec-CLEAN_PASS'><tr><td>a::<wbr>b[&#x41;]<td class=x><code>tmr-1-b</code><td>-",
            PageRow("CLEAN_PASS", "a::b[A]", "tmr-1-b"),
        ),
        (
            "<h2 style='x'>FIXED (1)</h2><tr><td>a::b</td><td>FIX_IMPL/SUCCEEDED</td>"
            "<td class='md'>It <code>c</code></td><td><code>d</code></td><td><code>e/f</code></td></tr>",
            PageRow("FIXED", "a::b", "d", "e/f", (("FIX_IMPL", "SUCCEEDED"),), "It c"),
        ),
        ("<h2 id=sec-NEW><tr><td>a::b</td><td>-</td><td>d</td><td>e/f</td></tr>", PageRow("NEW", "a::b", "d", "e/f")),
    ],
)
def test_pages_of_other_writers_are_read(html: str, row: PageRow) -> None:
    assert read_page(html) == [row]


@pytest.mark.parametrize("sign", ["<", "<!--", "<td ", '<td "', "</", "&", "<td>", "<table>", "<h2>", "<tr><td>a<td>b"])
def test_a_page_is_read_in_one_pass(sign: str) -> None:
    assert read_page("<h2 id=sec-A>" + sign * 30_000) is not None


CELLS = "<td>a::b</td><td><code>c</code></td>"


def test_what_an_agent_said_belongs_to_the_row_before_it() -> None:
    (row,) = read_page(
        f"<h2 id=sec-A><tr>{CELLS}</tr><tr><td colspan=3>one<td class=md>two</tr><tr><td class=md>no</tr>"
    )
    assert (row.summary, row.is_in_prose) == ("one", False)


@pytest.mark.parametrize("before", ["", "<tr><td>x"])
def test_only_what_an_agent_wrote_is_prose(before: str) -> None:
    assert [row.is_in_prose for row in read_page(f"<h2 id=sec-A>{before}<tr>{CELLS}")] == [False]
    assert [row.is_in_prose for row in read_page(f"<h2 id=sec-A><tr><td class=md><tr>{CELLS}")] == [True]


def test_a_section_ends_the_row_before_it() -> None:
    assert [row.section for row in read_page(f"<h2 id=sec-A><tr>{CELLS}<h2 id=sec-B>")] == ["A"]


def test_a_row_needs_a_test_and_an_agent() -> None:
    assert not read_page("<h2 id=sec-A><tr><td>a::b</td><td><code></code></td></tr><tr><td></td><td>c</td></tr>")
