"""Tests are collected with the project's interpreter and settings, and selected."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.pytest import Collected
from swarm_tui.errors import AdapterError, ProgramMissing, SwarmError, UsageError
from swarm_tui.model.options import RunOptions
from swarm_tui.sweep.collect import Found, collect_tests, find_tests, options_of
from swarm_tui.testing.python import import_roots
from tests.git_project import PYTEST_INI, GitProject, file_contents

DEEP = """\
import pytest


@pytest.mark.parametrize('x', ['$(touch x)', '[/red]', 'a\\nb', 'ü'])
class TestIt:
    def test_named(self, x): pass
"""


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    project = GitProject(tmp_path / "project")
    project.commit(
        "Begin",
        {
            "pytest.ini": f"{PYTEST_INI} -q -p no:terminal\n",
            "tests/test_a.py": "def test_good(): pass\n\n\ndef test_bad(): assert 0\n",
            "tests/deep/test_b.py": DEEP,
        },
    )
    return project


async def find(project: GitProject, *arguments: str, folder: str = "", **selection: object) -> Found:
    return await find_tests(
        Repository.open(project.root),
        project.root / folder,
        RunOptions(python=sys.executable, pytest_arguments=arguments, **selection),  # type: ignore[arg-type]
        lambda _: None,
    )


async def test_collected_tests_are_counted_during_collection(project: GitProject) -> None:
    """The last file waits until the tests of the others have been counted."""
    told = project.root.parent / "told"
    wait = f"import os, time\nwhile not os.path.exists({str(told)!r}): time.sleep(0.01)\n"
    project.commit("Wait", {"tests/test_z.py": wait + "def test_last(): pass\n"})
    counts: list[int] = []

    def tell(number: int) -> None:
        counts.append(number)
        if number == 6:
            told.touch()

    _, collected = await collect_tests(Repository.open(project.root), project.root, sys.executable, [], tell)
    assert 6 in counts
    assert len(collected.tests) == 7
    assert counts[-1] <= 7


async def test_ids_are_found_with_file_and_line(project: GitProject) -> None:
    found = await find(project)
    assert found.tests[0] == ("tests/deep/test_b.py::TestIt::test_named[$(touch x)]", "tests/deep/test_b.py", 6)
    ids = [test for test, _, _ in found.tests]
    assert ids[1:4] == [f"tests/deep/test_b.py::TestIt::test_named[{name}]" for name in ("[/red]", "a\\nb", "\\xfc")]
    assert found.tests[-1] == ("tests/test_a.py::test_bad", "tests/test_a.py", 4)
    assert (found.folder, found.root, found.run_options) == ("", "", ())


async def test_thousands_of_tests_are_collected(project: GitProject) -> None:
    project.write(
        {"tests/test_c.py": "import pytest\n\n\n@pytest.mark.parametrize('x', range(5000))\ndef test_c(x): pass\n"}
    )
    assert len((await find(project, "tests/test_c.py")).tests) == 5000


async def test_run_options_are_arguments_without_files(project: GitProject) -> None:
    found = await find(project, "tests/test_a.py", "-k", "good", "--tb=short")
    assert [test for test, _, _ in found.tests] == ["tests/test_a.py::test_good"]
    assert found.run_options == ("-k", "good", "--tb=short")


async def test_ids_in_subfolder_start_at_rootdir(project: GitProject) -> None:
    found = await find(project, "deep", folder="tests")
    assert found.tests[0][1] == "tests/deep/test_b.py"
    assert (found.folder, found.root) == ("tests", "")


async def test_changed_since_selects_changed_files(project: GitProject) -> None:
    base = project.git("rev-parse", "HEAD")
    with pytest.raises(UsageError, match="no test file has changed since"):
        await find(project, changed_since=base)
    project.commit("Change", {"tests/test_a.py": "def test_good(): pass\n"})
    assert [test for test, _, _ in (await find(project, changed_since=base)).tests] == ["tests/test_a.py::test_good"]
    project.commit("Fixtures", {"tests/deep/conftest.py": ""})
    assert len((await find(project, changed_since="HEAD~1")).tests) == 4


async def test_file_that_cannot_be_imported_is_left_out(project: GitProject) -> None:
    project.write({"tests/test_c.py": "import no_such_module\n", "tests/test_d.py": "def broken(:\n"})
    found = await find(project)
    assert len(found.tests) == 6
    assert found.left_out == (
        "tests/test_c.py cannot be collected: ModuleNotFoundError: No module named 'no_such_module'",
        "tests/test_d.py cannot be collected: SyntaxError: invalid syntax",
    )


async def test_first_exception_of_a_chain_is_reported(project: GitProject) -> None:
    chain = "try:\n    import no_such_module\nexcept ImportError:\n    raise RuntimeError('what follows')\n"
    project.write({"tests/test_c.py": chain})
    reason = "ModuleNotFoundError: No module named 'no_such_module'"
    assert (await find(project)).left_out == (f"tests/test_c.py cannot be collected: {reason}",)


async def test_pytest_is_quoted_if_nothing_can_be_imported(project: GitProject) -> None:
    project.write({"tests/test_c.py": "import no_such_module\n"})
    with pytest.raises(SwarmError) as caught:
        await find(project, "tests/test_c.py")
    assert caught.value.exit_code == 1
    assert "1 error" in str(caught.value)
    assert "No module named 'no_such_module'" in str(caught.value)
    project.write({"pytest.ini": PYTEST_INI})
    with pytest.raises(SwarmError, match=r"ERROR collecting tests/test_c\.py"):
        await find(project, "tests/test_c.py")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--no-such-option",), "unrecognized arguments"),
        (("nowhere.py",), "not found"),
        (("-k", "nothing"), "no tests"),
    ],
)
async def test_invalid_pytest_arguments_are_usage_errors(
    project: GitProject, arguments: tuple[str, ...], text: str
) -> None:
    with pytest.raises(UsageError, match=text):
        await find(project, *arguments)


async def test_python_without_pytest_is_reported(project: GitProject, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(ProgramMissing, match="pytest is not installed"):
        await find_tests(Repository.open(project.root), project.root, RunOptions(python=str(bare)), lambda _: None)


async def test_venv_of_project_is_used(project: GitProject) -> None:
    python = project.root / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    found = await find_tests(Repository.open(project.root), project.root, RunOptions(), lambda _: None)
    assert found.python == str(python)


async def test_checkout_paths_in_options_become_relative(project: GitProject) -> None:
    top = project.root
    found = await find(
        project, f"--rootdir={top}", f"--ignore={top}/other", f"--deselect={top}-x", f"{top}/tests", folder="tests"
    )
    assert found.run_options == ("--rootdir=..", "--ignore=../other", f"--deselect={top}-x")


async def test_test_listed_twice_is_swept_once(project: GitProject) -> None:
    found = await find(project, "--keep-duplicates", "tests/test_a.py", "tests/test_a.py")
    assert [test for test, _, _ in found.tests] == ["tests/test_a.py::test_good", "tests/test_a.py::test_bad"]


async def test_tests_outside_of_rootdir_are_refused(tmp_path: Path) -> None:
    project = GitProject(tmp_path)
    for name in "ab":
        project.write({f"{name}/pytest.ini": PYTEST_INI, f"{name}/test_{name}.py": "def test_it(): pass\n"})
    project.commit("Begin")
    with pytest.raises(UsageError, match=r"b/test_b\.py is outside of it \(add --rootdir=\. after --"):
        await find(project, "a", "b")
    found = await find(project, "--rootdir=.", "a", "b")
    assert [test for test, _, _ in found.tests] == ["a/test_a.py::test_it", "b/test_b.py::test_it"]


async def test_conftest_that_cannot_be_imported_is_named(project: GitProject) -> None:
    project.write({"conftest.py": "import no_such_module\n"})
    with pytest.raises(AdapterError, match=r"cannot import .*conftest\.py: .*No module named 'no_such_module'"):
        await find(project)


WRITES_WHEN_IMPORTED = """
import pathlib
HERE = pathlib.Path(__file__).resolve().parent
(HERE / "tests/keys.txt").write_text("new")
(HERE / "made.txt").touch()
"""


async def test_conftest_that_writes_files_leaves_checkout_unchanged(project: GitProject) -> None:
    project.commit("Write", {"conftest.py": WRITES_WHEN_IMPORTED, "tests/keys.txt": "old", ".gitignore": "made.txt"})
    before = file_contents(project.root)
    found = await find(project)
    assert len(found.tests) == 6
    assert file_contents(project.root) == before


async def test_errors_name_files_of_the_checkout(project: GitProject) -> None:
    project.write({"conftest.py": "raise RuntimeError(__file__)\n"})
    with pytest.raises(AdapterError) as caught:
        await find(project)
    assert str(project.root / "conftest.py") in caught.value.message
    assert "swarm-collect-" not in str(caught.value)


@pytest.mark.parametrize(
    "word", ["{top}/tests/test_a.py", "../project/tests/test_a.py::test_good", "./tests/test_a.py"]
)
async def test_files_can_be_selected_by_any_path(project: GitProject, word: str) -> None:
    found = await find(project, word.format(top=project.root), "--tb=short")
    assert found.tests[0] == ("tests/test_a.py::test_good", "tests/test_a.py", 1)
    assert found.run_options == ("--tb=short",)


async def test_file_of_another_project_is_refused(project: GitProject, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "pytest.ini").write_text("[pytest]\naddopts = --option-of-another-project\n")
    (other / "test_other.py").write_text("def test_it(): pass\n")
    with pytest.raises(UsageError, match=r"test_other\.py is outside of the repository"):
        await find(project, "../other/test_other.py")
    (other / "pytest.ini").write_text(PYTEST_INI)
    with pytest.raises(UsageError, match="outside of the repository"):
        await find(project, str(other / "test_other.py"))
    (other / "conftest.py").write_text("import a_module_of_another_project\n")
    with pytest.raises(UsageError, match=r"test_other\.py is outside of the repository"):
        await find(project, "../other/test_other.py")


async def test_bare_repository_is_refused(tmp_path: Path) -> None:
    project = GitProject(tmp_path / "bare", "--bare")
    with pytest.raises(UsageError, match="is a bare repository, which has no files to test"):
        await find(project)


def test_files_in_arguments_are_not_options() -> None:
    assert options_of(["-x", "tests", "-k", "tests", "--", "b.py"], ["tests", "b.py"]) == ("-x", "-k", "tests")


def collected(
    root: Path, startup: list[str], path: list[str], loaded: dict[str, str], installed: tuple[str, ...] = ()
) -> Collected:
    return Collected(
        root=root,
        tests=(),
        errors=(),
        single_run=(),
        positional=(),
        outside=(),
        startup_path=("", *startup),
        path=(*startup, *path),
        loaded=loaded,
        compiled={},
        installed=frozenset(installed),
        installed_compiled=frozenset(),
        prefix=str(root / ".venv"),
        python_version="3.11",
        text="",
    )


def test_import_roots_include_editable_install(tmp_path: Path) -> None:
    inside, venv = str(tmp_path / "src"), str(tmp_path / ".venv/lib/python3.11/site-packages")
    found = collected(tmp_path, [inside, venv, "/usr/lib/python3"], [str(tmp_path / "tests")], {})
    assert import_roots(found, tmp_path) == ("src",)


def test_import_roots_include_import_hooks(tmp_path: Path) -> None:
    found = collected(
        tmp_path, [], [str(tmp_path / "tests")], {"pkg": str(tmp_path), "test_x": str(tmp_path / "tests")}
    )
    assert import_roots(found, tmp_path) == (".",)
