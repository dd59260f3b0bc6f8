"""The project's Python is found, including those of management tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_tui.errors import UsageError
from swarm_tui.testing.python import find_pythons, named_python
from tests.programs import make_program

VARIABLES = ("VIRTUAL_ENV", "CONDA_PREFIX", "UV_PROJECT_ENVIRONMENT")


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'tools'}:/usr/bin:/bin")
    (tmp_path / "project" / "part").mkdir(parents=True)
    return tmp_path / "project"


def make_environment(folder: Path, *, has_pytest: bool = True) -> str:
    python = make_program(folder / "bin" / "python", "exit 0")
    if has_pytest:
        (folder / "lib/python3.12/site-packages/pytest").mkdir(parents=True)
        (folder / "lib/python3.12/site-packages/pytest/__init__.py").write_text("")
    return str(python)


async def first(top: Path, folder: Path | None = None) -> str:
    found = [path async for path in find_pythons(top, folder or top)]
    return found[0]


@pytest.mark.parametrize("name", [".venv", "venv", ".env", "env"])
async def test_environment_in_project_is_used(top: Path, name: str) -> None:
    python = make_environment(top / name, has_pytest=False)
    assert [path async for path in find_pythons(top, top / "part")] == [python]


async def test_nearest_environment_is_used(top: Path) -> None:
    make_environment(top / ".venv")
    python = make_environment(top / "part" / ".venv")
    assert await first(top, top / "part") == python


async def test_environment_of_shell_pdm_or_uv_is_used(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    active = make_environment(top.parent / "active")
    monkeypatch.setenv("VIRTUAL_ENV", str(top.parent / "active"))
    assert await first(top) == active
    chosen = make_environment(top.parent / "chosen")
    (top / ".pdm-python").write_text(chosen + "\n")
    assert await first(top) == chosen
    named = make_environment(top / "made-by-uv")
    monkeypatch.setenv("UV_PROJECT_ENVIRONMENT", "made-by-uv")
    assert await first(top) == named


@pytest.mark.parametrize(
    ("tool", "file", "content", "is_python"),
    [
        ("poetry", "pyproject.toml", "[tool.poetry]\nname = 'x'\n", True),
        ("hatch", "pyproject.toml", "[tool.hatch.envs.hatch-test]\n", False),
        ("hatch", "hatch.toml", "", False),
        ("pipenv", "Pipfile", "", True),
        ("pdm", "pdm.lock", "", True),
    ],
)
async def test_environment_of_tool_is_used(top: Path, tool: str, file: str, content: str, is_python: bool) -> None:
    (top / file).write_text(content)
    python = make_environment(top.parent / "elsewhere")
    answer = python if is_python else top.parent / "elsewhere"
    make_program(top.parent / "tools" / tool, f"echo 'a warning' >&2\necho {answer}")
    assert await first(top) == python


async def test_invalid_answer_of_tool_is_ignored(top: Path) -> None:
    (top / "Pipfile").write_text("")
    (top / "poetry.lock").write_text("")
    make_program(top.parent / "tools" / "pipenv", "echo /nowhere/python")
    make_program(top.parent / "tools" / "poetry", "echo /bin/sh; exit 1")
    make_program(top.parent / "tools" / "python3", "")
    assert await first(top) == str(top.parent / "tools" / "python3")


async def test_newest_tox_environment_with_pytest_is_used(top: Path) -> None:
    make_environment(top / ".tox" / "lint", has_pytest=False)
    python = make_environment(top / ".tox" / "py312")
    assert await first(top) == python


def test_relative_python_is_in_copy(top: Path) -> None:
    python = make_environment(top / ".venv")
    assert named_python(".venv/bin/python", top, top) == (python, ".venv/bin/python")
    assert named_python("../.venv/bin/python", top / "part", top) == (python, ".venv/bin/python")
    assert named_python(python, top, top) == (python, "")
    outside = make_environment(top.parent / "outside")
    assert named_python("../outside/bin/python", top, top) == (outside, "")
    with pytest.raises(UsageError, match="is not a program"):
        named_python(".venv/bin/pypy", top, top)
