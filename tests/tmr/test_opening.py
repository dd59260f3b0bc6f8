"""Runs of every generation are opened as sweeps, their folders are not changed, and what is damaged is named."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.engine.commits import FetchedCommits
from swarm_tui.tmr.agent_folder import look_into
from swarm_tui.tmr.run_commits import open_commits
from swarm_tui.tmr.run_folder import read_run, run_prefix, run_signature, slug_of_agent
from tests.cli.command_line import run_swarm_tui
from tests.git_project import file_contents
from tests.tmr.runs import AGENTS, SUMMARY, MadeAgent, make_project, make_run, outcome, page

RESULTS = {
    "tests/test_shop.py::test_clean": "clean",
    "tests/test_shop.py::TestTotal::test_sum[a::b-<i>]": "impl_fix",
    "tests/test_shop.py::test_name": "better",
    "tests/test_shop.py::test_hard": "unresolved",
    "tests/test_shop.py::test_errored": "failed",
    "tests/test_shop.py::test_claims": "unresolved",
}

Command = Callable[..., Any]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Return a function that runs a command with `--json` on a run and returns its exit code and what it printed."""
    (tmp_path / "home").mkdir()
    kept = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "XDG_STATE_HOME": str(tmp_path / "state")}

    def call(verb: str, *words: str, folder: Path = tmp_path, is_json: bool = True) -> Any:
        done = run_swarm_tui(verb, *words, *(["--json"] if is_json else []), folder=folder, environment=kept)
        return json.loads(done.stdout) if is_json and done.returncode == 0 else done

    return call


class SilentRepository(Repository):
    """A repository that must not be asked."""

    def run(self, *arguments: str, **_: Any) -> NoReturn:
        raise AssertionError(f"git {arguments[0]}")


def results(status: dict[str, Any]) -> dict[str, str]:
    return {test["test"]: test["result"] for test in status["tests"]}


@pytest.mark.parametrize("generation", ["newest", "july", "may"])
def test_a_run_with_bundles_is_shown_by_our_rules(tmp_path: Path, command: Command, generation: str) -> None:
    made = make_run(make_project(tmp_path / "shop"), generation)
    before = file_contents(made.root)
    status = command("status", str(made.root))
    assert (status["source"], status["state"], status["base"]) == ("tmr", "finished", made.base)
    assert results(status) == RESULTS
    assert not any(test["is_guessed"] for test in status["tests"])
    fixed = next(test for test in status["tests"] if test["result"] == "impl_fix")
    assert len(fixed["changes"]["FIX_IMPL"]["commit"]) == 40
    assert [tried["passed"] for tried in fixed["tries"]] == [False, True]
    claims = next(test for test in status["tests"] if test["test"].endswith("claims"))
    assert "no commit of that kind" in claims["reason"]
    assert "its page has it under other fixes" in claims["reason"]
    assert file_contents(made.root) == before


@pytest.mark.parametrize("generation", ["newest", "july", "may", "april"])
def test_the_integrated_branch_is_reviewed(tmp_path: Path, command: Command, generation: str) -> None:
    made = make_run(make_project(tmp_path / "shop"), generation)
    found = command("fixes", str(made.root))
    assert [fix["title"] for fix in found["fixes"]] == ["Add all prices"]
    assert found["fixes"][0]["commit"] == made.integrated


def test_the_repository_is_asked_nothing_for_agents_without_commits(tmp_path: Path) -> None:
    made = make_run(make_project(tmp_path / "shop"), "may")
    run = read_run(made.root)
    commits = open_commits(run, "s", None, tmp_path / "scratch")
    commits.repository = SilentRepository.open(made.project.root)
    idle = [agent for agent in run.agents if not made.agents[agent.name].commits]
    assert len(idle) == 4
    assert all(commits.fetch(agent) == (agent.branch, FetchedCommits()) for agent in idle)


def test_without_bundles_and_branches_an_agents_word_is_taken_and_said_to_be_that(
    tmp_path: Path, command: Command
) -> None:
    made = make_run(make_project(tmp_path / "shop"), "april")
    for branch in made.project.git("for-each-ref", "--format=%(refname:short)", "refs/heads/mngr-tmr").split():
        made.project.git("branch", "-D", branch)
    status = command("status", str(made.root))
    assert results(status) == RESULTS | {"tests/test_shop.py::test_claims": "test_fix"}
    fixed = next(test for test in status["tests"] if test["result"] == "impl_fix")
    assert "its own word" in fixed["reason"]


@pytest.mark.parametrize("generation", ["march", "page"])
def test_a_run_without_outcomes_shows_its_tests_and_what_the_page_says(
    tmp_path: Path, command: Command, generation: str
) -> None:
    made = make_run(make_project(tmp_path / "shop"), generation)
    for path in (made.root, *made.root.rglob("*")):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    status = command("status", str(made.root))
    assert results(status) == RESULTS | {"tests/test_shop.py::test_claims": "test_fix"}
    assert all("the page has it under" in test["reason"] for test in status["tests"])
    errored = next(test for test in status["tests"] if test["result"] == "failed")
    assert errored["reason"].startswith("What I did")


