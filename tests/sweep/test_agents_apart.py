"""Agents that live at the same time get numbers, ports and folders of their own, and clean removes what they left."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import stat
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.adapters.pytest import CollectedTest, SetUpFailed
from swarm_tui.journal.open import open_sweep
from swarm_tui.model.results import Baseline
from swarm_tui.model.spec import derive_tests
from swarm_tui.sweep.clean import find_leftovers, remove_leftovers
from swarm_tui.sweep.collect import Found, groups_of
from swarm_tui.sweep.copies import new_temporary_folder, preparation_words, temporary_folder
from swarm_tui.sweep.job import TestJob
from swarm_tui.sweep.launch import launch
from swarm_tui.sweep.order import with_findings
from tests.sweep.scripted_sweep import QuickMngr, scripted_sweep


async def test_numbers_of_stopped_agents_are_reused(tmp_path: Path) -> None:
    mngr = QuickMngr(tmp_path / "mngr")
    context = scripted_sweep(tmp_path, 3, mngr, temporary="/tmp/sw-0123456789ab")
    tests = [record.test for record in context.state.tests()]
    for test in tests[:2]:
        await launch(context, TestJob(test, context.spec), 1)
    told = [agent.request.environment for agent in mngr.agents.values()]
    assert [variables["SWARM_AGENT_NUMBER"] for variables in told] == ["1", "2"]
    assert [variables["TMPDIR"] for variables in told] == ["/tmp/sw-0123456789ab/1", "/tmp/sw-0123456789ab/2"]
    TestJob(tests[0], context.spec).record_stop(context, "enough")
    await launch(context, TestJob(tests[2], context.spec), 1)
    assert [record.number for record in context.state.tests()] == [1, 2, 1]


def test_old_sweep_has_no_temporary_folders(tmp_path: Path) -> None:
    spec = scripted_sweep(tmp_path, 1, QuickMngr(tmp_path / "mngr")).spec
    assert (preparation_words(spec, 1), temporary_folder(spec)) == ((), None)


def test_folder_is_fresh_while_a_process_writes_there(tmp_path: Path) -> None:
    above = tmp_path / "sw-0123456789ab"
    spec = scripted_sweep(tmp_path, 1, QuickMngr(tmp_path / "mngr")).spec
    command = preparation_words(dataclasses.replace(spec, temporary=str(above), has_own_home=True), 1)[1]
    assert subprocess.run(["sh", "-c", command]).returncode == 0
    is_over = threading.Event()

    def write() -> None:
        while not is_over.is_set():
            with contextlib.suppress(OSError):
                os.makedirs(above / "1/a/b", exist_ok=True)
                for number in range(8):
                    (above / f"1/a/{number}").touch()

    with ThreadPoolExecutor() as pool:
        writer = pool.submit(write)
        try:
            done = [subprocess.run(["sh", "-c", command], capture_output=True, text=True) for _ in range(30)]
        finally:
            is_over.set()
        writer.result()
    assert [each.stderr for each in done if each.returncode] == []
    assert subprocess.run(["sh", "-c", command]).returncode == 0
    assert [path.name for path in (above / "1").iterdir()] == ["home"]
    assert stat.S_IMODE(above.stat().st_mode) == 0o700


def test_folder_below_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "sw-0123456789ab").symlink_to("other")
    spec = scripted_sweep(tmp_path, 1, QuickMngr(tmp_path / "mngr")).spec
    command = preparation_words(dataclasses.replace(spec, temporary=str(tmp_path / "sw-0123456789ab")), 1)[1]
    assert subprocess.run(["sh", "-c", command]).returncode == 1
    assert list((tmp_path / "other").iterdir()) == []


@pytest.mark.parametrize("temporary", ["/", "/tmp", "/etc", "sw-0123456789ab", "/tmp/../sw-0123456789ab", "/tmp/sw-x"])
def test_only_own_folders_are_removed(temporary: str, tmp_path: Path) -> None:
    spec = scripted_sweep(tmp_path, 1, QuickMngr(tmp_path / "mngr")).spec
    assert temporary_folder(dataclasses.replace(spec, temporary=temporary)) is None


async def test_clean_removes_temporary_folders(tmp_path: Path) -> None:
    mngr = QuickMngr(tmp_path / "mngr")
    folder = tmp_path / Path(new_temporary_folder(scripted_sweep(tmp_path / "a", 1, mngr).spec)).name
    context = scripted_sweep(tmp_path, 1, mngr, temporary=str(folder))
    (folder / "1").mkdir(parents=True)
    opened = open_sweep(context.folder)
    leftovers = await find_leftovers(opened)
    assert leftovers.temporary == folder
    assert await remove_leftovers(opened, leftovers) == []
    assert not folder.exists()


async def test_failed_set_up_is_reported_once(tmp_path: Path) -> None:
    def refuse(_: CreateRequest) -> None:
        raise SetUpFailed(3, "cc1: not found\nmake: *** [all] Error 1\n")

    context = scripted_sweep(tmp_path, 3, QuickMngr(tmp_path / "mngr", refuse))
    for record in list(context.state.tests()):
        with pytest.raises(SetUpFailed):
            await launch(context, TestJob(record.test, context.spec), 1)
    lines = [line.text for line in context.state.log if "set-up" in line.text]
    assert lines == ["the set-up command failed with code 3 in a fresh copy | cc1: not found | make: *** [all] Error 1"]


def test_groups_come_from_marks_and_from_globs() -> None:
    tests = [CollectedTest("a/test_a.py::test_x", 1, group="db"), CollectedTest("a/test_b.py::test_y[1]", 1)]
    assert groups_of(tests, []) == {tests[0].test: "xdist_group db"}
    for glob in ("a/test_b.py", "test_y*", "a/test_b.py::*", "a/test_b.py::test_y[1]"):
        assert groups_of(tests, [glob]) == {tests[0].test: "xdist_group db", tests[1].test: f"--serial {glob}"}
    assert groups_of(tests, ["nothing", "*"]) == dict.fromkeys([test.test for test in tests], "--serial *")


def test_clashing_tests_run_apart() -> None:
    tests = derive_tests("1", [(f"a.py::test_{name}", "a.py", 1) for name in "abc"])
    baselines = dict(zip((test.test for test in tests), (Baseline.CLASH, Baseline.CLASH, Baseline.GREEN), strict=True))
    found = Found((), "", "", "", (), (), groups={tests[0].test: "--serial a"}, baselines=baselines)
    assert [with_findings(test, found).group for test in tests] == ["--serial a", "clash", ""]
