"""The page in a real Chromium: opened from the disk, without a network, without a word of complaint."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from swarm_tui.report.page import write_report
from swarm_tui.review.open import review_sweep
from swarm_tui.review.verdicts import Verdict
from tests.report.browser import Browser
from tests.report.sweeps import RESULTS, SECRET, START, make_sweep
from tests.report.test_page import make_hostile

pytestmark = [pytest.mark.slow, pytest.mark.needs("Chromium")]


@pytest.fixture
def browser() -> Iterator[Browser]:
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("sweep")
    return write_report(folder / "page", make_sweep(folder / "project", 48).open(), START).page.as_uri()


def test_it_shows_all_tests_and_complains_of_nothing(browser: Browser, page: str) -> None:
    browser.open(page)
    assert browser.evaluate("document.querySelectorAll('.test').length") == 48
    assert browser.evaluate("document.querySelectorAll('.cell').length") == 48
    assert browser.evaluate("document.querySelectorAll('.timeline rect[data-test]').length") == 48
    assert browser.evaluate("document.querySelectorAll('#fixes .fixes > .fix').length") == 4
    assert browser.requested() == [page]
    assert browser.complaints() == []


def test_the_commit_of_tests_shows_its_parts_and_what_became_of_them(browser: Browser, tmp_path: Path) -> None:
    sweep = make_sweep(tmp_path / "project", 48)
    with review_sweep(sweep.folder) as review:
        parts = review.load_parts().parts
        review.set_verdict(parts[0], Verdict.REVERT)
    browser.open(write_report(tmp_path / "page", sweep.open(), START).page.as_uri())
    browser.evaluate("document.querySelector('#fixes .part-of-page > .fix, #fixes > .fix').open = true")
    browser.wait_for("document.querySelector('#fixes .parts li')")
    shown = browser.evaluate("[...document.querySelectorAll('#fixes .parts li')].map(row => row.textContent)")
    assert len(shown) == len(parts)
    assert shown[0].startswith(f"out {parts[0].title}")
    assert browser.complaints() == []


def test_search_and_pills_filter_rows_and_grid_and_escape_brings_all_back(browser: Browser, page: str) -> None:
    browser.open(page)
    shown = "document.querySelectorAll('.test:not([hidden])').length"
    browser.evaluate("document.querySelector('#tests .pill.impl_fix').click()")
    assert browser.evaluate(shown) == 4
    assert browser.evaluate("document.querySelectorAll('.cell.out').length") == 44
    assert browser.evaluate("document.querySelector('#overview .pill.impl_fix').ariaPressed") == "true"
    press(browser, "/", "/")
    browser.call("Input.insertText", text="snapshot !_17")
    assert browser.evaluate("[...document.querySelectorAll('.test:not([hidden])')].map(row => row.id)") == ["test-18"]
    assert browser.evaluate("document.getElementById('shown').textContent").startswith("1 of 48 tests")
    press(browser, "Escape")
    assert browser.evaluate(shown) == 48
    assert browser.complaints() == []


def test_a_link_opens_its_test_with_its_diff_and_transcripts(browser: Browser, page: str) -> None:
    index = RESULTS.index("impl_fix")
    browser.open(f"{page}#test-{index}")
    browser.wait_for(f"document.querySelector('#test-{index} .body .block')")
    assert f"return run({index})" in browser.evaluate(f"document.querySelector('#test-{index} .diff').textContent")
    assert "[object" not in browser.evaluate("document.body.textContent")
    fold = f"document.querySelector('#test-{index} .block .paper:has(.mono)')"
    browser.evaluate(f"[...document.querySelectorAll('#test-{index} .block > details')].forEach(d => d.open = true)")
    browser.wait_for(f"document.querySelector('#test-{index} .cli .command')")
    browser.wait_for(f"document.querySelectorAll('#test-{index} .transcript > li').length > 3")
    assert browser.evaluate(f"{fold} !== null")
    assert browser.complaints() == []


def test_a_recording_plays_in_the_page(browser: Browser, page: str) -> None:
    browser.open(f"{page}#test-3")
    browser.wait_for("document.querySelector('#test-3 .cast')")
    browser.evaluate("document.querySelector('#test-3 .cast').open = true")
    browser.wait_for(
        "document.querySelector('#test-3 .ap-term-text')?.textContent.includes('hello from the recording')"
    )
    assert browser.complaints() == []


def test_a_fix_opens_with_its_verdict_and_diff(browser: Browser, page: str) -> None:
    browser.open(f"{page}#fix-2")
    browser.wait_for("document.querySelector('#fix-2 .diff')")
    assert "revert: ada · because" in browser.evaluate("document.querySelector('#fix-2').textContent")
    assert browser.complaints() == []


def test_hostile_content_is_shown_and_never_acts(browser: Browser, tmp_path: Path) -> None:
    made = make_hostile(tmp_path / "project")
    page = write_report(tmp_path / "page", made.open(), START).page.as_uri()
    browser.open(f"{page}#test-6")
    browser.wait_for("document.querySelector('#test-6 .body .block')")
    browser.evaluate("[...document.querySelectorAll('#test-6 details, #log details')].forEach(d => d.open = true)")
    browser.wait_for("document.querySelector('#test-6 .ap-term-text')?.textContent.includes('<script>')")
    browser.wait_for("document.querySelector('#test-6 .transcript')")
    assert browser.evaluate("document.title") == "e2e tutorial"
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert "<script>document.title" in browser.evaluate("document.querySelector('#test-6').textContent")
    assert SECRET not in browser.evaluate("document.documentElement.textContent")
    assert browser.complaints() == []


def test_data_that_is_missing_is_said_where_it_is_missing(browser: Browser, tmp_path: Path) -> None:
    page = write_report(tmp_path / "page", make_sweep(tmp_path / "project", 4).open(), START).page
    (page.parent / "data" / "test-2.js").unlink()
    browser.open(f"{page.as_uri()}#test-2")
    browser.wait_for("document.querySelector('#test-2 .problem')")
    assert "data/test-2.js is missing" in browser.evaluate("document.querySelector('#test-2 .problem').textContent")


def test_on_a_phone_nothing_is_wider_than_the_screen(browser: Browser, page: str) -> None:
    browser.call("Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=2, mobile=True)
    browser.open(f"{page}#test-{RESULTS.index('impl_fix')}")
    browser.wait_for("document.querySelector('.test[open] .body .block')")
    browser.evaluate("[...document.querySelectorAll('.test[open] details')].forEach(d => d.open = true)")
    assert browser.evaluate("document.documentElement.scrollWidth") == 360


def test_dark_and_light_follow_the_system_until_somebody_chooses(browser: Browser, page: str) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    grounds = []
    for preference in ("light", "dark"):
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": preference}])
        browser.open(page)
        grounds.append(browser.evaluate(ground))
    assert grounds[0] != grounds[1]
    browser.evaluate("document.getElementById('theme').click(); document.getElementById('theme').click()")
    assert browser.evaluate("document.getElementById('theme').textContent") == "theme: light"
    assert browser.evaluate(ground) == grounds[0]


def test_it_prints_on_paper(browser: Browser, page: str) -> None:
    browser.open(page)
    assert len(browser.call("Page.printToPDF")["data"]) > 10_000
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"


def test_a_large_sweep_opens_from_one_small_file_and_loads_the_rest_when_asked(
    browser: Browser, tmp_path: Path
) -> None:
    page = write_report(tmp_path / "page", make_sweep(tmp_path / "project", 500).open(), START).page
    browser.open(page.as_uri())
    assert browser.evaluate("document.querySelectorAll('.test').length") == 500
    assert browser.requested() == [page.as_uri()]
    assert page.stat().st_size < 500_000
    assert sum(file.stat().st_size for file in (page.parent / "data").iterdir()) > 2_000_000


def press(browser: Browser, key: str, text: str = "") -> None:
    """Press and release one key in the page."""
    for kind in ("keyDown", "keyUp"):
        told: dict[str, Any] = {"text": text} if text and kind == "keyDown" else {}
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, **told)
