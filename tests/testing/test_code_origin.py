"""Tests in a copy import the copy's own code, or the project is refused."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.errors import UsageError
from swarm_tui.model.options import RunOptions
from swarm_tui.sweep.collect import Found, find_tests
from tests.git_project import PYTEST_INI, GitProject
from tests.sweep.venv import make_venv, packages_of

pytestmark = pytest.mark.slow


async def find(project: GitProject, folder: str = "", python: str = sys.executable, setup: str | None = None) -> Found:
    return await find_tests(
        Repository.open(project.root),
        project.root / folder,
        RunOptions(python=python, setup=setup),
        lambda _: None,
    )


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    return make_venv(tmp_path / "venv")


def install_by_hook(venv: Path, mapping: dict[str, str]) -> None:
    """Install as setuptools does for editable installs: a finder with the path of each package and module."""
    (packages_of(venv) / "__editable___finder.py").write_text(
        f"""import sys
from importlib.util import spec_from_file_location
MAPPING = {mapping!r}
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in MAPPING:
            where = MAPPING[name]
            if where.endswith(".so"):
                return spec_from_file_location(name, where)
            return spec_from_file_location(name, where + "/__init__.py", submodule_search_locations=[where])
def install():
    sys.meta_path.append(Finder)
"""
    )
    (packages_of(venv) / "__editable__.pth").write_text("import __editable___finder; __editable___finder.install()\n")


async def test_packages_of_monorepo_are_imported_from_copy(tmp_path: Path, venv: Path) -> None:
    project = GitProject(tmp_path / "mono")
    project.commit(
        "Begin",
        {
            "libs/core/src/core/__init__.py": "",
            "apps/web/web/__init__.py": "import core\n",
            "apps/web/tests/test_web.py": "import web\ndef test_web(): pass\n",
            "apps/web/pytest.ini": PYTEST_INI,
        },
    )
    install_by_hook(venv, {"core": str(project.root / "libs/core/src/core"), "web": str(project.root / "apps/web/web")})
    found = await find(project, "apps/web", str(venv / "bin/python"))
    assert found.root == "apps/web"
    assert "libs/core/src" in found.import_roots


async def test_namespace_packages_are_imported_from_copy(tmp_path: Path, venv: Path) -> None:
    project = GitProject(tmp_path / "spaces")
    project.commit(
        "Begin",
        {
            "one/space/first.py": "",
            "two/space/second/__init__.py": "",
            "tests/test_both.py": "import space.first, space.second\ndef test_both(): pass\n",
            "pytest.ini": PYTEST_INI,
        },
    )
    (packages_of(venv) / "spaces.pth").write_text(f"{project.root}/one\n{project.root}/two\n")
    assert set((await find(project, python=str(venv / "bin/python"))).import_roots) == {"one", "two"}


async def test_installed_packages_are_imported_from_copy(tmp_path: Path, venv: Path) -> None:
    project = GitProject(tmp_path / "installed")
    test = "import thing\ndef test_it(): pass\n"
    project.commit("Begin", {"src/thing/__init__.py": "", "tests/test_it.py": test, "pytest.ini": PYTEST_INI})
    (packages_of(venv) / "thing").mkdir()
    (packages_of(venv) / "thing/__init__.py").write_text("")
    assert (await find(project, python=str(venv / "bin/python"))).import_roots == ("src",)


async def test_package_with_aliased_dependencies_is_not_compiled(tmp_path: Path, venv: Path) -> None:
    """requests puts the modules of its dependencies into sys.modules as requests.packages.*; one has C code."""
    project = GitProject(tmp_path / "aliases")
    compiled = next(Path(os.__file__).parent.glob("lib-dynload/_heapq.*.so"))
    aliases = "import sys, quick._heapq\nsys.modules['thing.packages.quick'] = sys.modules['quick._heapq']\n"
    test = "import thing\ndef test_it(): pass\n"
    project.commit("Begin", {"src/thing/__init__.py": aliases, "tests/test_it.py": test, "pytest.ini": PYTEST_INI})
    for name, content in {"thing": aliases, "quick": ""}.items():
        (packages_of(venv) / name).mkdir()
        (packages_of(venv) / name / "__init__.py").write_text(content)
    (packages_of(venv) / "quick" / compiled.name).write_bytes(compiled.read_bytes())
    assert (await find(project, python=str(venv / "bin/python"))).import_roots == ("src",)


async def test_modules_compiled_only_in_checkout_are_refused(tmp_path: Path, venv: Path) -> None:
    project = GitProject(tmp_path / "compiled")
    some_module = next(Path(os.__file__).parent.glob("lib-dynload/_heapq.*.so"))
    project.commit(
        "Begin",
        {
            "quick/__init__.py": "from quick import _heapq\n",
            "tests/test_it.py": "import quick\ndef test_it(): pass\n",
            "pytest.ini": PYTEST_INI,
            ".gitignore": "*.so\n",
        },
    )
    built = project.root / "quick" / some_module.name
    built.write_bytes(some_module.read_bytes())
    install_by_hook(venv, {"quick": str(project.root / "quick"), "quick._heapq": str(built)})
    python = str(venv / "bin/python")
    with pytest.raises(UsageError, match=r"are missing in a fresh copy: quick\._heapq"):
        await find(project, python=python)
    assert (await find(project, python=python, setup="make")).import_roots == (".",)
    project.git("add", "--force", "quick")
    project.commit("Keep what is built")
    assert (await find(project, python=python)).import_roots == (".",)


async def test_python_in_copy_requires_setup(tmp_path: Path) -> None:
    project = GitProject(tmp_path / "own")
    project.commit("Begin", {"test_it.py": "def test_it(): pass\n", "pytest.ini": PYTEST_INI, ".gitignore": ".venv\n"})
    python = project.root / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    with pytest.raises(UsageError, match=r"a fresh copy has no \.venv/bin/python"):
        await find(project, python=".venv/bin/python")
    assert (await find(project, python=".venv/bin/python", setup="uv sync")).python == ".venv/bin/python"
