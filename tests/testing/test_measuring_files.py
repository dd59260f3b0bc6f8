"""Changes that can tamper with test results, and changes that cannot."""

from __future__ import annotations

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.history import read_tree_changes
from swarm_tui.testing.measuring_files import ChangedFiles, why_not_measured
from tests.git_project import GitProject

PYPROJECT = '[project]\nname = "shop"\nversion = "1"\n'
PROGRAM = "import os\n\n\ndef total(items): return sum(items)\n"
BASE = {
    "pyproject.toml": PYPROJECT,
    "setup.cfg": "[metadata]\nname = shop\n",
    "tox.ini": "[tox]\nenvlist = py\n",
    "shop.py": PROGRAM,
    "hooks.py": "def pytest_configure(config): pass\n",
    "tests/conftest.py": "import pytest\n",
    "tests/test_shop.py": "def test_total(): pass\n",
    "large.py": "# a\n" * 400_000,
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> GitProject:
    project = GitProject(tmp_path_factory.mktemp("project"))
    project.commit("Begin", BASE)
    return project


Files = dict[str, str | bytes | None]


def doubts(project: GitProject, files: Files, *, is_program_fix: bool = True) -> tuple[str, ...]:
    base = project.git("rev-parse", "HEAD").strip()
    try:
        project.commit("Change", files)
        repository = Repository.open(project.root)
        changes = read_tree_changes(repository, f"{base}^{{tree}}", repository.tree_of("HEAD"))
        (found,) = why_not_measured(repository, [ChangedFiles(changes, is_program_fix)])
    finally:
        project.git("reset", "--quiet", "--hard", base)
    return found


@pytest.mark.parametrize(
    ("path", "content", "doubt"),
    [
        ("conftest.py", "", "changes conftest.py"),
        ("tests/conftest.py", "import pytest, os\n", "changes tests/conftest.py"),
        ("tests/conftest.py", None, "changes tests/conftest.py"),
        ("pytest.ini", "[pytest]\n", "changes pytest.ini"),
        (".pytest.toml", "", "changes .pytest.toml"),
        ("pyproject.toml", PYPROJECT + "[tool.pytest.ini_options]\naddopts = '-x'\n", "changes pytest's settings in"),
        ("pyproject.toml", PYPROJECT + "[project.entry-points.pytest11]\na = 'shop'\n", "changes pytest's settings in"),
        ("pyproject.toml", "]", "changes pytest's settings in pyproject.toml"),
        ("setup.cfg", "[tool:pytest]\naddopts = -x\n", "changes pytest's settings in setup.cfg"),
        ("setup.cfg", "[options.entry_points]\npytest11 = a = shop\n", "changes pytest's settings in setup.cfg"),
        ("tox.ini", "[pytest]\naddopts = -x\n", "changes pytest's settings in tox.ini"),
        ("setup.py", 'setup(entry_points={"pytest11": ["a = shop"]})\n', "declares a pytest plugin in setup.py"),
        ("a-1.dist-info/entry_points.txt", "[pytest11]\na = shop\n", "declares a pytest plugin in a-1.dist-info/"),
        ("sitecustomize.py", "", "changes sitecustomize.py, which is loaded before the tests"),
        ("pytest.py", "", "changes pytest.py, which is loaded before the tests"),
        ("src/_pytest/runner.py", "", "changes src/_pytest/runner.py, which is loaded before the tests"),
        ("swarm_live/__init__.py", "", "changes swarm_live/__init__.py, which is loaded before the tests"),
        ("plug.py", "def pytest_runtest_makereport(item, call): pass\n", "adds pytest_runtest_makereport in plug.py"),
        ("plug.py", "globals()['pytest_runtest_call'] = print\n", "adds pytest_runtest_call in plug.py"),
        ("tests/test_shop.py", "pytest_plugins = ['plug']\n", "adds pytest_plugins in tests/test_shop.py"),
        (
            "shop.py",
            PROGRAM + "if 'PYTEST_CURRENT_TEST' in os.environ: pass\n",
            "mentions PYTEST_CURRENT_TEST in shop.py",
        ),
        ("shop.py", PROGRAM + "os._exit(0)\n", "mentions os._exit in shop.py"),
        ("shop.py", "import sys\nif 'pytest' in sys.modules: pass\n", "mentions pytest in shop.py"),
        ("shop.py", "import _pytest.runner\n", "mentions _pytest in shop.py"),
        ("shop.py", "import gc\nFOUND = gc.get_objects()\n", "mentions gc.get_objects in shop.py"),
        ("shop.py", "import sys\nCONFIG = sys._getframe(9).f_locals\n", "mentions f_locals in shop.py"),
        ("large.py", "# a\n" * 400_001, "changes large.py, which is too large to check"),
    ],
)
def test_change_that_can_tamper_is_named(project: GitProject, path: str, content: str | None, doubt: str) -> None:
    found = doubts(project, {path: content})
    assert len(found) == 1
    assert found[0].startswith(doubt)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("shop.py", PROGRAM.replace("sum(items)", "sum(items, 0)")),
        ("shop.py", None),
        ("pyproject.toml", PYPROJECT.replace('"1"', '"2"')),
        ("setup.cfg", "[metadata]\nname = shops\n"),
        ("tox.ini", "[tox]\nenvlist = py311\n"),
        ("hooks.py", "def pytest_configure(config): pass\nVALUE = 1\n"),
        ("hooks.py", ""),
        ("tests/test_shop.py", "import os, pytest\n\n\ndef test_total(): assert os.environ['PYTEST_CURRENT_TEST']\n"),
        ("docs/pytest.md", "conftest.py\n"),
        ("shop.bin", b"\0\1"),
    ],
)
def test_ordinary_change_is_measured(project: GitProject, path: str, content: str | bytes | None) -> None:
    assert doubts(project, {path: content}) == ()


def test_test_commit_may_change_fixtures_but_not_hooks(project: GitProject) -> None:
    fixture = "import pytest\n\n\n@pytest.fixture\ndef shop(): return 1\n"
    assert doubts(project, {"tests/conftest.py": fixture}, is_program_fix=False) == ()
    hook = fixture + "\n\ndef pytest_runtest_makereport(item, call): pass\n"
    found = doubts(project, {"tests/conftest.py": hook}, is_program_fix=False)
    assert found == ("adds pytest_runtest_makereport in tests/conftest.py",)
