"""A sweep's integration from its journal: who is taken, what is checked and written, and that checkouts are spared."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.mngr_settings import mngr_environment
from swarm_tui.agents.integrator.inputs import IntegratorInputs
from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.integrate import compose_inputs, what_is_wrong
from swarm_tui.engine.integrate_again import integrate_again, integrate_sweep
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.fold import SweepState
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.seal import sealer_of
from swarm_tui.model.events import EngineEnded, EngineStarted, Harvested, Queued
from swarm_tui.model.harvest import HarvestedChange, HarvestReport
from swarm_tui.model.outcome import Escalation, IntegratorOutcome
from swarm_tui.model.states import Result
from swarm_tui.model.sweep import MngrSettings, SweepSpec
from swarm_tui.places.choose import place_for
from swarm_tui.testing.settings import settings_of_sweep
from swarm_tui.triage.store import review_of_sweep
from tests.agents.integrator_project import CODE, SWEEP, TEST_FILE, TESTS, SweptProject, changed
from tests.git_project import file_contents

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
        self.context = EngineContext(
            self.folder,
            self.spec,
            self.writer,
            self.state,
            Mngr("/nowhere/mngr", environment),
            place_for(self.spec),
            Repository.open(self.project.git.root),
        )

    def harvested(
        self, test: str, result: Result, *, tip: str = "", kind: str = "", reason: str = "", **more: Any
    ) -> None:
        """Write down what the agent of a test has come to."""
        slug = test.replace("_", "-")
        node = f"{TEST_FILE}::{test}"
        names: dict[str, Any] = {"agent": f"swarm-{SWEEP}-{slug}", "branch": f"swarm/{SWEEP}/{slug}", "file": TEST_FILE}
        self.context.record(Queued(test=node, **names))
        changes = (HarvestedChange(kind=kind, status="SUCCEEDED"),) if kind else ()
        report = HarvestReport.model_validate({"tip": tip, "passing_after": True, "changes": changes} | more)
        self.context.record(Harvested(test=node, result=result, reason=reason, harvest=report))

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
    swept.harvested("test_add", Result.IMPL_FIX, tip=source.tip, kind="FIX_IMPL", passing_before=False)
    return source.tip


@pytest.mark.slow
async def test_the_branch_is_made_and_everything_that_is_open_is_listed(swept: Swept) -> None:
    with_a_fix(swept)
    blocker = Escalation(title="no printer")
    swept.harvested("test_name", Result.BLOCKED, reason="no printer", escalations=(blocker,), passing_after=False)
    swept.harvested("test_halve", Result.BLOCKED, reason="no printer", escalations=(blocker,), passing_after=False)
    swept.harvested("test_double", Result.FAILED, reason="it crashed", errored=True)
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
    swept.harvested("test_add", Result.UNRESOLVED, tip=source.tip, kind="FIX_IMPL", reason="it lies")
    swept.harvested("test_name", Result.CLEAN)
    await integrate_sweep(swept.context)
    assert swept.state.integration.state == "done"
    assert swept.state.integration.branch is None
    assert swept.outcome()["failed"] == [{"branch": f"swarm/{SWEEP}/test-add", "commit": "", "reason": "it lies"}]
    assert swept.project.repository.ref(f"refs/heads/{BRANCH}") is None


def test_only_work_that_holds_is_given_to_the_integrator(swept: Swept) -> None:
    tip = with_a_fix(swept)
    swept.harvested("test_a", Result.IMPL_FIX, tip=tip, kind="FIX_IMPL", passing_before=True, passing_after=False)
    swept.harvested("test_b", Result.BETTER, tip=tip, kind="")
    swept.harvested("test_c", Result.FAILED, tip=tip, kind="FIX_IMPL", errored=True, reason="its archive is broken")
    inputs = compose_inputs(swept.context)
    assert [source.test.rpartition("::")[2] for source in inputs.branches] == ["test_add"]
    assert {entry.branch.rpartition("/")[2]: entry.reason for entry in inputs.not_taken} == {
        "test-a": "its test passed before and fails after it",
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
    writer = JournalWriter(swept.folder.events, last_seq=100, sealer=sealer_of(SWEEP))
    writer.append(
        Queued(test="tests/test_sums.py::test_name", branch=source.branch, agent=source.agent, file=TEST_FILE)
    )
    change = HarvestedChange(kind="FIX_TEST", status="SUCCEEDED")
    writer.append(
        Harvested(
            test=source.test,
            result=Result.TEST_FIX,
            harvest=HarvestReport(tip=source.tip, changes=(change,), passing_after=True),
        )
    )
    writer.close()
    state = integrate_again(swept.folder)
    assert (first.branch, first.fixes) == (state.integration.branch, state.integration.fixes) == (BRANCH, 1)
    subjects = swept.project.git.git("log", "--reverse", "--format=%s", f"{swept.project.base}..refs/heads/{BRANCH}")
    assert subjects.split("\n") == ["[TEST/DOC] 1 test fix", "[FIX_IMPL] Add"]
    assert (state.ended_why, state.ended_reason, state.slots) == ("stopped", "asked for", 3)


def test_reports_that_do_not_fit_the_branch_are_refused(swept: Swept) -> None:
    project = swept.project
    source = project.agent("test_add", [("[FIX_IMPL] Add", {"sums.py": ADD})])
    inputs = project.inputs()
    repository = project.repository

    def wrong(tip: str, **outcome: Any) -> str:
        return what_is_wrong(repository, inputs, IntegratorOutcome(**outcome), tip)

    named = {source.branch: source.tip}
    assert wrong(source.tip, impl_commit_hashes=named) == ""
    assert "not on the branch" in wrong(source.tip, impl_commit_hashes={source.branch: "f" * 40})
    assert "none of this sweep's" in wrong(source.tip, impl_commit_hashes={"main": source.tip})
    assert "not on the branch" in wrong(source.tip, impl_commit_hashes=named, squashed_commit_hash=project.base)
    git = project.git
    git.git("checkout", "--quiet", "--detach", source.tip)
    stray = git.commit("What is this?", {"sums.py": CODE})
    assert "neither a fix nor the squashed commit" in wrong(stray, impl_commit_hashes=named)
    git.git("checkout", "--quiet", "--detach", project.base)
    git.commit("[FIX_TEST] Beside", {"README.md": "x\n"})
    git.git("merge", "--quiet", "--no-edit", source.tip)
    assert "not linear" in wrong(git.git("rev-parse", "HEAD"), impl_commit_hashes=named)
    git.git("checkout", "--quiet", "--orphan", "other")
    assert "does not build on" in wrong(git.commit("[FIX_IMPL] Elsewhere"), impl_commit_hashes={})
