"""A sweep over tests that disturb each other, for real: with groups and folders of their own none of them does."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path

import pytest

from tests.git_project import PYTEST_INI, GitProject
from tests.isolation import IsolatedMngr
from tests.sweep.sweeping import Program, offline

pytestmark = pytest.mark.slow

TESTS = """\
import os, pathlib, socket, sys, time
import pytest

SHARED = pathlib.Path(os.environ["SWARM_CHECKOUT_OF_TEST"]) / ".git"


def only_one_of(group):
    os.mkdir(SHARED / group)
    time.sleep(0.7)
    os.rmdir(SHARED / group)


@pytest.mark.xdist_group("one")
def test_first(): only_one_of("one")


@pytest.mark.xdist_group("one")
def test_second(): only_one_of("one")


def test_third_alone(): only_one_of("alone")


def test_fourth_alone(): only_one_of("alone")


@pytest.mark.parametrize("name", ["a", "b"])
def test_own(name, tmp_path):
    sys.path.insert(0, "vendor")
    import lib
    assert lib.MADE == "set up"
    own = {key: os.environ[key] for key in ("SWARM_AGENT_NUMBER", "SWARM_FIRST_PORT", "TMPDIR", "HOME")}
    assert tmp_path.is_relative_to(own["TMPDIR"]) and own["HOME"].startswith(own["TMPDIR"])
    with socket.socket() as server, socket.socket(socket.AF_UNIX) as local:
        server.bind(("127.0.0.1", int(own["SWARM_FIRST_PORT"])))
        local.bind(str(tmp_path / "socket"))
    pathlib.Path(own["TMPDIR"], "left").touch()
    seen = SHARED / f"seen-{name}"
    # The agent's run comes first, then that of swarm-tui.
    if not seen.exists():
        seen.write_text(repr(own))


def test_hangs(): time.sleep(600)
"""


def test_agents_do_not_disturb_each_other(isolated_mngr: IsolatedMngr, tmp_path: Path) -> None:
    library = GitProject(tmp_path / "library")
    library.commit("Library", {"lib.py": "from made import MADE\n"})
    project = GitProject(tmp_path / "project")
    project.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), "vendor")
    shutil.rmtree(library.root)
    project.commit("Begin", {"test_it.py": TESTS, "pytest.ini": PYTEST_INI, ".gitignore": "/made.py\n/records/\n"})
    project.write({"made.py": "MADE = 'set up'\n", "records/.keep": ""})
    settings = {"SWARM_MNGR": isolated_mngr.settings.path, "SWARM_CHECKOUT_OF_TEST": str(project.root)}
    program = Program(project.root, {**isolated_mngr.environment, **settings})
    words = (
        "--serial",
        "test_*_alone",
        "--setup",
        "cp $SWARM_CHECKOUT/made.py .",
        "--empty-home",
        "--test-timeout",
        "10s",
    )
    passed = ("--pass-env", "SWARM_CHECKOUT_OF_TEST", "--slots", "4", "--speed", "50", "--integrator", "none")
    done = program.call("run", "--headless", *offline("records", *words, *passed))
    results = {test["test"].partition("::test_")[2]: test["result"] for test in program.status()["tests"]}
    whole = ("first", "second", "third_alone", "fourth_alone", "own[a]", "own[b]")
    assert results == {**dict.fromkeys(whole, "clean"), "hangs": "unresolved"}, done.stderr
    (hung,) = (test for test in program.status()["tests"] if test["test"].endswith("hangs"))
    assert "did not finish within 10 s (--test-timeout)" in hung["tries"][-1]["failure"]
    seen = [ast.literal_eval((project.root / f".git/seen-{name}").read_text()) for name in "ab"]
    temporary = Path(seen[0]["TMPDIR"]).parent
    assert json.loads((program.newest().root / "sweep.json").read_text())["temporary"] == str(temporary)
    assert not temporary.exists()
