"""A virtual environment on top of another Python: it imports all that is installed there, and installs only in itself.

`pip install` in it reaches nobody else's environment, and `pip uninstall` refuses what lies outside. It is made of a
few files, without running anything once the Python below is known.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.environment import scrubbed_environment
from swarm_tui.errors import AdapterError

_QUESTION: Final = """
import json, os, site, sys
venv = sys.prefix != sys.base_prefix
print(json.dumps({
    "base": os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable),
    "version": list(sys.version_info[:3]),
    "bin": os.path.dirname(sys.executable) if venv else "",
    "packages": site.getsitepackages() if venv else [],
}))
"""
_ASK_TIMEOUT: Final = 60.0
# These would run, change or leave the environment below.
_NOT_LINKED: Final = ("python", "pip", "activate", "Activate", "deactivate", "easy_install", "pydoc", "wheel")
_PIP: Final = """#!/bin/sh
exec "$(dirname "$0")/python" -m pip "$@"
"""


@dataclass(frozen=True, slots=True)
class _Below:
    """The Python that lies below."""

    base: str
    version: tuple[int, int, int]
    programs: str
    packages: tuple[str, ...]


def make_own_venv(folder: Path, python: str) -> Path:
    """Make the environment in a folder, where it may stand already; return its interpreter."""
    below = _ask(python, Path(python).stat().st_mtime_ns)
    name = f"python{below.version[0]}.{below.version[1]}"
    packages = folder / "lib" / name / "site-packages"
    packages.mkdir(parents=True, exist_ok=True)
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    settings = {
        "home": os.path.dirname(below.base),
        "include-system-site-packages": "false" if below.packages else "true",
        "version": ".".join(map(str, below.version)),
    }
    (folder / "pyvenv.cfg").write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    # addsitedir follows the .pth files below too, by which packages are installed editable.
    lines = [f"import site; site.addsitedir({path!r})\n" for path in below.packages]
    (packages / "below.pth").write_text("".join(lines), encoding="utf-8")
    for link in ("python", "python3", name):
        _link(programs / link, below.base)
    for pip in ("pip", "pip3"):
        (programs / pip).write_text(_PIP)
        (programs / pip).chmod(0o755)
    if below.programs:
        for program in os.scandir(below.programs):
            if not program.name.startswith(_NOT_LINKED):
                _link(programs / program.name, program.path)
    return programs / "python"


def activation(folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which programs find the environment that was made in a folder."""
    path = environment.get("PATH") or os.defpath
    return {
        "VIRTUAL_ENV": str(folder),
        "PATH": f"{folder / 'bin'}{os.pathsep}{path}",
        # A pip of another Python must not install anywhere else.
        "PIP_REQUIRE_VIRTUALENV": "1",
    }


def _link(link: Path, target: str) -> None:
    link.unlink(missing_ok=True)
    link.symlink_to(target)


@functools.lru_cache(maxsize=32)
def _ask(python: str, _modified: int) -> _Below:
    try:
        done = subprocess.run(
            [python, "-c", _QUESTION],
            env=scrubbed_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ASK_TIMEOUT,
            check=True,
        )
        told = json.loads(done.stdout)
        major, minor, micro = told["version"]
        return _Below(told["base"], (major, minor, micro), told["bin"], tuple(told["packages"]))
    except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError) as error:
        raise AdapterError(f"{python} does not say what it is", "try it with -c 'import site'") from error
