"""Agents that live at the same time get numbers, ports and folders of their own, and clean removes what they left."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.adapters.pytest import CollectedTest
from swarm_tui.adapters.set_up import SetUpFailed
from swarm_tui.engine.cleaning import find_leftovers, remove_leftovers
from swarm_tui.engine.collect import Found, groups_of
from swarm_tui.engine.copy_preparation import new_temporary_folder, preparation_words, temporary_folder
from swarm_tui.engine.launch import launch
from swarm_tui.engine.one_test_task import OneTestTask
from swarm_tui.engine.order import with_findings
from swarm_tui.journal.open import open_sweep
from swarm_tui.model.baseline import Baseline
from swarm_tui.model.sweep import derive_tests
from tests.engine.rehearsal import QuickMngr, rehearse


async def test_numbers_are_of_living_agents_and_are_given_again(tmp_path: Path) -> None:
    mngr = QuickMngr(tmp_path / "mngr")
    context = rehearse(tmp_path, 3, mngr, temporary="/tmp/sw-0123456789ab")
    tests = [record.test for record in context.state.tests()]
    for test in tests[:2]:
        await launch(context, OneTestTask(test, context.spec), 1)
    told = [agent.request.environment for agent in mngr.agents.values()]
    assert [variables["SWARM_AGENT_NUMBER"] for variables in told] == ["1", "2"]
    assert [variables["TMPDIR"] for variables in told] == ["/tmp/sw-0123456789ab/1", "/tmp/sw-0123456789ab/2"]
    OneTestTask(tests[0], context.spec).record_stop(context, "enough")
    await launch(context, OneTestTask(tests[2], context.spec), 1)
    assert [record.number for record in context.state.tests()] == [1, 2, 1]


def test_a_sweep_of_an_earlier_version_has_no_folders(tmp_path: Path) -> None:
    spec = rehearse(tmp_path, 1, QuickMngr(tmp_path / "mngr")).spec
    assert (preparation_words(spec, 1), temporary_folder(spec)) == ((), None)


@pytest.mark.parametrize("temporary", ["/", "/tmp", "/etc", "sw-0123456789ab", "/tmp/../sw-0123456789ab", "/tmp/sw-x"])
def test_nothing_is_removed_that_we_did_not_make(temporary: str, tmp_path: Path) -> None:
    spec = rehearse(tmp_path, 1, QuickMngr(tmp_path / "mngr")).spec
    assert temporary_folder(spec.model_copy(update={"temporary": temporary})) is None


async def test_clean_removes_the_temporary_folders(tmp_path: Path) -> None:
    mngr = QuickMngr(tmp_path / "mngr")
    folder = tmp_path / Path(new_temporary_folder(rehearse(tmp_path / "a", 1, mngr).spec)).name
    context = rehearse(tmp_path, 1, mngr, temporary=str(folder))
    (folder / "1").mkdir(parents=True)
    opened = open_sweep(context.folder)
    leftovers = await find_leftovers(opened)
    assert leftovers.temporary == folder
    assert await remove_leftovers(opened, leftovers) == []
    assert not folder.exists()


async def test_a_set_up_that_fails_is_told_once_for_the_sweep(tmp_path: Path) -> None:
    def refuse(_: CreateRequest) -> None:
        raise SetUpFailed(3, "cc1: not found\nmake: *** [all] Error 1\n")

    context = rehearse(tmp_path, 3, QuickMngr(tmp_path / "mngr", refuse))
    for record in list(context.state.tests()):
        with pytest.raises(SetUpFailed):
            await launch(context, OneTestTask(record.test, context.spec), 1)
    lines = [line.text for line in context.state.log if "set-up" in line.text]
    assert lines == ["the set-up command failed with code 3 in a fresh copy | cc1: not found | make: *** [all] Error 1"]


def test_groups_come_from_marks_and_from_globs() -> None:
    tests = [CollectedTest("a/test_a.py::test_x", 1, group="db"), CollectedTest("a/test_b.py::test_y[1]", 1)]
    assert groups_of(tests, []) == {tests[0].test: "xdist_group db"}
    for glob in ("a/test_b.py", "test_y*", "a/test_b.py::*", "a/test_b.py::test_y[1]"):
        assert groups_of(tests, [glob]) == {tests[0].test: "xdist_group db", tests[1].test: f"--alone {glob}"}
    assert groups_of(tests, ["nothing", "*"]) == dict.fromkeys([test.test for test in tests], "--alone *")


def test_tests_that_clash_are_kept_apart_unless_they_have_a_group() -> None:
    tests = derive_tests("1", [(f"a.py::test_{name}", "a.py", 1) for name in "abc"])
    baselines = dict(zip((test.test for test in tests), (Baseline.CLASH, Baseline.CLASH, Baseline.GREEN), strict=True))
    found = Found((), "", "", "", (), (), groups={tests[0].test: "--alone a"}, baselines=baselines)
    assert [with_findings(test, found).group for test in tests] == ["--alone a", "clash", ""]
