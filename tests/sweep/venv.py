"""Virtual environments with the packages of this one, in which a test installs a project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import swarm_tui


def make_venv(folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    others = [path for path in sys.path if "site-packages" in path]
    (packages_of(folder) / "others.pth").write_text("\n".join([*others, str(Path(swarm_tui.__file__).parents[1])]))
    return folder


def packages_of(venv: Path) -> Path:
    return next(venv.glob("lib/python*/site-packages"))
