"""An environment on top of another: all of it can be imported, and nothing in it can be changed."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from swarm_tui.adapters.python_env import activation, make_own_venv
from tests.git_project import file_contents

pytestmark = pytest.mark.slow


def run(*words: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, env=environment or dict(os.environ), capture_output=True, text=True, timeout=300)


def make_wheel(folder: Path, version: str) -> Path:
    """Make a wheel of one module, without any tool."""
    path, information = folder / f"thing-{version}-py3-none-any.whl", f"thing-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("thing.py", f"VERSION = {version!r}\n")
        wheel.writestr(f"{information}/METADATA", f"Metadata-Version: 2.1\nName: thing\nVersion: {version}\n")
        wheel.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{information}/RECORD", "")
    return path


@pytest.fixture(scope="module")
def below(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a person's environment, with an editable install in it and a program."""
    root = tmp_path_factory.mktemp("below")
    assert run(sys.executable, "-m", "venv", str(root / "venv")).returncode == 0
    packages = next(root.glob("venv/lib/python*/site-packages"))
    (root / "source").mkdir()
    (root / "source" / "editable.py").write_text("VALUE = 1\n")
    (packages / "editable.pth").write_text(f"{root / 'source'}\n")
    (packages / "thing.py").write_text("VERSION = 'below'\n")
    information = packages / "thing-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: thing\nVersion: 1\n")
    (information / "RECORD").write_text("thing.py,,\nthing-1.dist-info/METADATA,,\nthing-1.dist-info/RECORD,,\n")
    (information / "INSTALLER").write_text("pip\n")
    (root / "venv/bin/mytool").write_text("#!/bin/sh\necho mine\n")
    (root / "venv/bin/mytool").chmod(0o755)
    return root / "venv"


def test_packages_below_can_be_used(below: Path, tmp_path: Path) -> None:
    python = make_own_venv(tmp_path / "own", str(below / "bin" / "python"))
    told = run(str(python), "-c", "import sys, thing, editable; print(thing.VERSION, editable.VALUE, sys.prefix)")
    assert told.stdout.split() == ["below", "1", str(tmp_path / "own")]
    active = activation(tmp_path / "own", os.environ)
    assert run("/bin/sh", "-c", "mytool", environment=dict(os.environ) | active).stdout == "mine\n"


def test_installs_do_not_change_environment_below(below: Path, tmp_path: Path) -> None:
    python = make_own_venv(tmp_path / "own", str(below / "bin" / "python"))
    environment = dict(os.environ) | activation(tmp_path / "own", os.environ) | {"PYTHONDONTWRITEBYTECODE": "1"}
    before = file_contents(below)
    removed = run("/bin/sh", "-c", "pip uninstall --yes thing", environment=environment)
    assert "outside environment" in removed.stdout + removed.stderr
    installing = f"pip install --no-index --no-deps {make_wheel(tmp_path, '2')}"
    done = run("/bin/sh", "-c", installing, environment=environment)
    assert done.returncode == 0, done.stderr
    shown = run(str(python), "-c", "import thing; print(thing.VERSION)", environment=environment)
    assert shown.stdout == "2\n"
    assert file_contents(below) == before


def test_environment_can_be_created_again(below: Path, tmp_path: Path) -> None:
    for _ in range(2):
        python = make_own_venv(tmp_path / "own", str(below / "bin" / "python"))
    assert run(str(python), "-c", "import thing").returncode == 0


def test_python_without_environment_is_used_whole(tmp_path: Path) -> None:
    base = getattr(sys, "_base_executable", sys.executable)
    python = make_own_venv(tmp_path / "own", base)
    told = run(str(python), "-c", "import sys, pip; print(sys.prefix, pip.__file__)")
    assert told.stdout.startswith(str(tmp_path / "own")), told.stderr
