"""The live plugin inside real runs of pytest: it tells what pytest says, and never breaks or changes a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from swarm_tui.agents.live.swarm_live.collection import write_no_reports
from swarm_tui.agents.shipped import live_folder

pytestmark = pytest.mark.slow

TESTS = """\
import pytest


def test_passes():
    assert True


def test_fails():
    assert 1 == 2, "not equal"


@pytest.mark.skip(reason="no such device")
def test_skipped():
    pass


@pytest.mark.xfail
def test_expected_to_fail():
    assert False


@pytest.fixture
def broken():
    raise OSError("no host")


def test_breaks_before(broken):
    pass


@pytest.fixture
def leaky():
    yield
    raise OSError("left open")


def test_breaks_after(leaky):
    pass


@pytest.mark.parametrize("name", ["a/b", "[x]", "::", "ü"])
def test_named(name):
    pass
"""


class Copy:
    """An agent's copy of a project, in which its pytest runs with the live plugin."""

    def __init__(self, root: Path) -> None:
        self.copy = root / "copy"
        self.checkout = root / "checkout"
        self.state = root / "state"
        for folder in (self.copy, self.checkout, self.state):
            folder.mkdir()
        self.write("test_it.py", TESTS)

    def write(self, name: str, content: str) -> None:
        (self.copy / name).parent.mkdir(parents=True, exist_ok=True)
        (self.copy / name).write_text(content)

    def run(
        self,
        *words: str,
        test: str = "test_passes",
        file: str = "test_it.py",
        extra: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run pytest as the agent of a test would."""
        task = self.state / "task.json"
        task.write_text(json.dumps({"repository": str(self.checkout), "file": file, "rest": test}))
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "SWARM", "MNGR"))}
        environment = kept | {
            "PYTHONPATH": str(live_folder()),
            "SWARM_TASK": str(task),
            "MNGR_AGENT_STATE_DIR": str(self.state),
            "MNGR_AGENT_WORK_DIR": str(self.copy),
            **(extra or {}),
        }
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words],
            cwd=cwd or self.copy,
            env=environment,
            capture_output=True,
            text=True,
        )

    def told(self) -> list[dict[str, Any]]:
        """Return what the plugin has told."""
        path = self.state / "plugin" / "swarm" / "tries.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def tries(self) -> list[tuple[bool, str]]:
        """Return whether each try passed, and its failure line."""
        return [(line["passed"], line["failure"]) for line in self.told() if line["kind"] == "finish"]


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


@pytest.mark.parametrize(
    ("test", "passed", "failure"),
    [
        ("test_passes", True, ""),
        ("test_fails", False, "test_it.py:9: AssertionError: not equal"),
        ("test_skipped", False, "skipped: no such device"),
        ("test_expected_to_fail", True, ""),
        ("test_breaks_before", False, "test_it.py:24: OSError: no host"),
        ("test_breaks_after", False, "test_it.py:34: OSError: left open"),
        ("test_named[a/b]", True, ""),
        ("test_named[[x]]", True, ""),
        ("test_named[::]", True, ""),
        ("test_named[\\xfc]", True, ""),
    ],
)
def test_a_try_is_a_run_of_the_agents_own_test_as_pytest_reports_it(
    copy: Copy, test: str, passed: bool, failure: str
) -> None:
    copy.run(f"test_it.py::{test}", test=test)
    assert copy.tries() == [(passed, failure)]
    assert [line["kind"] for line in copy.told()] == ["start", "finish"]


def test_a_run_of_everything_is_one_try_and_a_run_of_others_is_none(copy: Copy) -> None:
    copy.run(test="test_fails")
    assert len(copy.tries()) == 1
    copy.run("test_it.py::test_passes", test="test_fails")
    assert len(copy.tries()) == 1


def test_collecting_only_is_no_try(copy: Copy) -> None:
    copy.run("--collect-only", "test_it.py::test_passes")
    assert copy.told() == []


def test_a_file_that_cannot_be_imported_is_a_failed_try(copy: Copy) -> None:
    copy.write("test_it.py", "import no_such_module\n")
    copy.run("test_it.py::test_passes")
    assert copy.tries() == [(False, "error: ModuleNotFoundError: No module named 'no_such_module'")]


@pytest.mark.parametrize(
    "settings", ["-q", "-v", "-p no:terminal", "--import-mode=importlib", "--strict-markers -ra", "-c /dev/null"]
)
def test_the_projects_own_options_do_not_matter(copy: Copy, settings: str) -> None:
    copy.write("pytest.ini", f"[pytest]\naddopts = {settings}\n")
    copy.run("test_it.py::test_passes")
    assert copy.tries() == [(True, "")]


@pytest.mark.parametrize("options", [("-n2",), ("-n2", "--dist=loadgroup")])
def test_with_xdist_only_the_controller_records(copy: Copy, options: tuple[str, ...]) -> None:
    copy.write(
        "test_it.py",
        "import pytest\n\n\n@pytest.mark.xdist_group('one')\ndef test_passes():\n    pass\n\n\ndef test_b(): pass\n",
    )
    copy.run(*options)
    assert copy.tries() == [(True, "")]


@pytest.mark.parametrize("way", ["runpytest_inprocess", "runpytest_subprocess"])
def test_a_session_inside_a_session_is_none(copy: Copy, way: str) -> None:
    inner = 'def test_inner(pytester):\n    pytester.makepyfile(test_it="def test_passes(): assert 0")\n'
    copy.write("conftest.py", "pytest_plugins = ['pytester']\n")
    copy.write("test_it.py", f"{inner}    pytester.{way}()\n\n\ndef test_passes():\n    pass\n")
    copy.run("test_it.py")
    assert copy.tries() == [(True, "")]


def test_from_another_folder_and_rootdir_it_is_the_same_test(copy: Copy) -> None:
    copy.write("sub/tests/test_deep.py", "class TestIt:\n    def test_passes(self):\n        pass\n")
    file = "sub/tests/test_deep.py"
    copy.run("tests", test="TestIt::test_passes", file=file, cwd=copy.copy / "sub")
    copy.run("sub", "--rootdir=sub/tests", test="TestIt::test_passes", file=file)
    assert copy.tries() == [(True, ""), (True, "")]


@pytest.mark.parametrize("linked", ["tests", "tests/test_it.py"])
def test_a_test_that_a_link_leads_to_has_the_name_by_which_pytest_knows_it(copy: Copy, linked: str) -> None:
    target = copy.copy / "test_it.py" if linked.endswith(".py") else copy.copy
    (copy.copy / linked).parent.mkdir(exist_ok=True)
    (copy.copy / linked).symlink_to(target)
    copy.run("tests/test_it.py::test_passes", file="tests/test_it.py")
    assert copy.tries() == [(True, "")]


def test_modules_of_the_users_checkout_are_noticed(copy: Copy) -> None:
    (copy.checkout / "product.py").write_text("")
    copy.write("test_it.py", "import product\n\n\ndef test_passes():\n    pass\n")
    path = os.pathsep.join([str(live_folder()), str(copy.checkout)])
    copy.run("test_it.py", extra={"PYTHONPATH": path})
    assert [line["modules"] for line in copy.told() if line["kind"] == "foreign"] == [["product"]]


def test_a_version_that_a_build_wrote_into_the_checkout_is_not_what_is_tested(copy: Copy) -> None:
    for name, content in (("_version.py", "V = 1\n"), ("parser.py", "# This file is generated.\n"), ("real.py", "")):
        (copy.checkout / name).write_text(content)
    copy.write("test_it.py", "import _version, parser, real\n\n\ndef test_passes():\n    pass\n")
    path = os.pathsep.join([str(live_folder()), str(copy.checkout)])
    copy.run("test_it.py", extra={"PYTHONPATH": path})
    assert [line["modules"] for line in copy.told() if line["kind"] == "foreign"] == [["real"]]


def test_what_a_test_uses_is_recorded_in_its_first_run(copy: Copy) -> None:
    copy.write("data/words.txt", "a b\n")
    copy.write("product.py", "def used():\n    return open('data/words.txt').read()\n\n\ndef unused():\n    pass\n")
    copy.write("test_it.py", "import product\n\n\ndef test_passes():\n    product.used()\n")
    copy.run("test_it.py", extra={"SWARM_USED": "1"})
    path = copy.state / "plugin/swarm/used.json"
    used = json.loads(path.read_text())
    assert (used["outcome"], used["has_programs"]) == ("passed", False)
    assert used["functions"] == {"product.py": [1], "test_it.py": [4]}
    assert set(used["loaded"]) >= {"product.py", "test_it.py"}
    assert "data/words.txt" in used["opened"]
    copy.write("product.py", "def used():\n    import subprocess\n    subprocess.run('true')\n")
    copy.run("test_it.py", extra={"SWARM_USED": "1"})
    assert json.loads(path.read_text()) == used
    path.unlink()
    copy.run("test_it.py", extra={"SWARM_USED": "1"})
    assert json.loads(path.read_text())["has_programs"]


def test_modules_of_the_copy_are_not_foreign(copy: Copy) -> None:
    (copy.checkout / "product.py").write_text("")
    copy.write("product.py", "")
    copy.write("test_it.py", "import product\n\n\ndef test_passes():\n    pass\n")
    path = os.pathsep.join([str(live_folder()), str(copy.copy), str(copy.checkout)])
    copy.run("test_it.py", extra={"PYTHONPATH": path})
    assert [line["kind"] for line in copy.told()] == ["start", "finish"]


@pytest.mark.parametrize(
    "broken",
    [
        {"SWARM_TASK": "/nowhere/task.json"},
        {"SWARM_TASK": os.devnull},
        {"MNGR_AGENT_STATE_DIR": "/proc/nowhere"},
        {"SWARM_TASK": ""},
        {"SWARM_COLLECT": "/nowhere/collected.json"},
    ],
)
def test_whatever_is_wrong_with_it_the_run_goes_on(copy: Copy, broken: dict[str, str]) -> None:
    done = copy.run("test_it.py::test_passes", extra=broken)
    assert done.returncode == 0
    assert "1 passed" in done.stdout
    assert copy.told() == []


def test_what_is_collected_is_written_with_every_id_as_it_is(copy: Copy, tmp_path: Path) -> None:
    target = tmp_path / "collected.json"
    copy.write("pytest.ini", "[pytest]\naddopts = -q -p no:terminal\n")
    copy.run("--collect-only", extra={"SWARM_COLLECT": str(target), "SWARM_TASK": ""})
    content = json.loads(target.read_text())
    ids = [item["id"] for item in content["items"]]
    assert ids[0] == "test_it.py::test_passes"
    assert ids[-4:] == [f"test_it.py::test_named[{name}]" for name in ("a/b", "[x]", "::", "\\xfc")]
    assert content["items"][1]["line"] == 8
    assert content["errors"] == []
    assert copy.told() == []


def test_plugins_that_write_beside_the_tests_wherever_they_are_loaded_write_nothing_when_only_collecting() -> None:
    options = SimpleNamespace(mtr_none=False, profile=True, profile_svg=False, xmlpath="report.xml")
    write_no_reports(SimpleNamespace(option=options, pluginmanager=pytest.PytestPluginManager()), "/nowhere/target")
    assert (options.mtr_none, options.profile, options.profile_svg, options.xmlpath) == (True, False, False, None)
