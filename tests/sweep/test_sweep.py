"""A whole sweep with the real mngr: one agent of each kind of end, and names that would do harm if a shell saw them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.journal.folder import list_sweeps
from tests.git_project import GitProject
from tests.isolation import IsolatedMngr
from tests.sweep.endings import EXPECTED, FILE, make_endings
from tests.sweep.sweeping import Program, kill_engine, offline
from tests.waiting import until

pytestmark = pytest.mark.slow

SWEEP_PATIENCE = 3600.0
"""Seconds in which a sweep ends, even on a machine that does much else."""

PAST_A_LIMIT = ("test_hangs", "test_never_answered")
"""Tests whose agents never finish. They are left out: a limit would stop slow agents, too."""


@pytest.fixture(scope="module")
def swept(
    isolated_mngr: IsolatedMngr, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Program, GitProject]]:
    """Return a project over which a sweep has gone, with an answer to the one question that gets one."""
    project = make_endings(tmp_path_factory.mktemp("endings") / "project")
    environment = {**isolated_mngr.environment, "SWARM_MNGR": isolated_mngr.settings.path}
    program = Program(project.root, environment)
    limits = ("--slots", "5", "--speed", "20", "--timeout", "12h", "--wait-timeout", "12h")
    running = program.start(
        "run", "--headless", *offline("records", *limits), "--", "-k", f"not {' and not '.join(PAST_A_LIMIT)}"
    )
    try:
        asking = f"{FILE}::test_asks"
        until(lambda: list_sweeps(project.root), "the sweep")
        until(
            lambda: (record := program.opened().state.records.get(asking)) and record.state.value == "waiting",
            "a question",
            SWEEP_PATIENCE,
        )
        said = program.call("request", "message", "test-asks", "--text", "The first.")
        assert said.returncode == 0, said.stderr
        assert running.wait(SWEEP_PATIENCE) == 1
        yield program, project
    finally:
        kill_engine(program.newest())
        running.kill()


def test_every_kind_of_end_is_told_with_its_reason(swept: tuple[Program, GitProject]) -> None:
    program, _ = swept
    status = program.status()
    found = {test["test"].partition("::")[2]: test for test in status["tests"]}
    results = {name: test["result"] for name, test in found.items()}
    expected = {name: EXPECTED[name] for name in EXPECTED if name not in PAST_A_LIMIT}
    assert results == {name: result for name, (result, _) in expected.items()}
    for name, (_, reason) in expected.items():
        assert reason in found[name]["reason"], name
    assert status["state"] == "finished"
    assert status["integrated"] == f"swarm/{status['sweep']}/integrated"


def test_tries_are_what_pytest_said(swept: tuple[Program, GitProject]) -> None:
    program, _ = swept
    tests = {test["test"].partition("::")[2]: test for test in program.status()["tests"]}
    assert [made["passed"] for made in tests["test_fixed"]["tries"]] == [False, True]
    assert "assert 8 == 2" in tests["test_fixed"]["tries"][0]["failure"]
    assert [made["passed"] for made in tests["test_names[two\nlines]"]["tries"]] == [True]


def test_commits_come_home_and_the_checkout_is_left_alone(swept: tuple[Program, GitProject]) -> None:
    program, project = swept
    status = program.status()
    assert project.git("status", "--porcelain") == ""
    assert project.git("branch", "--list", "--format=%(refname:short)").split() == ["main", status["integrated"]]
    fixed = f"refs/swarm/{status['sweep']}/test-fixed"
    assert project.git("log", "-1", "--format=%s", fixed) == "[FIX_IMPL] Halve instead of doubling"
    assert "number / 2" in project.git("show", f"{status['integrated']}:src/ends.py")


def test_everything_of_an_agent_is_pulled(swept: tuple[Program, GitProject]) -> None:
    program, _ = swept
    folder = program.newest()
    agent = folder.agent(f"swarm-{folder.name}-test-fixed")
    assert json.loads((agent / "test_output/testing_agent_outcome.json").read_text())["tests_passing_after"] is True
    assert (agent / "branch.bundle").exists()
    assert "Done. The work is submitted." in (agent / "transcript.jsonl").read_text()
    assert "1 passed" in (agent / "screen.txt").read_text()
    leaving = folder.agent(f"swarm-{folder.name}-test-leaves-work")
    assert "+not committed" in (leaving / "uncommitted.patch").read_text()


def test_hostile_names_and_archives_do_no_harm(swept: tuple[Program, GitProject]) -> None:
    program, project = swept
    folder = program.newest()
    assert not list(Path(project.root).rglob("pwned"))
    assert not list(folder.root.rglob("escaped.txt"))
    assert not Path("/tmp/swarm-escaped.txt").exists()
    assert not (folder.agent(f"swarm-{folder.name}-test-leads-out") / "test_output/link").exists()
    shown = program.call("status")
    assert "\x1b" not in shown.stdout


def test_agents_are_stopped_and_cleaned_away(swept: tuple[Program, GitProject], isolated_mngr: IsolatedMngr) -> None:
    program, project = swept
    sweep = program.newest().name
    states = _states(isolated_mngr, sweep)
    assert set(states.values()) == {"STOPPED"}
    assert len(states) == len(EXPECTED) - len(PAST_A_LIMIT) + 1
    cleaned = program.call("clean", "--yes")
    assert cleaned.returncode == 0, cleaned.stderr
    assert _states(isolated_mngr, sweep) == {}
    assert project.git("for-each-ref", "refs/swarm") == ""
    assert project.git("rev-parse", f"swarm/{sweep}/integrated")


def _states(isolated_mngr: IsolatedMngr, sweep: str) -> dict[str, str]:
    done = subprocess.run(
        [isolated_mngr.settings.path, "list", "--provider", "local", "--format", "json"],
        env=isolated_mngr.environment,
        capture_output=True,
        check=True,
    )
    agents = json.loads(done.stdout)["agents"]
    return {agent["name"]: agent["state"] for agent in agents if agent["labels"].get("swarm_sweep") == sweep}
