"""A sweep's integration from its journal: who is taken, what is checked and written, and that checkouts are spared."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.mngr_settings import mngr_environment
from swarm_tui.cli.follow import is_whole
from swarm_tui.cli.main import run_command_line
from swarm_tui.hosts.registry import open_hosts
from swarm_tui.integrator.inputs import IntegratorInputs, Submission
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import EngineEnded, EngineStarted, Pulled, Queued
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import open_sweep
from swarm_tui.journal.state import SweepState
from swarm_tui.model.pulled import Escalation, PulledChange, PulledWork
from swarm_tui.model.results import Result
from swarm_tui.model.spec import MngrSettings, SweepSpec
from swarm_tui.review.open import review_sweep
from swarm_tui.review.ranking import problem_in_short
from swarm_tui.review.verdicts import review_of_sweep
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.engine import integrate_again, integrate_sweep
from swarm_tui.sweep.integrate import compose_inputs
from swarm_tui.sweep.integrator import IntegratorJob
from swarm_tui.testing.settings import settings_of_sweep
from tests.git_project import file_contents
from tests.integrator.integrator_project import CODE, SWEEP, TEST_FILE, TESTS, SweptProject, changed

ADD = changed(CODE, "first - second", "first + second")
BRANCH = f"swarm/{SWEEP}/integrated"


class Swept:
    """A sweep whose agents are done, without a mngr: the integrator then works as a plain process."""

    def __init__(self, root: Path) -> None:
        self.project = SweptProject(root / "project")
        self.folder = SweepFolder(self.project.git.root / ".swarm" / "runs" / SWEEP)
        self.spec = SweepSpec(
            sweep=SWEEP,
            repository=str(self.project.git.root),
            base=self.project.base,
            created_at=1.0,
            python=sys.executable,
            identity=("Ada Lovelace", "ada@example.org"),
            mngr=MngrSettings(path="/nowhere/mngr", host_dir=str(root / "mngr"), home=str(root)),
        )
        self.folder.write_spec(self.spec)
        (self.folder.root.parent.parent / ".gitignore").write_text("*\n")
        self.writer = JournalWriter(self.folder.events)
        self.state = SweepState()
        environment = mngr_environment(self.spec.mngr)
        self.context = SweepContext(
            self.folder,
            self.spec,
            self.writer,
            self.state,
            Mngr("/nowhere/mngr", environment),
            open_hosts(self.spec),
            Repository.open(self.project.git.root),
        )

    def pulled(
        self, test: str, result: Result, *, tip: str = "", kind: str = "", reason: str = "", **more: Any
    ) -> None:
        """Write down what the agent of a test has come to."""
        slug = test.replace("_", "-")
        node = f"{TEST_FILE}::{test}"
        names: dict[str, Any] = {"agent": f"swarm-{SWEEP}-{slug}", "branch": f"swarm/{SWEEP}/{slug}", "file": TEST_FILE}
        self.context.record(Queued(test=node, **names))
        changes = (PulledChange(kind=kind, status="SUCCEEDED"),) if kind else ()
        report = msgspec.convert({"tip": tip, "passing_after": True, "changes": changes} | more, PulledWork)
        self.context.record(Pulled(test=node, result=result, reason=reason, pulled=report))

    def outcome(self) -> dict[str, Any]:
        """Read what the integrator has left in the sweep folder."""
        content: dict[str, Any] = json.loads((self.folder.integrator / "integrator_outcome.json").read_bytes())
        return content


@pytest.fixture
def swept(tmp_path: Path) -> Iterator[Swept]:
    swept = Swept(tmp_path)
    yield swept
    swept.writer.close()


def with_a_fix(swept: Swept) -> str:
    source = swept.project.agent("test_add", [("[FIX_IMPL] Add", {"sums.py": ADD})])
    swept.pulled("test_add", Result.IMPL_FIX, tip=source.tip, kind="FIX_IMPL", passing_before=False)
    return source.tip


@pytest.mark.slow
async def test_the_branch_is_made_and_everything_that_is_open_is_listed(swept: Swept) -> None:
    with_a_fix(swept)
    blocker = Escalation(title="no printer")
    swept.pulled("test_name", Result.BLOCKED, reason="no printer", escalations=(blocker,), passing_after=False)
    swept.pulled("test_halve", Result.BLOCKED, reason="no printer", escalations=(blocker,), passing_after=False)
    swept.pulled("test_double", Result.ERROR, reason="it crashed", errored=True)
    before = file_contents(swept.project.git.root / "tests"), swept.project.git.git("status", "--porcelain", "--branch")
    await integrate_sweep(swept.context)

    integration = swept.state.integration
    assert (integration.state, integration.branch, integration.fixes) == ("done", BRANCH, 1), integration
    assert swept.project.git.git("log", "--format=%s", f"{swept.project.base}..refs/heads/{BRANCH}") == "[FIX_IMPL] Add"
    outcome = swept.outcome()
    assert outcome["impl_commit_hashes"] == {f"swarm/{SWEEP}/test-add": integration.tip}
    assert [(entry["test"].rpartition("::")[2], entry["reason"]) for entry in outcome["open"]] == [
        ("test_name", "no printer"),
        ("test_halve", "no printer"),
        ("test_double", "it crashed"),
    ]
    assert outcome["escalations"][-1]["title"] == "no printer (2 tests)"
    assert before == (
        file_contents(swept.project.git.root / "tests"),
        swept.project.git.git("status", "--porcelain", "--branch"),
    )
    refs = swept.project.git.git("for-each-ref", "--format=%(refname)").split("\n")
    assert refs == ["refs/heads/main", f"refs/heads/{BRANCH}", f"refs/swarm/{SWEEP}/test-add"]


async def test_without_work_to_take_no_branch_is_made(swept: Swept) -> None:
    source = swept.project.agent("test_add", [("[FIX_IMPL] Add", {"sums.py": ADD})])
    swept.pulled("test_add", Result.UNRESOLVED, tip=source.tip, kind="FIX_IMPL", reason="it lies")
    swept.pulled("test_name", Result.CLEAN)
    await integrate_sweep(swept.context)
    assert swept.state.integration.state == "done"
    assert swept.state.integration.branch is None
    assert swept.outcome()["failed"] == [{"branch": f"swarm/{SWEEP}/test-add", "commit": "", "reason": "it lies"}]
    assert swept.project.repository.ref(f"refs/heads/{BRANCH}") is None


def test_only_work_that_holds_is_given_to_the_integrator(swept: Swept) -> None:
    tip = with_a_fix(swept)
    swept.pulled("test_a", Result.IMPL_FIX, tip=tip, kind="FIX_IMPL", passing_before=True, passing_after=False)
    swept.pulled("test_b", Result.BETTER, tip=tip, kind="")
    swept.pulled("test_c", Result.ERROR, tip=tip, kind="FIX_IMPL", errored=True, reason="its archive is broken")
    inputs = compose_inputs(swept.context)
    assert [source.test.rpartition("::")[2] for source in inputs.branches] == ["test_add"]
    assert {entry.branch.rpartition("/")[2]: entry.reason for entry in inputs.not_taken} == {
        "test-a": "its test passed before and fails now",
        "test-b": "none of its changes succeeded",
        "test-c": "its archive is broken",
    }
    written = IntegratorInputs.model_validate_json((swept.folder.integrator / "inputs.json").read_bytes())
    assert written == inputs


def test_the_integrator_and_the_merge_view_have_one_cache_and_one_way_to_run_tests(swept: Swept) -> None:
    with_a_fix(swept)
    inputs = compose_inputs(swept.context)
    assert Path(inputs.cache) == review_of_sweep(swept.folder.root).results
    assert inputs.test_settings.key == settings_of_sweep(swept.context.spec).key


@pytest.mark.slow
def test_problem_of_the_branch_is_shown_everywhere_and_in_the_exit_code(
    swept: Swept, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    swept.context.record(EngineStarted(pid=os.getpid(), slots=3))
    # Its own test passes, and that of another agent does not any more.
    breaking = changed(ADD, "number / 2", "number // 0")
    source = swept.project.agent("test_add", [("[FIX_IMPL] Add", {"sums.py": breaking})])
    swept.pulled("test_add", Result.IMPL_FIX, tip=source.tip, kind="FIX_IMPL", passing_before=False)
    swept.pulled("test_halve", Result.CLEAN)
    swept.context.record(EngineEnded())
    monkeypatch.chdir(swept.project.git.root)
    problem = f"1 test that passed before integration fails on the integrated branch: {TEST_FILE}::test_halve"

    assert run_command_line(["integrate"]) == 1
    assert f"problem: {problem}" in capsys.readouterr().err
    assert run_command_line(["status"]) == 0
    assert f"problem: {problem}" in capsys.readouterr().out
    assert run_command_line(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["integration"]["problems"] == [problem]
    assert run_command_line(["pending"]) == 0
    assert problem in capsys.readouterr().out
    assert run_command_line(["fixes", "--list"]) == 0
    assert f"note: {problem}" in capsys.readouterr().err
    opened = open_sweep(swept.folder)
    assert opened.state.integration.problems == (problem,)
    assert not is_whole(opened)
    with review_sweep(swept.folder) as review:
        assert problem_in_short(review.outcome) == "1 test fails"


@pytest.mark.slow
async def test_submission_that_cannot_be_measured_is_replaced_and_kept(swept: Swept) -> None:
    tip = with_a_fix(swept)
    task = IntegratorJob(swept.spec, compose_inputs(swept.context), "agent")
    await task.measure(swept.context, Submission(tip=tip, ref="refs/swarm-fetched/gone"))
    integration = swept.state.integration
    assert (integration.state, integration.by, integration.fixes) == ("done", "builtin", 1)
    assert integration.refused.startswith("its branch could not be measured: ")
    assert swept.project.git.git("rev-parse", f"swarm/{SWEEP}/integrator") == tip


@pytest.mark.slow
async def test_a_branch_that_is_checked_out_is_left_alone(swept: Swept) -> None:
    with_a_fix(swept)
    git = swept.project.git
    git.git("checkout", "--quiet", "-b", BRANCH)
    await integrate_sweep(swept.context)
    assert swept.state.integration.state == "failed"
    assert "is checked out" in swept.state.integration.detail
    assert git.git("rev-parse", "HEAD") == swept.project.base


@pytest.mark.slow
def test_it_can_be_repeated_when_no_engine_lives(swept: Swept) -> None:
    swept.context.record(EngineStarted(pid=os.getpid(), slots=3))
    with_a_fix(swept)
    swept.context.record(EngineEnded(why="stopped", reason="asked for"))
    first = integrate_again(swept.folder).integration
    named = changed(TESTS, '"Sums"', '"sums"')
    source = swept.project.agent("test_name", [("[FIX_TEST] The real name", {TEST_FILE: named})])
    state = SweepState()
    writer = JournalWriter(swept.folder.events, last_seq=100)
    writer.append(
        Queued(test="tests/test_sums.py::test_name", branch=source.branch, agent=source.agent, file=TEST_FILE)
    )
    change = PulledChange(kind="FIX_TEST", status="SUCCEEDED")
    writer.append(
        Pulled(
            test=source.test,
            result=Result.TEST_FIX,
            pulled=PulledWork(tip=source.tip, changes=(change,), passing_after=True),
        )
    )
    writer.close()
    state = integrate_again(swept.folder)
    assert (first.branch, first.fixes) == (state.integration.branch, state.integration.fixes) == (BRANCH, 1)
    subjects = swept.project.git.git("log", "--reverse", "--format=%s", f"{swept.project.base}..refs/heads/{BRANCH}")
    assert subjects.split("\n") == ["[TEST/DOC] 1 test fix", "[FIX_IMPL] Add"]
    assert (state.ended_why, state.ended_reason, state.slots) == ("stopped", "asked for", 3)
