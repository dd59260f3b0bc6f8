"""The complete demo: all results appear, the integrated branch is better, and nothing is left behind."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from swarm_tui.adapters.processes.environment import scrubbed_environment
from swarm_tui.adapters.pytest import SessionsHere, run_tests
from swarm_tui.journal.folder import list_sweeps
from swarm_tui.model.report import IntegratorReport, parse_integrator_report
from swarm_tui.model.spec import SweepSpec
from swarm_tui.review.conflicts import find_resolutions
from swarm_tui.review.open import review_sweep
from tests.git_project import GitProject
from tests.waiting import PATIENCE, until

DEADLINE = 1500.0


@dataclass(frozen=True)
class Played:
    """A demo that has been run to its end."""

    home: Path
    repository: Path
    spec: SweepSpec
    status: dict[str, Any]
    words: str
    code: int
    agents_seen: int
    """How many agents mngr had in the demo's own home while it ran."""

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.repository, capture_output=True, check=True)
        return done.stdout.decode().removesuffix("\n")

    @property
    def outcome(self) -> IntegratorReport:
        (folder,) = list_sweeps(self.repository)
        return parse_integrator_report((folder.integrator / "integrator_outcome.json").read_bytes())

    def entry_of(self, name: str) -> dict[str, Any]:
        (found,) = [test for test in self.status["tests"] if test["test"].endswith(f"::test_{name}")]
        return dict(found)


