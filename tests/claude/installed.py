"""The pinned Claude Code that the tests run, from a cache or installed once with npm."""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.waiting import PATIENCE

# imbue-mngr-claude 0.3 recognizes the dialogs of this version.
VERSION: Final = "2.1.293"
PACKAGE: Final = f"@anthropic-ai/claude-code@{VERSION}"


@functools.cache
def claude_folder() -> Path | None:
    """Return the folder with `claude`, or None if it is not cached and npm cannot install it."""
    cache = (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "swarm-tui" / "tests" / f"claude-{VERSION}"
    )
    programs = cache / "node_modules" / ".bin"
    cache.mkdir(parents=True, exist_ok=True)
    # Test workers run concurrently: one installs, the others wait.
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _works(programs / "claude"):
            _install(cache)
    return programs if _works(programs / "claude") else None


def _install(cache: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        return
    words = [npm, "install", "--no-audit", "--no-fund", "--no-save", "--prefix", str(cache), PACKAGE]
    subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=600, check=False)


def _works(program: Path) -> bool:
    try:
        done = subprocess.run([program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)
    except OSError:
        return False
    return done.stdout.startswith(VERSION.encode())
