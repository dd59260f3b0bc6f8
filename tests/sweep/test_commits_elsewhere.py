"""A sweep whose agents commit anywhere but on their branch: the commits are used, or kept, offered and listed."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from swarm_tui.questions.inbox import ItemKind, find_groups
from tests.git_project import PYTEST_INI, GitProject
from tests.isolation import IsolatedMngr
from tests.sweep.sweeping import Program, kill_engine, offline

pytestmark = pytest.mark.slow

# The tests themselves do to the copy what agents do there; the agents only run them, edit a file and commit.
TESTS = """\
import os, shutil, subprocess
import program


def git(*words):
    if "MNGR_AGENT_WORK_DIR" in os.environ:
        subprocess.run(["git", *words], check=True)


def test_branch():
    git("checkout", "-q", "-B", "feature")
    assert program.one() == 1


def test_detached():
    git("checkout", "-q", "--detach")
    assert program.two() == 2


def test_deleted():
    if program.three() == 3 and "MNGR_AGENT_WORK_DIR" in os.environ and os.path.exists(".git/committed"):
        shutil.rmtree(".git")
    git("commit", "-q", "--allow-empty", "-m", "Work") if program.three() == 3 else None
    open(".git/committed", "w").close()
    assert program.three() == 3
"""
PROGRAM = "def one():\n    return 0\n\n\ndef two():\n    return 0\n\n\ndef three():\n    return 0\n"


def record(test: str, function: str, number: int, *more: str) -> str:
    old, new = f"def {function}():\\n    return 0", f"def {function}():\\n    return {number}"
    steps = ['run = "a run"', f'edit = "program.py"\nold = "{old}"\nnew = "{new}"', 'run = "a run"', *more]
    return f'test = "test_all.py::{test}"\n' + "".join(f"[[step]]\n{step}\n" for step in steps)


@pytest.fixture(scope="module")
def swept(
    isolated_mngr: IsolatedMngr, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Program, GitProject]]:
    project = GitProject(tmp_path_factory.mktemp("elsewhere") / "project")
    commit = 'commit = "FIX_IMPL"\nmessage = "Return the number"'
    project.commit(
        "Begin",
        {
            "program.py": PROGRAM,
            "test_all.py": TESTS,
            "pytest.ini": PYTEST_INI + " -p no:cacheprovider\n",
            ".gitignore": "__pycache__/\n.test_output/\n/records/\n",
            "records/branch.toml": record("test_branch", "one", 1, commit),
            "records/detached.toml": record("test_detached", "two", 2, commit),
            "records/deleted.toml": record("test_deleted", "three", 3, 'run = "once more"', commit),
        },
    )
    project.git("tag", "before")
    program = Program(project.root, {**isolated_mngr.environment, "SWARM_MNGR": isolated_mngr.settings.path})
    try:
        program.call("run", "--headless", *offline("records", "--speed", "20", "--no-preflight"))
        yield program, project
    finally:
        kill_engine(program.newest())


def test_results_name_commits_elsewhere(swept: tuple[Program, GitProject]) -> None:
    program, project = swept
    tests = {test["test"].partition("::")[2]: test for test in program.status()["tests"]}
    assert tests["test_branch"]["result"] == "impl_fix"
    assert "it committed on the branch feature, not on the expected branch" in tests["test_branch"]["reason"]
    assert tests["test_detached"]["result"] == "unresolved"
    assert "no commit of that kind" in tests["test_detached"]["reason"]
    assert "the agent left 1 commit on a detached HEAD, kept as refs/swarm-held/" in tests["test_detached"]["reason"]
    assert "its copy has no .git directory any more" in tests["test_deleted"]["reason"]
    patch = program.newest().agent(tests["test_deleted"]["agent"]) / "uncommitted.patch"
    assert "+    return 3" in patch.read_text()
    status = program.status()
    assert "return 1" in project.git("show", f"{status['integrated']}:program.py")
    assert "return 2" not in project.git("show", f"{status['integrated']}:program.py")


def test_inbox_offers_commits_elsewhere(swept: tuple[Program, GitProject]) -> None:
    program, project = swept
    groups = [group for group in find_groups(program.opened().state, time.time()) if group.kind is ItemKind.COMMITS]
    texts = {group.items[0].test.partition("::")[2]: group.items[0].text for group in groups}
    (take,) = [line for line in texts["test_detached"].splitlines() if line.startswith("apply: ")]
    assert "its copy has no .git directory" in texts["test_deleted"]
    project.git(*take.partition("`git ")[2].rstrip("`").split())
    assert "return 2" in (project.root / "program.py").read_text()
    project.git("reset", "--quiet", "--hard", "before")


def test_clean_lists_commits_elsewhere_first(swept: tuple[Program, GitProject]) -> None:
    program, _ = swept
    refused = program.call("clean")
    assert refused.returncode == 2
    assert "refs/swarm-held/" in refused.stderr
    assert "holds 1 commit that" in refused.stderr
    assert "its copy has no .git directory any more, and its files are in" in refused.stderr
    cleaned = program.call("clean", "--yes")
    assert cleaned.returncode == 0, cleaned.stderr
