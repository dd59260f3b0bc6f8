"""The search for a Python that mngr can live in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from swarm_tui.adapters.python_env import find_interpreter
from swarm_tui.errors import ProgramMissing
from tests.programs import make_program


def make_python(path: Path, version: str, *, executable: Path | None = None) -> Path:
    """Make a stand-in that says it is a Python of that version."""
    return make_program(path, f'case "$1" in -c) echo {version.replace(".", " ")} {executable or path} ;; esac')


def surroundings(folder: Path) -> dict[str, str]:
    return {"PATH": str(folder / "bin"), "HOME": str(folder)}


async def test_python_on_path_comes_first(tmp_path: Path) -> None:
    python = make_python(tmp_path / "bin" / "python3.12", "3.12.4")
    make_python(tmp_path / ".pyenv" / "versions" / "3.14.0" / "bin" / "python3", "3.14.0")
    found = await find_interpreter((3, 12), surroundings(tmp_path))
    assert (found.path, found.shown_version) == (str(python), "3.12.4")


async def test_broken_shim_falls_back_to_newest_pyenv(tmp_path: Path) -> None:
    make_program(tmp_path / "bin" / "python3.12", "echo 'pyenv: python3.12: command not found' >&2; exit 127")
    make_program(tmp_path / "bin" / "python3", "exit 127")
    for version in ("3.9.18", "3.12.1", "3.13.0"):
        make_python(tmp_path / ".pyenv" / "versions" / version / "bin" / "python3", version)
    found = await find_interpreter((3, 12), surroundings(tmp_path))
    assert found.path == str(tmp_path / ".pyenv" / "versions" / "3.13.0" / "bin" / "python3")


async def test_working_shim_is_resolved(tmp_path: Path) -> None:
    behind = tmp_path / "versions" / "python3.12"
    make_python(tmp_path / "bin" / "python3.12", "3.12.1", executable=behind)
    assert (await find_interpreter((3, 12), surroundings(tmp_path))).path == str(behind)


async def test_pyenv_root_is_honoured(tmp_path: Path) -> None:
    make_python(tmp_path / "elsewhere" / "versions" / "3.12.1" / "bin" / "python3", "3.12.1")
    given = surroundings(tmp_path) | {"PYENV_ROOT": str(tmp_path / "elsewhere")}
    assert (await find_interpreter((3, 12), given)).version == (3, 12, 1)


async def test_python_without_venv_is_not_used(tmp_path: Path) -> None:
    make_program(tmp_path / "bin" / "python3.12", "echo \"No module named 'ensurepip'\" >&2; exit 1")
    make_python(tmp_path / "bin" / "python3.13", "3.13.0")
    assert (await find_interpreter((3, 12), surroundings(tmp_path))).version == (3, 13, 0)


async def test_names_do_not_decide_versions_do(tmp_path: Path) -> None:
    make_python(tmp_path / "bin" / "python3", "3.11.2")
    make_python(tmp_path / "bin" / "python3.13", "3.9.1")
    make_program(tmp_path / "bin" / "python3-config", f"touch {tmp_path}/ran")
    make_program(tmp_path / "bin" / "python3.9", f"touch {tmp_path}/ran")
    with pytest.raises(ProgramMissing) as caught:
        await find_interpreter((3, 12), surroundings(tmp_path))
    assert caught.value.message == "mngr needs Python 3.12 or newer, and none was found"
    for way in ("uv", "pyenv", "apt-get", "brew"):
        assert way in caught.value.hint
    assert not (tmp_path / "ran").exists(), "what the name rules out is not run"


async def test_uv_downloads_only_when_allowed(tmp_path: Path) -> None:
    python = make_python(tmp_path / "uv-python", "3.12.9")
    make_program(
        tmp_path / "bin" / "uv",
        f'echo "$@" >> {tmp_path}/asked\n'
        f'case "$2" in find) test -e {tmp_path}/fetched && echo {python} ;; install) : > {tmp_path}/fetched ;; esac',
    )
    with pytest.raises(ProgramMissing):
        await find_interpreter((3, 12), surroundings(tmp_path), may_install=False)
    assert not (tmp_path / "fetched").exists()
    said: list[str] = []
    found = await find_interpreter((3, 12), surroundings(tmp_path), said.append)
    assert (found.path, said) == (str(python), ["asking uv for Python 3.12"])


async def test_real_python_is_found(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    found = await find_interpreter((3, 11), surroundings(tmp_path))
    assert found.version == sys.version_info[:3]
