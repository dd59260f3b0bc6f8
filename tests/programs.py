"""Stand-in programs: small scripts on a PATH of their own, for machines that lack, or have, what a test wants."""

from __future__ import annotations

import shutil
from pathlib import Path


def make_program(path: Path, script: str) -> Path:
    """Make an executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def make_path(folder: Path, *programs: str) -> Path:
    """Return a folder that, as PATH, has exactly these programs of this machine."""
    folder.mkdir(parents=True, exist_ok=True)
    for program in programs:
        real = shutil.which(program)
        assert real is not None, f"this test needs {program}"
        (folder / program).symlink_to(real)
    return folder