@pytest.fixture(scope="module")
def played(mngr_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    root = tmp_path_factory.mktemp("demo")
    home, repository = root / "home", root / "larder"
    home.mkdir()
    words = [sys.executable, "-m", "swarm_tui", "demo", str(repository), "--headless", "--json"]
    process = subprocess.Popen(
        [*words, "--mngr", mngr_path, "--speed", "10"],
        env=scrubbed_environment({"HOME": str(home)}),
        cwd=root,
        stdout=(root / "out").open("wb"),
        stderr=(root / "err").open("wb"),
        start_new_session=True,
    )
    agents_seen = 0

    def has_ended() -> bool:
        nonlocal agents_seen
        for folder in list_sweeps(repository):
            agents = Path(folder.read_spec().mngr.host_dir or "") / "agents"
            agents_seen = max(agents_seen, len(list(agents.glob("agent-*/data.json"))))
        return process.poll() is not None

    try:
        until(has_ended, "the end of the demo", DEADLINE, describe=lambda: (root / "err").read_text()[-2000:])
    except AssertionError:
        process.send_signal(signal.SIGINT)
        raise
    status = json.loads((root / "out").read_text() or "{}")
    (folder,) = list_sweeps(repository)
    spec = folder.read_spec()
    yield Played(home, repository, spec, status, (root / "err").read_text(), process.returncode, agents_seen)
    subprocess.run([sys.executable, "-m", "swarm_tui", "clean", "--yes"], cwd=repository, capture_output=True)


pytestmark = pytest.mark.slow


def test_demo_finishes_with_every_result(played: Played) -> None:
    assert played.code == 0, played.words
    assert "9 changed tests: measured from now on, in the background" in played.words
    assert played.status["state"] == "finished"
    counts = Counter(test["result"] for test in played.status["tests"])
    assert counts == {
        "clean": 3,
        "better": 3,
        "test_fix": 4,
        "tutorial_fix": 2,
        "impl_fix": 9,
        "unresolved": 2,
        "blocked": 3,
        "error": 1,
    }


def test_blocked_unresolved_and_false_reports_have_reasons(played: Played) -> None:
    assert played.entry_of("share_with_the_family")["reason"] == "LARDER_SHARE is not set"
    assert "no commit of that kind" in played.entry_of("rename_keeps_everything")["reason"]
    assert "wcwidth" in played.entry_of("list_aligns_wide_names")["reason"]
    assert "exited before it submitted" in played.entry_of("export_quotes_names")["reason"]
    still_open = {entry["test"] for entry in (played.outcome.model_extra or {})["open"]}
    assert len(still_open) == 6


def test_waiting_agent_gets_recorded_answer(played: Played) -> None:
    (folder,) = list_sweeps(played.repository)
    events = [json.loads(line) for line in folder.events.read_text().splitlines()]
    (sent,) = [event for event in events if event["type"] == "message_sent"]
    assert sent["test"].endswith("test_cook_says_what_is_missing")
    assert sent["text"].startswith("the program's")
    assert any(event["type"] == "agent_state_changed" and event["state"] == "waiting" for event in events)


def test_integrated_branch_is_linear_with_separate_fixes(played: Played) -> None:
    branch = played.status["integrated"]
    base = played.status["base"]
    rows = played.git("log", "--reverse", "--format=%p|%s", f"{base}..refs/heads/{branch}").split("\n")
    assert all(" " not in parents for parents, _, _ in (row.partition("|") for row in rows))
    subjects = [row.partition("|")[2] for row in rows]
    assert subjects[0] == "[TEST/DOC] 3 better tests, 3 test fixes, 2 tutorial fixes, 1 weaker test"
    assert subjects[1] == "[FIX_IMPL] Count today and the last day as soon"
    assert subjects[-1] == "[FIX_IMPL] Do not stop at a date that cannot be read"
    assert subjects[-3:-1] == [
        "[FIX_IMPL] Refuse to add what has no common unit",
        "[FIX_IMPL] Say which amounts cannot be added up",
    ]
    assert len(subjects) == 9
    assert all(subject.startswith("[FIX_IMPL] ") for subject in subjects[1:])


def test_chain_of_fixes_is_measured_and_removable(played: Played) -> None:
    ranking = (played.outcome.model_extra or {})["ranking"]
    assert [entry["why"].rpartition(",")[0] for entry in ranking[-3:-1]] == [
        "turns 0 tests green, builds on 'Add amounts up in grams and millilitres'",
        "turns 0 tests green, builds on 'Refuse to add what has no common unit'",
    ]
    (folder,) = list_sweeps(played.repository)
    with review_sweep(folder) as review:
        found = find_resolutions(review, [review.fixes[1].id])
        assert [[fix.rank for fix in fixes] for fixes in found.sets] == [[6, 7]]
        (better,) = review.load_left_out()
        assert better.title == "Convert units before adding up, refuse litres of flour"


def test_weaker_test_is_not_better(played: Played) -> None:
    weaker = played.entry_of("find_ignores_capitals")
    assert (weaker["result"], weaker["reason"]) == ("test_fix", "its test became weaker: a check was loosened")


def test_same_fix_is_merged_and_conflict_reported(played: Played) -> None:
    outcome = played.outcome
    hashes = Counter(outcome.impl_commit_hashes.values())
    assert sorted(hashes.values()) == [1, 1, 1, 1, 1, 3]
    (left_out,) = outcome.failed
    assert left_out.branch.endswith("/test-adding-more-adds-up")
    assert "conflicts in larder/amounts.py with '[FIX_IMPL] Add amounts up" in left_out.reason


def test_fix_that_hides_bug_is_last(played: Played) -> None:
    last = (played.outcome.model_extra or {})["ranking"][-1]
    assert last["broken"] == ["tests/e2e/test_fill.py::test_add_with_a_date"]
    (escalation,) = [entry for entry in played.outcome.escalations if "passed before integration" in entry.title]
    assert "broken by '[FIX_IMPL] Do not stop at a date" in escalation.detail_markdown


async def test_integrated_branch_has_fewer_failures(played: Played, tmp_path: Path) -> None:
    failing: dict[str, int] = {}
    for name in (played.status["base"], f"refs/heads/{played.status['integrated']}"):
        copy = GitProject(tmp_path / str(len(failing)))
        copy.git("fetch", "--quiet", str(played.repository), name)
        copy.git("checkout", "--quiet", "FETCH_HEAD")
        tests = {test["test"]: test["test"] for test in played.status["tests"]}
        run = await run_tests(SessionsHere(sys.executable, copy.root, timeout=PATIENCE), tests)
        failing[name] = sum(result == "failed" for result in run.outcomes.values())
    on_base, on_branch = failing.values()
    assert on_base >= 19
    assert on_branch == 7


def test_demo_changes_nothing_of_user(played: Played) -> None:
    assert played.agents_seen > 3, "the agents were real ones of mngr"
    assert not (played.home / ".mngr").exists()
    assert not (played.home / ".gitconfig").exists()
    assert not (played.home / ".tmux.conf").exists()
    assert played.git("status", "--porcelain") == ""
    assert played.git("symbolic-ref", "--short", "HEAD") == "main"
    assert played.spec.is_private
    assert Path(str(played.spec.mngr.home)).is_relative_to("/tmp")
    assert re.search(r"(swarm-tui|-m swarm_tui) clean ", played.words)


def test_clean_removes_agents_home_and_server(played: Played) -> None:
    private = Path(str(played.spec.mngr.home)).parent
    assert private.is_dir()
    done = subprocess.run(
        [sys.executable, "-m", "swarm_tui", "clean", "--yes"], cwd=played.repository, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert not private.exists()
    assert played.git("for-each-ref", "refs/swarm") == ""
    assert played.git("rev-parse", "--verify", f"refs/heads/{played.status['integrated']}")
