"""The fixture in real pytest runs of a separate project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from swarm_tui.adapters.processes.environment import scrubbed_environment
from tests.git_project import PYTEST_INI

pytestmark = pytest.mark.slow

README_EXAMPLE = '''
from swarm_tui.e2e import E2eSession, expect

def test_help_succeeds(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # see the other commands
        mytool --help
    """)
    result = e2e.run("mytool --help", comment="see the other commands")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("Usage")
'''

FAILING = """
def test_fails(e2e):
    e2e.run("echo out; echo bad >&2; sleep 1004 >/dev/null 2>&1 &", comment="look here")
    assert 1 == 2
"""

RunPytest = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run_pytest(tmp_path: Path) -> RunPytest:
    """Run pytest on a test file in a project with a tool on PATH."""
    tool = tmp_path / "bin" / "mytool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho Usage: mytool\n")
    tool.chmod(0o755)
    (tmp_path / "pytest.ini").write_text(PYTEST_INI)
    environment = scrubbed_environment() | {"PATH": f"{tool.parent}{os.pathsep}{os.environ['PATH']}"}

    def run(source: str, *options: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_it.py").write_text(source)
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
        return subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run


def artifacts(project: Path) -> list[str]:
    root = project / ".test_output" / "e2e"
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_documented_example_works(run_pytest: RunPytest, tmp_path: Path) -> None:
    finished = run_pytest(README_EXAMPLE, "--swarm-e2e-run-name", "first")
    assert finished.returncode == 0, finished.stdout
    folder = tmp_path / ".test_output/e2e/first/test_it.test_help_succeeds/try_1"
    assert (
        folder / "transcript.txt"
    ).read_text() == "# see the other commands\n$ mytool --help\n  Usage: mytool\n? 0\n"
    assert (folder / "tutorial_block.txt").read_text() == "# see the other commands\nmytool --help\n"
    assert json.loads((folder / "result.json").read_text()) == {
        "test": "test_it.py::test_help_succeeds",
        "has_failed": False,
    }
    assert (tmp_path / ".test_output/.gitignore").read_text() == "*\n"


def test_citation_in_docstring_is_kept(run_pytest: RunPytest, tmp_path: Path) -> None:
    source = 'def test_a(e2e):\n    """It helps.\n\n    Tutorial block:\n        # see\n        mytool x\n    """\n'
    assert run_pytest(source).returncode == 0
    (block,) = (tmp_path / ".test_output").rglob("tutorial_block.txt")
    assert block.read_text() == "# see\nmytool x\n"


def test_each_run_creates_new_try(run_pytest: RunPytest, tmp_path: Path) -> None:
    for _ in range(2):
        run_pytest(README_EXAMPLE, "--swarm-e2e-run-name", "same")
    tries = {path.split("/")[2] for path in artifacts(tmp_path)}
    assert tries == {"try_1", "try_2"}


def test_failure_shows_transcript_and_artifacts(run_pytest: RunPytest, tmp_path: Path) -> None:
    finished = run_pytest(FAILING)
    assert finished.returncode == 1
    assert "# look here\n$ echo out; echo bad >&2; sleep 1004 >/dev/null 2>&1 &\n  out\n! bad\n? 0\n" in finished.stdout
    (transcript,) = (tmp_path / ".test_output").rglob("transcript.txt")
    assert f"artifacts: {transcript.parent}" in finished.stdout
    assert "# killed after the test: sleep 1004" in transcript.read_text()


@pytest.mark.parametrize(("when", "kept"), [("always", 2), ("on-failure", 1), ("never", 0)])
def test_artifacts_option(run_pytest: RunPytest, tmp_path: Path, when: str, kept: int) -> None:
    run_pytest(README_EXAMPLE + FAILING, "--swarm-e2e-artifacts", when)
    assert len([path for path in artifacts(tmp_path) if path.endswith("transcript.txt")]) == kept


def test_kept_environment_can_be_entered_and_removed(run_pytest: RunPytest, tmp_path: Path) -> None:
    finished = run_pytest(README_EXAMPLE + FAILING, "--swarm-e2e-keep-env", "on-failure")
    (line,) = (line for line in finished.stdout.splitlines() if line.startswith("environment kept: "))
    enter = Path(line.split()[-1])
    inside = subprocess.run(["sh", "-c", f". {enter}; pwd; echo $HOME"], capture_output=True, text=True, check=True)
    assert inside.stdout == f"{enter.parent}/work\n{enter.parent}/home\n"
    listing = ["ps", "axeww", "-o", "command="]
    assert f"SWARM_E2E_SESSION={enter.parent.name}" in subprocess.run(listing, capture_output=True, text=True).stdout
    subprocess.run(["sh", str(enter.with_name("remove.sh"))], check=True)
    assert not enter.parent.exists()
    assert (
        f"SWARM_E2E_SESSION={enter.parent.name}" not in subprocess.run(listing, capture_output=True, text=True).stdout
    )


@pytest.mark.parametrize("options", [[], ["-n", "1"]])
def test_summary_lists_kept_environments(run_pytest: RunPytest, options: list[str]) -> None:
    finished = run_pytest(README_EXAMPLE, "--swarm-e2e-keep-env", "always", *options)
    (line,) = (line for line in finished.stdout.splitlines() if line.startswith("test_it.py::test_help_succeeds: "))
    remove = line.split("`")[3]
    assert subprocess.run(remove, shell=True, check=False).returncode == 0
    assert not Path(remove.split()[1]).parent.exists()


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden", "a\nb"])
def test_invalid_run_name_is_refused(run_pytest: RunPytest, name: str) -> None:
    finished = run_pytest(README_EXAMPLE, f"--swarm-e2e-run-name={name}")
    assert finished.returncode == 4
    assert "is not a valid folder name" in finished.stderr


def test_parallel_workers_share_run_name(run_pytest: RunPytest, tmp_path: Path) -> None:
    many = "import pytest\n@pytest.mark.parametrize('n', range(6))\ndef test_many(e2e, n):\n    e2e.run('sleep 0.1')\n"
    assert run_pytest(many, "-n", "3").returncode == 0
    paths = artifacts(tmp_path)
    assert len({path.split("/")[0] for path in paths}) == 1
    assert len({path.split("/")[1] for path in paths}) == 6


def test_unusual_node_ids_get_safe_folders(run_pytest: RunPytest, tmp_path: Path) -> None:
    odd = "import pytest\n@pytest.mark.parametrize('n', ['../../x', 'a b', 'x' * 300])\ndef test_odd(e2e, n): ...\n"
    assert run_pytest(odd, "--swarm-e2e-run-name", "r").returncode == 0
    names = [path.split("/")[1] for path in artifacts(tmp_path)]
    assert len(set(names)) == 3
    assert all(len(name) <= 150 and name.startswith("test_it.test_odd") for name in names)


def test_unwritable_artifacts_do_not_fail_tests(run_pytest: RunPytest, tmp_path: Path) -> None:
    (tmp_path / ".test_output").write_text("in the way")
    finished = run_pytest(README_EXAMPLE)
    assert finished.returncode == 0
    assert "the artifacts of the e2e tests are not kept" in finished.stdout


def test_unused_plugin_imports_nothing(run_pytest: RunPytest, tmp_path: Path) -> None:
    source = """
import sys
def test_nothing_is_loaded():
    assert sorted(name for name in sys.modules if name.startswith("swarm_tui")) == [
        "swarm_tui", "swarm_tui.e2e", "swarm_tui.e2e.plugin"
    ]
"""
    finished = run_pytest(source)
    assert finished.returncode == 0, finished.stdout
    assert not (tmp_path / ".test_output").exists()


def test_project_fixture_e2e_takes_precedence(run_pytest: RunPytest) -> None:
    own = (
        "import pytest\n@pytest.fixture\ndef e2e():\n    return 'ours'\ndef test_own(e2e):\n    assert e2e == 'other'\n"
    )
    finished = run_pytest(own)
    assert "1 failed" in finished.stdout
    assert "INTERNALERROR" not in finished.stdout


def test_artifacts_include_terminal_recordings(run_pytest: RunPytest, tmp_path: Path) -> None:
    source = "def test_ui(e2e):\n    e2e.tmux('echo hello').wait_for_exit()\n"
    assert run_pytest(source).returncode == 0
    (recording,) = (tmp_path / ".test_output").rglob("screen-1.cast")
    assert "hello" in recording.read_text()
