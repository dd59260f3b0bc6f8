"""The live plugin in real pytest runs: it records results, and never breaks or changes a run."""

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
from swarm_tui.agents.packaged import live_folder

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
    """An agent's copy of a project whose pytest runs load the live plugin."""

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
        """Run pytest as the agent of a test does."""
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

    def recorded(self) -> list[dict[str, Any]]:
        """Return the lines that the plugin wrote."""
        path = self.state / "plugin" / "swarm" / "tries.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def tries(self) -> list[tuple[bool, str]]:
        """Return whether each try passed, and its failure line."""
        return [(line["passed"], line["failure"]) for line in self.recorded() if line["kind"] == "finish"]


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
def test_run_of_own_test_is_recorded_as_try(copy: Copy, test: str, passed: bool, failure: str) -> None:
    copy.run(f"test_it.py::{test}", test=test)
    assert copy.tries() == [(passed, failure)]
    assert [line["kind"] for line in copy.recorded()] == ["start", "finish"]


def test_run_of_all_tests_is_one_try(copy: Copy) -> None:
    copy.run(test="test_fails")
    assert len(copy.tries()) == 1
    copy.run("test_it.py::test_passes", test="test_fails")
    assert len(copy.tries()) == 1


def test_collection_only_is_not_a_try(copy: Copy) -> None:
    copy.run("--collect-only", "test_it.py::test_passes")
    assert copy.recorded() == []


def test_import_error_is_a_failed_try(copy: Copy) -> None:
    copy.write("test_it.py", "import no_such_module\n")
    copy.run("test_it.py::test_passes")
    assert copy.tries() == [(False, "error: ModuleNotFoundError: No module named 'no_such_module'")]


@pytest.mark.parametrize(
    "settings", ["-q", "-v", "-p no:terminal", "--import-mode=importlib", "--strict-markers -ra", "-c /dev/null"]
)
def test_project_options_do_not_affect_tries(copy: Copy, settings: str) -> None:
    copy.write("pytest.ini", f"[pytest]\naddopts = {settings}\n")
    copy.run("test_it.py::test_passes")
    assert copy.tries() == [(True, "")]


@pytest.mark.parametrize("options", [("-n2",), ("-n2", "--dist=loadgroup")])
def test_only_the_xdist_controller_records(copy: Copy, options: tuple[str, ...]) -> None:
    copy.write(
        "test_it.py",
        "import pytest\n\n\n@pytest.mark.xdist_group('one')\ndef test_passes():\n    pass\n\n\ndef test_b(): pass\n",
    )
    copy.run(*options)
    assert copy.tries() == [(True, "")]


@pytest.mark.parametrize("way", ["runpytest_inprocess", "runpytest_subprocess"])
def test_nested_pytest_session_is_ignored(copy: Copy, way: str) -> None:
    inner = 'def test_inner(pytester):\n    pytester.makepyfile(test_it="def test_passes(): assert 0")\n'
    copy.write("conftest.py", "pytest_plugins = ['pytester']\n")
    copy.write("test_it.py", f"{inner}    pytester.{way}()\n\n\ndef test_passes():\n    pass\n")
    copy.run("test_it.py")
    assert copy.tries() == [(True, "")]


def test_own_test_is_recognized_from_other_folders(copy: Copy) -> None:
    copy.write("sub/tests/test_deep.py", "class TestIt:\n    def test_passes(self):\n        pass\n")
    file = "sub/tests/test_deep.py"
    copy.run("tests", test="TestIt::test_passes", file=file, cwd=copy.copy / "sub")
    copy.run("sub", "--rootdir=sub/tests", test="TestIt::test_passes", file=file)
    assert copy.tries() == [(True, ""), (True, "")]


@pytest.mark.parametrize("linked", ["tests", "tests/test_it.py"])
def test_linked_test_file_keeps_pytest_name(copy: Copy, linked: str) -> None:
    target = copy.copy / "test_it.py" if linked.endswith(".py") else copy.copy
    (copy.copy / linked).parent.mkdir(exist_ok=True)
    (copy.copy / linked).symlink_to(target)
    copy.run("tests/test_it.py::test_passes", file="tests/test_it.py")
    assert copy.tries() == [(True, "")]


