"""The offline agent in a real checkout, with real git and pytest."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from swarm_tui.adapters.processes.environment import NO_BYTECODE
from swarm_tui.agents.contract import ARCHIVE_PATH, Task
from swarm_tui.agents.packaged import live_folder, local_package_dir, write_offline_program
from tests.git_project import GitProject, quiet_environment
from tests.sweep.endings import FILE, make_endings
from tests.waiting import PATIENCE


class Stage:
    """A checkout with records, and the state folder of an agent."""

    def __init__(self, root: Path) -> None:
        self.project: GitProject = make_endings(root / "copy")
        self.root = root
        self.state = root / "state"
        self.state.mkdir()
        self.base = self.project.git("rev-parse", "HEAD")
        self.project.git("switch", "--quiet", "--create", "swarm/1/test")

    def play(self, name: str, heard: str = "") -> subprocess.CompletedProcess[str]:
        """Run the agent of a test until it exits."""
        task = Task(
            sweep="1",
            test=f"{FILE}::{name}",
            agent="swarm-1-test",
            branch="swarm/1/test",
            base=self.base,
            repository=str(self.root / "checkout"),
            file=FILE,
            rest=name,
            folder="",
            pytest=(sys.executable, "-m", "pytest", f"{FILE}::{name}"),
            outcome=".test_output/testing_agent_outcome.json",
            records=str(self.project.root / "records"),
            speed=1000.0,
            identity=("Ada", "ada@example.org"),
        )
        task.write(self.root / "task.json")
        environment = (
            quiet_environment()
            | NO_BYTECODE
            | {
                "MNGR_AGENT_STATE_DIR": str(self.state),
                "MNGR_HOST_DIR": str(self.root / "host"),
                "MNGR_AGENT_WORK_DIR": str(self.project.root),
                "SWARM_TASK": str(self.root / "task.json"),
                "PYTHONPATH": str(live_folder()),
            }
        )
        words = [write_offline_program(local_package_dir(self.root)), str(self.root / "task.json")]
        return subprocess.run(
            words, cwd=self.project.root, env=environment, input=heard, capture_output=True, text=True, timeout=PATIENCE
        )

    def outcome(self) -> dict[str, Any]:
        with tarfile.open(self.state / ARCHIVE_PATH) as packed:
            member = packed.extractfile("test_output/testing_agent_outcome.json")
            assert member is not None
            content: dict[str, Any] = json.loads(member.read())
        return content

    def transcript(self) -> list[dict[str, Any]]:
        path = self.state / "events/offline/common_transcript/events.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_agent_edits_runs_commits_and_submits(stage: Stage) -> None:
    done = stage.play("test_fixed")
    assert done.returncode == 0, done.stderr
    outcome = stage.outcome()
    assert (outcome["tests_passing_before"], outcome["tests_passing_after"]) == (False, True)
    assert outcome["changes"] == {"FIX_IMPL": {"status": "SUCCEEDED", "summary_markdown": "half() doubled."}}
    assert stage.project.git("log", "-1", "--format=%an %s") == "Ada [FIX_IMPL] Halve instead of doubling"
    with tarfile.open(stage.state / ARCHIVE_PATH) as packed:
        assert "branch.bundle" in packed.getnames()
    assert "1 failed" in done.stdout
    assert "1 passed" in done.stdout


def test_agent_without_record_reports_test_result(stage: Stage) -> None:
    stage.play("test_clean")
    assert stage.outcome()["tests_passing_after"] is True
    assert stage.outcome()["changes"] == {}
    with tarfile.open(stage.state / ARCHIVE_PATH) as packed:
        assert "branch.bundle" not in packed.getnames()


def test_too_long_test_id_is_reported(stage: Stage) -> None:
    done = stage.play("test_clean[nul\0]")
    assert done.returncode == 0, done.stderr
    outcome = stage.outcome()
    assert outcome["errored"] is True
    assert "NUL byte" in outcome["summary_markdown"]


def test_mismatched_record_changes_nothing(stage: Stage) -> None:
    stage.play("test_misfit")
    outcome = stage.outcome()
    assert outcome["changes"]["FIX_IMPL"]["status"] == "FAILED"
    assert "does not match this tree" in outcome["changes"]["FIX_IMPL"]["summary_markdown"]
    assert stage.project.git("rev-parse", "HEAD") == stage.base


def test_agent_waits_for_answer_and_shows_it(stage: Stage) -> None:
    stage.play("test_asks", heard="The first.\n")
    said = [(step["source"], step["message"]) for step in stage.transcript() if step["type"] == "step"]
    assert ("agent", "Which of the two?") in said
    assert ("user", "The first.") in said
    assert not (stage.state / "active").exists()
    activity = (stage.root / "host/events/mngr/activity/events.jsonl").read_text().splitlines()
    assert len(activity) == 4


def test_crash_step_exits_without_submission(stage: Stage) -> None:
    assert stage.play("test_crashes").returncode == 3
    assert not (stage.state / ARCHIVE_PATH).exists()


def test_transcript_lines_have_mngr_format(stage: Stage) -> None:
    stage.play("test_fixed")
    header, *steps = stage.transcript()
    assert header["schema_version"] == "ATIF-v1.7"
    for step in steps:
        assert step["emitter"] == "offline/common_transcript"
        assert {"event_id", "timestamp"} <= step.keys()
        assert step["type"] in ("step", "observation")
    calls = [call["tool_call_id"] for step in steps for call in step.get("tool_calls", ())]
    results = [result["source_call_id"] for step in steps for result in step.get("results", ())]
    assert calls == results


def test_killed_pytest_leaves_result_unknown(stage: Stage) -> None:
    (stage.project.root / "conftest.py").write_text(
        "import os\nimport pytest\n\n\n@pytest.fixture(autouse=True)\ndef leave():\n    os._exit(0)\n"
    )
    stage.play("test_clean")
    outcome = stage.outcome()
    assert (outcome["tests_passing_before"], outcome["tests_passing_after"]) == (None, None)
    assert outcome["summary_markdown"] == "The result of the test is unknown. Nothing was changed."