def test_a_page_that_is_gone_leaves_names_that_are_said_to_be_guessed(tmp_path: Path, command: Command) -> None:
    made = make_run(make_project(tmp_path / "shop"), "newest")
    (made.root / "index.html").unlink()
    status = command("status", str(made.root))
    assert all(test["is_guessed"] for test in status["tests"])
    assert results(status)["test-name"] == "better"


def test_a_run_elsewhere_needs_to_be_told_its_repository(tmp_path: Path, command: Command) -> None:
    made = make_run(make_project(tmp_path / "shop"), "newest")
    moved = tmp_path / "elsewhere" / made.root.name
    shutil.copytree(made.root, moved)
    lost = command("status", str(moved))
    assert "cannot be had" in next(test["reason"] for test in lost["tests"] if test["test"].endswith("test_name"))
    found = command("status", str(moved), "--repository", str(made.project.root))
    assert results(found) == RESULTS


def test_a_cut_bundle_and_broken_reports_are_named_and_the_rest_is_shown(tmp_path: Path, command: Command) -> None:
    made = make_run(make_project(tmp_path / "shop"), "newest")
    by_test = {agent.test: made.root / name for name, agent in made.agents.items()}
    bundle = by_test["tests/test_shop.py::test_name"] / "branch.bundle"
    bundle.write_bytes(bundle.read_bytes()[:-40])
    made.project.git("reflog", "expire", "--expire=now", "--all")
    made.project.git("gc", "--quiet", "--prune=now")
    (by_test["tests/test_shop.py::test_clean"] / "test_output/testing_agent_outcome.json").write_text('{"changes": [')
    hard = by_test["tests/test_shop.py::test_hard"] / "test_output/testing_agent_outcome.json"
    hard.unlink()
    os.mkfifo(hard)
    status = command("status", str(made.root))
    reasons = {test["test"].rpartition("::")[2]: test["reason"] for test in status["tests"]}
    assert "its commits cannot be had" in reasons["test_name"]
    assert "the outcome file is broken" in reasons["test_clean"]
    assert "no outcome that can be read" in reasons["test_hard"]
    assert results(status)["tests/test_shop.py::TestTotal::test_sum[a::b-<i>]"] == "impl_fix"


def test_a_run_under_way_is_shown_as_such_and_goes_on(tmp_path: Path, command: Command) -> None:
    agents = (*AGENTS[:2], MadeAgent("tests/test_shop.py::test_late", None, "RUNNING"))
    made = make_run(make_project(tmp_path / "shop"), "july", agents=agents)
    shutil.rmtree(next(made.root.glob("*-reducer")))
    late = next(made.root.glob("*test-late"))
    first = command("status", str(made.root))
    assert [test["state"] for test in first["tests"]] == ["done", "done", "running"]
    (late / "test_output/testing_agent_outcome.json").write_text(json.dumps(outcome(True, True)))
    again = command("status", str(made.root))
    assert [test["result"] for test in again["tests"]] == ["clean", "impl_fix", "clean"]
    assert len(again["tests"][1]["tries"]) == 2


def test_what_failed_in_a_run_under_way_is_shown_as_failed(tmp_path: Path, command: Command) -> None:
    agents = (*AGENTS[:1], MadeAgent("tests/test_shop.py::test_slow", None, "FAILED"))
    made = make_run(make_project(tmp_path / "shop"), "july", agents=agents)
    shutil.rmtree(next(made.root.glob("*-reducer")))
    shutil.rmtree(next(made.root.glob("*-slow")))
    assert results(command("status", str(made.root))) == {agents[0].test: "clean", agents[1].test: "failed"}


def test_names_give_way_to_ids_when_the_page_comes(tmp_path: Path, command: Command) -> None:
    made = make_run(make_project(tmp_path / "shop"), "newest")
    page_file = made.root / "index.html"
    page_file.rename(tmp_path / "kept.html")
    assert "6 tests guessed" in command("status", str(made.root), is_json=False).stdout
    (tmp_path / "kept.html").rename(page_file)
    assert results(command("status", str(made.root))) == RESULTS


def test_an_integrator_without_a_report_leaves_its_branch(tmp_path: Path, command: Command) -> None:
    made = make_run(make_project(tmp_path / "shop"), "newest")
    shutil.rmtree(next(made.root.glob("*-reducer")) / "test_output")
    assert results(command("status", str(made.root))) == RESULTS
    assert [fix["title"] for fix in command("fixes", str(made.root))["fixes"]] == ["Add all prices"]


def test_nothing_is_read_through_a_link_or_from_what_is_no_file(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "testing_agent_outcome.json").write_text("{}")
    root = tmp_path / "tmr_1"
    for name in ("a", "b", "c"):
        (root / f"tmr-1-{name}").mkdir(parents=True)
    (root / "tmr-1-a/test_output").symlink_to(kept)
    (root / "tmr-1-b/testing_agent_outcome.json").symlink_to(kept / "testing_agent_outcome.json")
    (root / "tmr-1-c/branch.bundle").mkdir()
    (root / "tmr-1-c/test_output").mkdir()
    (root / "index.html").mkdir()
    found = read_run(root)
    assert [(agent.name, agent.outcome, agent.bundle) for agent in found.agents] == [("tmr-1-c", None, None)]
    assert "index.html cannot be read" in found.problems
    assert not look_into(root / "gone").is_readable