def test_imports_from_checkout_are_recorded(copy: Copy) -> None:
    (copy.checkout / "product.py").write_text("")
    copy.write("test_it.py", "import product\n\n\ndef test_passes():\n    pass\n")
    path = os.pathsep.join([str(live_folder()), str(copy.checkout)])
    copy.run("test_it.py", extra={"PYTHONPATH": path})
    assert [line["modules"] for line in copy.recorded() if line["kind"] == "foreign"] == [["product"]]


def test_generated_modules_of_checkout_are_ignored(copy: Copy) -> None:
    for name, content in (("_version.py", "V = 1\n"), ("parser.py", "# This file is generated.\n"), ("real.py", "")):
        (copy.checkout / name).write_text(content)
    copy.write("test_it.py", "import _version, parser, real\n\n\ndef test_passes():\n    pass\n")
    path = os.pathsep.join([str(live_folder()), str(copy.checkout)])
    copy.run("test_it.py", extra={"PYTHONPATH": path})
    assert [line["modules"] for line in copy.recorded() if line["kind"] == "foreign"] == [["real"]]


def test_used_code_is_recorded_in_first_run(copy: Copy) -> None:
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


def test_imports_from_copy_are_not_foreign(copy: Copy) -> None:
    (copy.checkout / "product.py").write_text("")
    copy.write("product.py", "")
    copy.write("test_it.py", "import product\n\n\ndef test_passes():\n    pass\n")
    path = os.pathsep.join([str(live_folder()), str(copy.copy), str(copy.checkout)])
    copy.run("test_it.py", extra={"PYTHONPATH": path})
    assert [line["kind"] for line in copy.recorded()] == ["start", "finish"]


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
def test_errors_of_plugin_do_not_stop_the_run(copy: Copy, broken: dict[str, str]) -> None:
    done = copy.run("test_it.py::test_passes", extra=broken)
    assert done.returncode == 0
    assert "1 passed" in done.stdout
    assert copy.recorded() == []


def test_collected_ids_are_written_unchanged(copy: Copy, tmp_path: Path) -> None:
    target = tmp_path / "collected.json"
    copy.write("pytest.ini", "[pytest]\naddopts = -q -p no:terminal\n")
    copy.run("--collect-only", extra={"SWARM_COLLECT": str(target), "SWARM_TASK": ""})
    content = json.loads(target.read_text())
    ids = [item["id"] for item in content["items"]]
    assert ids[0] == "test_it.py::test_passes"
    assert ids[-4:] == [f"test_it.py::test_named[{name}]" for name in ("a/b", "[x]", "::", "\\xfc")]
    assert content["items"][1]["line"] == 8
    assert content["errors"] == []
    assert copy.recorded() == []


def test_unreadable_modules_do_not_stop_the_collection(copy: Copy, tmp_path: Path) -> None:
    target = tmp_path / "collected.json"
    copy.write(
        "test_it.py",
        """import sys


class Lazy:
    def __getattr__(self, name): raise ImportError("an optional package is missing")
    __file__ = property(lambda self: 1 / 0)


sys.modules["lazy"] = sys.modules[7] = Lazy()


def test_passes(): pass
""",
    )
    copy.run("--collect-only", extra={"SWARM_COLLECT": str(target), "SWARM_TASK": ""})
    assert [item["id"] for item in json.loads(target.read_text())["items"]] == ["test_it.py::test_passes"]


def test_collection_run_writes_no_report_files() -> None:
    options = SimpleNamespace(mtr_none=False, profile=True, profile_svg=False, xmlpath="report.xml")
    write_no_reports(SimpleNamespace(option=options, pluginmanager=pytest.PytestPluginManager()), "/nowhere/target")
    assert (options.mtr_none, options.profile, options.profile_svg, options.xmlpath) == (True, False, False, None)
