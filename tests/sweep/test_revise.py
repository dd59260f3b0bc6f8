"""A fix that is sent back goes to its agent, and what comes of it takes its place: with the real mngr."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from swarm_tui.integrator.events import Integrated
from swarm_tui.model.pulled import INTEGRATOR_OUTCOME_FILE
from swarm_tui.review.open import difference_of, review_sweep, revised_changes
from swarm_tui.review.ranking import read_tip_results
from tests.git_project import PYTEST_INI, GitProject
from tests.isolation import IsolatedMngr
from tests.sweep.sweeping import Program, kill_engine, offline
from tests.waiting import until

pytestmark = pytest.mark.slow

RECORD = """
test = "tests/test_lib.py::test_{name}"
summary = "It was wrong."
[[step]]
run = "as it is"
[[step]]
edit = "{name}.py"
old = "return 0"
new = "return {wrong}"
[[step]]
run = "with a number"
[[step]]
commit = "FIX_IMPL"
message = "Mend {name}"
"""
REVISE = """
[[revise]]
[[revise.step]]
edit = "{name}.py"
old = "return {wrong}"
new = "return {right}"
[[revise.step]]
run = "with the other number"
[[revise.step]]
commit = "FIX_IMPL"
message = "Mend {name} for good"
[[revise.step]]
write = "tests/test_more.py"
text = "def test_more(): pass\\n"
[[revise.step]]
commit = "IMPROVE_TEST"
message = "Look at more"
"""


@pytest.fixture
def swept(isolated_mngr: IsolatedMngr, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    project = GitProject(tmp_path_factory.mktemp("revise") / "project")
    files = {f"{name}.py": f"def {name}():\n    return 0\n" for name in ("one", "two")}
    tests = "import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parents[1]))\n"
    tests += "".join(
        f"def test_{name}():\n    import {name}\n    assert {name}.{name}() > 0\n\n" for name in ("one", "two")
    )
    records = {
        "records/one.toml": RECORD.format(name="one", wrong=1) + REVISE.format(name="one", wrong=1, right=5),
        "records/two.toml": RECORD.format(name="two", wrong=2),
    }
    project.commit("base", files | records | {"tests/test_lib.py": tests, "pytest.ini": PYTEST_INI})
    program = Program(project.root, {**isolated_mngr.environment, "SWARM_MNGR": isolated_mngr.settings.path})
    done = program.call("run", "--headless", "--no-preflight", *offline("records", "--slots", "2", "--speed", "50"))
    assert done.returncode == 0, done.stderr
    yield program
    kill_engine(program.newest())
    program.call("clean", "--yes")


def integrated_times(program: Program) -> int:
    return sum(isinstance(event, Integrated) for event in program.newest_events())


def photo_of_branch(program: Program) -> tuple[str, bytes]:
    """Return the integrated branch's commit, and what its integrator reported."""
    folder = program.newest()
    tip = GitProject(program.folder).git("rev-parse", f"swarm/{folder.name}/integrated")
    return tip, (folder.integrator / INTEGRATOR_OUTCOME_FILE).read_bytes()


def go_back_to(program: Program, photo: tuple[str, bytes]) -> None:
    """Undo the last integration: its event and all after it, the branch, and the report."""
    folder = program.newest()
    lines = folder.events.read_bytes().splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if json.loads(line)["type"] == "integrated")
    folder.events.write_bytes(b"".join(lines[:last]))
    git = GitProject(program.folder)
    git.git("update-ref", f"refs/heads/swarm/{folder.name}/integrated", photo[0])
    for ref in git.git("for-each-ref", "--format=%(refname)", f"refs/swarm/{folder.name}/").split("\n"):
        if "/before-" in ref:
            git.git("update-ref", "-d", ref)
    (folder.integrator / INTEGRATOR_OUTCOME_FILE).write_bytes(photo[1])


def test_a_fix_goes_to_its_author_and_comes_again_in_its_place(swept: Program) -> None:
    project = swept.folder
    before = photo_of_branch(swept)
    with review_sweep(swept.newest()) as review:
        names = [fix.title for fix in review.fixes]
        rank = names.index("Mend one") + 1
        old = review.fixes[rank - 1]
    refused = swept.call("fixes", "--send-back", str(rank))
    assert (refused.returncode, "--why" in refused.stderr) == (2, True)
    sent = swept.call("fixes", "--send-back", str(rank), "--why", "Five, please.\nNot one.")
    assert sent.returncode == 0, sent.stderr
    until(lambda: integrated_times(swept) == 2, "the branch with what came of it")

    with review_sweep(swept.newest()) as review:
        assert [fix.title for fix in review.fixes] == [
            "Mend one for good" if name == "Mend one" else name for name in names
        ]
        new = review.fixes[rank - 1]
        returned = revised_changes(review.outcome)[new.id]
        assert (returned.old, returned.comment) == (old.id, "Five, please.\nNot one.")
        # It is a new change, so that the person is asked anew.
        assert review.verdict(new) is None
        difference = difference_of(review, new, returned)
        assert difference is not None
        # There is no commit of tests on this branch, so that the new test came with the fix.
        assert {"-    return 1", "+    return 5", "+def test_more(): pass"} <= set(difference.lines)
        assert "+    return 0" not in difference.lines
        assert review.branch.doubts == (
            "the tests have not run on the branch since a fix was revised (run `swarm-tui integrate`)",
        )
        assert read_tip_results(review.outcome) is None
    git = GitProject(project)
    branch = f"swarm/{swept.newest().name}/integrated"
    assert "return 5" in git.git("show", f"{branch}:one.py")
    assert "return 2" in git.git("show", f"{branch}:two.py")
    body = git.git("log", "-1", "--format=%b", new.id)
    assert "Test: tests/test_lib.py::test_one" in body
    status = json.loads(swept.call("status", "--json").stdout)
    assert {test["result"] for test in status["tests"]} == {"impl_fix"}
    until(lambda: not swept.opened().has_running_engine, "the end of the engine")

    # As if the engine had been killed when the work was pulled, and not yet on the branch.
    go_back_to(swept, before)
    assert integrated_times(swept) == 1
    resumed = swept.call("resume", "--headless")
    assert resumed.returncode == 0, resumed.stderr
    assert integrated_times(swept) == 2
    assert "return 5" in git.git("show", f"{branch}:one.py")

    # Another integration makes one fix of what was sent back and what came of it.
    assert swept.call("integrate").returncode == 0
    with review_sweep(swept.newest()) as review:
        assert {fix.title for fix in review.fixes} == {"Mend one for good", "Mend two"}
    asked = swept.call("clean")
    assert "of the base and the agents' work" in asked.stdout + asked.stderr
    assert "lost for good" not in asked.stdout + asked.stderr
    again = swept.call("fixes", "--send-back", str(rank), "--why", "Once more.")
    assert again.returncode == 0, again.stderr
    until(lambda: not swept.opened().has_running_engine, "the end of the engine")
    # The record's edit does not fit a second time: nothing new comes, and the branch stays.
    assert integrated_times(swept) == 3
    assert git.git("for-each-ref", "refs/heads/swarm").count("\n") == 0