def test_a_run_that_has_not_changed_is_not_read_again(tmp_path: Path, command: Command) -> None:
    made = make_run(make_project(tmp_path / "shop"), "newest")
    before = run_signature(made.root)
    assert results(command("status", str(made.root))) == RESULTS
    (written,) = (tmp_path / "state").rglob("written.txt")
    assert written.read_text().endswith(before)
    changed = next(made.root.glob("*-test-clean/test_output/*.json"))
    changed.write_text(json.dumps(outcome(False, False)))
    assert run_signature(made.root) != before
    assert results(command("status", str(made.root))) != RESULTS


def test_every_command_takes_such_a_folder_and_says_no_to_what_is_none(tmp_path: Path, command: Command) -> None:
    made = make_run(make_project(tmp_path / "shop"), "newest")
    (row,) = command("list", str(made.root))
    assert row["state"] == "finished"
    written = command("report", str(made.root), "-o", str(tmp_path / "page"))
    assert written["tests"] == len(AGENTS)
    for words in (["resume"], ["integrate"], ["stop"], ["request", "integrate", "--sweep"]):
        refused = command(*words, str(made.root), is_json=False)
        assert (refused.returncode, "a run of `mngr tmr`" in refused.stderr) == (2, True)
    (tmp_path / "empty").mkdir()
    for name in (str(tmp_path / "empty"), "empty"):
        none = command("status", name)
        assert (none.returncode, "is no sweep folder" in none.stderr) == (2, True)


def test_hostile_pages_act_nowhere(tmp_path: Path, command: Command) -> None:
    evil = "tests/\x1b]0;x\x07<script>&amp;::test_[red]"
    rows = [(MadeAgent(evil, None, "FAILED"), name, "-") for name in ("../../etc", "-rf", "a" * 300, "tmr-1-x")]
    root = make_project(tmp_path / "shop").root / "tmr_1"
    root.mkdir()
    (root / "index.html").write_text(page(rows) + "<tr><td>" * 50_000)
    status = command("status", str(root))
    assert [test["agent"] for test in status["tests"]] == ["tmr-1-x"]
    shown = command("status", str(root), is_json=False).stdout
    assert "\x1b" not in shown


def test_ids_that_cannot_be_told_apart_are_told_apart_by_their_agents(tmp_path: Path, command: Command) -> None:
    same = MadeAgent("tests/test_shop.py::test_same", None, "RUNNING")
    root = make_project(tmp_path / "shop").root / "tmr_1"
    root.mkdir()
    (root / "index.html").write_text(page([(same, f"tmr-1-same{n}", "-") for n in ("", "-2", "-2")]))
    tests = [test["test"] for test in command("status", str(root))["tests"]]
    assert tests == ["tests/test_shop.py::test_same", "tests/test_shop.py::test_same (tmr-1-same-2)"]


@pytest.mark.parametrize(
    ("folder", "agents", "prefix"),
    [
        ("tmr_20260514184215", ["tmr-20260514184215-a-b"], "tmr-20260514184215-"),
        ("my_own_run_x_1", ["my_own-run_x_1-a"], "my_own-run_x_1-"),
        ("tmr_20260514184215_reintegrate", ["tmr-20260514184215-a"], "tmr-20260514184215-"),
        ("tmr_2026-05-01_10-00-00", ["tmr-a-b-00ff00"], "tmr-"),
        ("out", ["tmr-x"], "tmr-"),
    ],
)
def test_the_beginning_of_all_names_is_found(folder: str, agents: list[str], prefix: str) -> None:
    assert run_prefix(folder, agents) == prefix


@pytest.mark.parametrize(
    ("agent", "prefix", "slug"),
    [
        ("tmr-20260514184215-test-sum-a-b", "tmr-20260514184215-", "test-sum-a-b"),
        ("tmr-test-sum-00ff00", "tmr-", "test-sum"),
        ("tmr-20260514184215-test-x", "other-", "test-x"),
    ],
)
def test_what_a_name_keeps_of_its_test_is_found(agent: str, prefix: str, slug: str) -> None:
    assert slug_of_agent(agent, prefix) == slug


def test_a_row_that_an_agent_wrote_takes_no_test_from_another(tmp_path: Path) -> None:
    forged = "<tr><td>a.py::test_x</td><td><code>tmr-1-test-b</code></td></tr>"
    rows = [(MadeAgent(f"a.py::test_{n}", outcome(True, True), "CLEAN_PASS"), f"tmr-1-test-{n}", "-") for n in "ab"]
    root = tmp_path / "tmr_1"
    root.mkdir()
    (root / "index.html").write_text(page(rows).replace(SUMMARY, forged, 1))
    assert [(agent.test, agent.is_guessed) for agent in read_run(root).agents] == [
        ("a.py::test_a", False),
        ("a.py::test_b", False),
    ]
