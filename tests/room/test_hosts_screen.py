"""Screen 8: a line for each host at every size, and its tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.hosts.lines import HostLine
from swarm_tui.journal.append import EngineLock
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.room.draw.patterns_hosts import draw_host_detail, draw_host_row
from swarm_tui.room.draw.spans import width_of
from swarm_tui.simulate.feeder import main as feed
from tests.room.scenes import NOW, Scene, press, room_on, shows, text_on_screen


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[SweepFolder]:
    """Return a sweep on six hosts. One of them is silent."""
    folder = SweepFolder(tmp_path / "20261118-061200")
    words = ["--tests", "125", "--hosts", "6", "--slots", "24", "--seed", "3", "--ahead", "0.4"]
    feed([str(folder.root), *words, "--seconds", "0", "--at", str(NOW)])
    lock = EngineLock(folder.lock)
    lock.acquire()
    yield folder
    lock.release()


def text_of(line: object) -> str:
    return "".join(part.text for part in line)  # type: ignore[attr-defined]


async def test_hosts_list_has_silent_host_first(folder: SweepFolder) -> None:
    async with room_on(folder, Scene("hosts", ("8",), 80, 24)) as (app, _):
        text = text_on_screen(app)
        rows = [row for row in text.splitlines() if "│ ? box1" in row or "│ ● box" in row]
        assert len(rows) == 6
        assert "silent for" in rows[0]
        assert "no answer within 10 s" in text
        assert "1 of 6 hosts silent" in text
        assert "of 24 slots in use: box1 has not answered" in text
        assert "load " in rows[1]
        assert "done" in rows[1]


async def test_enter_shows_host_tests_and_b_groups_them(folder: SweepFolder) -> None:
    async with room_on(folder, Scene("hosts", ("8", "j"), 120, 35)) as (_, pilot):
        await press(pilot, "enter")
        text = await shows(pilot, "on box2")
        assert "Tests 125" in text
        await press(pilot, "escape", "8", "b")
        text = await shows(pilot, "by host", "box1", "box6", "no host yet")
        assert "125" in text


async def test_hosts_filter_by_name(folder: SweepFolder) -> None:
    async with room_on(folder, Scene("hosts", ("8",), 120, 35)) as (_, pilot):
        await press(pilot, "slash", *"box3", "enter")
        text = await shows(pilot, "1 match /box3")
        assert "● box3" in text
        assert "box4" not in text


def test_host_row_with_hostile_name_fits_any_width() -> None:
    evil = "\x1b[2Jevil\u202e" + "x" * 300
    line = HostLine(evil, 4, 2, 1, 3, 1, 9.5, 8, 10.0, 5.0, False, "why\x1b]0;x\x07" * 50, ("t",))
    for width in (20, 40, 60, 80, 200):
        for each in (line, line._replace(lost_since=None), line._replace(is_gone=True)):
            row = draw_host_row(each, 20, width, 100.0)
            assert width_of(row) <= width
            assert "\x1b" not in text_of(row)
            details = draw_host_detail(each, None, (), width, 100.0)
            assert all(width_of(row) <= width for row in details)
            assert "\x1b" not in "".join(map(text_of, details))


def test_host_without_recent_report_is_marked() -> None:
    line = HostLine("box1", 4, running=1, heard_at=10.0)
    assert [part.role for part in draw_host_row(line, 8, 80, 20.0) if "ago" in part.text] == ["dim"]
    assert [part.role for part in draw_host_row(line, 8, 80, 300.0) if "ago" in part.text] == ["warning"]
