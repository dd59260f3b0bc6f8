"""The Fixes screen without fixes, and its update when the fixes are ready."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from swarm_tui.integrator.events import IntegrationFailed
from swarm_tui.journal.append import EngineLock
from swarm_tui.journal.events import EngineEnded
from swarm_tui.journal.progress_file import PROGRESS_FILE
from swarm_tui.model.formatting import Progress
from swarm_tui.room.draw.spans import text_of, width_of
from swarm_tui.room.fixes.draw import NoFixesView, draw_no_fixes, no_fixes_message
from tests.room.larder import ENDED, begin_larder
from tests.room.scenes import Scene, room_on, text_on_screen
from tests.waiting import eventually

FACTS = NoFixesView(
    sweep="20261118",
    integration="none",
    detail="",
    progress=None,
    integrating_for=0.0,
    done=3,
    total=12,
    working=4,
    waiting=1,
    queued=4,
    is_living=True,
    has_integrator=True,
    is_simulated=False,
    coming=(("copies_a_file", "Keep the exit code"),),
)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (FACTS, "3 of 12 tests are done. Fixes appear after the last test"),
        (replace(FACTS, done=1), "1 of 12 tests is done."),
        (replace(FACTS, done=12), "12 of 12 tests are done. Integration starts next"),
        (replace(FACTS, done=12, integration="integrating", integrating_for=72.0), "for 1m12s now"),
        (
            replace(FACTS, integration="failed", detail="no space left"),
            "no space left. To try again: `swarm-tui integrate 20261118`",
        ),
        (replace(FACTS, integration="done"), "has no fixes to review"),
        (
            replace(FACTS, is_living=False),
            "the engine is not running. To continue and integrate: `swarm-tui resume 20261118`",
        ),
        (replace(FACTS, done=12, is_living=False), "run `swarm-tui integrate 20261118`"),
        (replace(FACTS, has_integrator=False), "run `swarm-tui integrate 20261118`"),
        (replace(FACTS, is_simulated=True, integration="done"), "`swarm-tui demo` creates real ones"),
    ],
)
def test_no_fixes_message_has_progress_and_command(facts: NoFixesView, words: str) -> None:
    assert words in no_fixes_message(facts)[1]


def test_no_fixes_panel_shows_integration_progress() -> None:
    facts = replace(
        FACTS, done=12, integration="integrating", progress=Progress("measuring", 3, 12, "fixes", 40.0, 0.5)
    )
    _, text, role = no_fixes_message(facts)
    shown = "\n".join(text_of(line) for line in draw_no_fixes(facts, text, role, 80))
    assert re.search(r"measuring\n +━{20}─{20} 3 of 12 fixes, ~40s left", shown)


@pytest.mark.parametrize("width", [20, 40, 78, 198])
def test_no_fixes_lines_fit(width: int) -> None:
    for facts in (FACTS, replace(FACTS, integration="failed", detail="x" * 300)):
        _, text, role = no_fixes_message(facts)
        lines = draw_no_fixes(facts, text, role, width)
        assert all(width_of(line) <= width for line in lines), [line for line in lines if width_of(line) > width]


async def test_fixes_appear_after_integration(tmp_path: Path) -> None:
    sweep = begin_larder(tmp_path / "larder")
    sweep.work(["soon_includes_today", "a_new_larder_is_empty"])
    lock = EngineLock(sweep.folder.lock)
    lock.acquire()
    try:
        async with room_on(sweep.folder, Scene("fixes", ("3",), 100, 30)) as (app, pilot):
            await shows(pilot, "2 of 27 tests are done")
            assert "Count today and the last day as soon" not in text_on_screen(app)
            assert "◆ soon_includes_today" in text_on_screen(app)
            sweep.work([name for name in sweep.records if name not in ("soon_includes_today", "a_new_larder_is_empty")])
            await shows(pilot, "27 of 27 tests are done. Integration starts next")
            said = {"at": ENDED + 1, "doing": "measuring", "done": 3, "total": 12, "noun": "fixes", "whole": 0.34}
            sweep.folder.integrator.mkdir()
            (sweep.folder.integrator / PROGRESS_FILE).write_text(json.dumps(said))
            sweep.begin_integrating()
            await shows(pilot, "are being integrated into one branch")
            await shows(pilot, "integrating 34%", "━━━──", "3 of 12 fixes")
            await pilot.press("1")
            await shows(pilot, "Integrating: measuring ━", "3 of 12 fixes")
            await pilot.press("3")
            sweep.integrate()
            await shows(pilot, "8 fixes · 0 keep · 0 revert · 8 open", "+ return now <= best", "plan clean")
            await pilot.press("y")
            await shows(pilot, "8 fixes · 1 keep")
    finally:
        lock.release()


async def test_failed_integration_shows_reason_until_repeated(tmp_path: Path) -> None:
    sweep = begin_larder(tmp_path / "larder")
    sweep.work()
    sweep.append(IntegrationFailed(reason="no space left on the device"), EngineEnded())
    async with room_on(sweep.folder, Scene("fixes", ("3",), 100, 30)) as (_, pilot):
        await shows(pilot, "no space left on the device")
        sweep.integrate()
        await shows(pilot, "8 fixes · 0 keep")


async def shows(pilot: Pilot[str], *words: str) -> None:
    """Wait until all of these words are on the screen."""

    def are_shown() -> bool:
        shown = " ".join(text_on_screen(pilot.app).replace("│", " ").split())
        return all(word in shown for word in words)

    await eventually(are_shown, f"{words} on the screen", describe=lambda: text_on_screen(pilot.app))
