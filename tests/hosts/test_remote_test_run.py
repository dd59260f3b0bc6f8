"""The program that runs a test on a host: its results and its errors."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from swarm_tui.adapters.pytest import PLUGIN_FOLDER, RUN_PYTEST_NAME, read_report, run_variables, session_words
from swarm_tui.sweep.verify import _PROGRAM
from tests.git_project import PYTEST_INI, GitProject
from tests.waiting import until

pytestmark = pytest.mark.slow

TEST = "test_it.py::test_it"


def request(root: Path, commit: str, **more: object) -> bytes:
    wanted: dict[str, object] = {
        "copy": str(root / "copy"),
        "seed": str(root / "project/.git"),
        "commit": commit,
        "setup": "",
        "checkout": str(root / "project"),
        "python": sys.executable,
        "program": str(PLUGIN_FOLDER / RUN_PYTEST_NAME),
        "words": session_words("{scratch}", (), [TEST]),
        "folder": "",
        "variables": {
            "SWARM_RESULTS": "{descriptor}",
            "SWARM_PYTHONPATH": f"{root}/copy:{PLUGIN_FOLDER}",
            **run_variables("{scratch}"),
        },
        "passed": {},
        "seconds": 60.0,
        "own": [str(root / "own")],
    }
    return json.dumps(wanted | more).encode()


CALLED = [sys.executable, "-c", _PROGRAM]


def run(root: Path, commit: str, **more: object) -> dict[str, Any]:
    given = request(root, commit, **more)
    done = subprocess.run(CALLED, input=given, capture_output=True, timeout=120, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def outcomes(answer: dict[str, Any]) -> dict[str, str]:
    report = read_report(base64.b64decode(answer["received"]), answer["secret"].encode())
    assert report.problem(answer["code"]) == ""
    return dict(report.outcomes)


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    project = GitProject(tmp_path / "project")
    project.commit("Begin", {"test_it.py": "def test_it(): assert 0\n", "pytest.ini": PYTEST_INI})
    return project


def test_commits_run_one_by_one_in_a_copy(project: GitProject, tmp_path: Path) -> None:
    first = project.git("rev-parse", "HEAD")
    second = project.commit("Pass", {"test_it.py": "import other\ndef test_it(): assert other\n", "other.py": ""})
    assert outcomes(run(tmp_path, first)) == {TEST: "failed"}
    (tmp_path / "copy/other.py").write_text("")
    assert outcomes(run(tmp_path, second)) == {TEST: "passed"}
    assert outcomes(run(tmp_path, first)) == {TEST: "failed"}
    assert not (tmp_path / "copy/other.py").exists()


def test_process_that_leaves_early_has_no_result(project: GitProject, tmp_path: Path) -> None:
    commit = project.commit("Leave", {"test_it.py": "import os\ndef test_it(): os._exit(0)\n"})
    answer = run(tmp_path, commit)
    report = read_report(base64.b64decode(answer["received"]), answer["secret"].encode())
    assert report.problem(answer["code"]) == "the process exited before the end of pytest's session, with code 0"


def test_set_up_runs_once_and_reports_failure(project: GitProject, tmp_path: Path) -> None:
    commit = project.git("rev-parse", "HEAD")
    assert run(tmp_path, commit, setup="echo no compiler; exit 4") == {
        "problem": "the set-up command failed with code 4: no compiler"
    }
    setup = "echo x >> $SWARM_CHECKOUT/times"
    run(tmp_path, commit, setup=setup)
    run(tmp_path, commit, setup=setup)
    assert (tmp_path / "project/times").read_text() == "x\n"


def test_passed_variables_reach_set_up_and_test(project: GitProject, tmp_path: Path) -> None:
    source = "import os\ndef test_it(): assert os.environ['TOKEN'] == '{scratch}'\n"
    commit = project.commit("Need a variable", {"test_it.py": source})
    assert outcomes(run(tmp_path, commit)) == {TEST: "failed"}
    answer = run(tmp_path, commit, setup='test "$TOKEN"', passed={"TOKEN": "{scratch}"})
    assert outcomes(answer) == {TEST: "passed"}


def test_runs_in_one_copy_are_sequential(project: GitProject, tmp_path: Path) -> None:
    commits = [project.git("rev-parse", "HEAD"), project.commit("Pass", {"test_it.py": "def test_it(): pass\n"})]
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda commit: run(tmp_path, commit), commits))
    assert [outcomes(answer) for answer in answers] == [{TEST: "failed"}, {TEST: "passed"}]


def test_copy_damaged_by_a_test_is_replaced(project: GitProject, tmp_path: Path) -> None:
    good = project.commit("Pass", {"test_it.py": "def test_it(): pass\n"})
    bad = project.commit("Damage", {"test_it.py": "import shutil\ndef test_it(): shutil.rmtree('.git')\n"})
    assert [outcomes(run(tmp_path, commit)) for commit in (bad, good)] == [{TEST: "passed"}] * 2


def test_run_stops_when_the_connection_is_lost(project: GitProject, tmp_path: Path) -> None:
    started = tmp_path / "started"
    source = (
        f"import os, pathlib, signal\ndef test_it():\n    pathlib.Path({str(started)!r}).write_text(str(os.getpid()))"
    )
    commit = project.commit("Wait", {"test_it.py": f"{source}\n    signal.pause()\n"})
    (tmp_path / "request").write_bytes(request(tmp_path, commit, seconds=600.0))
    # The host program is the parent; it exits when its connection is closed.
    parent = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    with open(tmp_path / "request", "rb") as given:
        host_program = subprocess.Popen([sys.executable, "-c", parent, *CALLED], stdin=given, stdout=subprocess.DEVNULL)
    until(lambda: started.exists() and started.read_text(), "the test to run")
    host_program.kill()
    host_program.wait()
    until(lambda: not Path(f"/proc/{started.read_text()}").exists(), "the end of the test")


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"commit": "0" * 40}, "git checkout failed: "),
        ({"seed": "/nowhere"}, "git clone failed: "),
        ({"python": "/nowhere/python"}, "cannot start /nowhere/python: No such file or directory"),
        ({"seconds": 0.01}, "did not exit within 0.01 s"),
    ],
)
def test_impossible_run_has_reason(project: GitProject, tmp_path: Path, more: dict[str, object], problem: str) -> None:
    commit = str(more.pop("commit", project.git("rev-parse", "HEAD")))
    assert problem in run(tmp_path, commit, **more)["problem"]
