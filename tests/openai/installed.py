"""The pinned Codex and opencode that the tests run, and a mngr with their plugins, each installed once into a cache."""

from __future__ import annotations

import asyncio
import fcntl
import functools
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from swarm_tui.adapters.provision import PLUGIN_PACKAGES, install_mngr
from tests.waiting import PATIENCE

VERSIONS: Final = {"codex": "0.169.0", "opencode": "1.18.33"}
PACKAGES: Final = {"codex": "@openai/codex", "opencode": "opencode-ai"}
PLUGINS: Final = ("claude", "codex", "opencode")


def _cache(name: str) -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "swarm-tui" / "tests" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@functools.cache
def program_folder(program: str) -> Path | None:
    """Return the folder with a program, or None if it is not cached and npm cannot install it."""
    version = VERSIONS[program]
    cache = _cache(f"{program}-{version}")
    programs = cache / "node_modules" / ".bin"
    # Test workers run concurrently: one installs, the others wait.
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _works(programs / program, version) and (npm := shutil.which("npm")):
            package = f"{PACKAGES[program]}@{version}"
            words = [npm, "install", "--no-audit", "--no-fund", "--no-save", "--prefix", str(cache), package]
            subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=600, check=False)
    return programs if _works(programs / program, version) else None


@functools.cache
def mngr_with_plugins() -> str:
    """Return a mngr with the plugins for all agent types; raise AdapterError if pip cannot install it."""
    cache = _cache("-".join(["mngr", *PLUGINS]))
    environment = {**os.environ, "XDG_DATA_HOME": str(cache)}
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        noted = cache / "packages"
        wanted = "\n".join(PLUGIN_PACKAGES[plugin] for plugin in PLUGINS)
        program = cache / "swarm-tui" / "mngr" / "bin" / "mngr"
        if not program.exists() or not noted.exists() or noted.read_text() != wanted:
            asyncio.run(install_mngr(lambda _: None, plugins=PLUGINS, environment=environment))
            noted.write_text(wanted)
    return str(program)


def _works(program: Path, version: str) -> bool:
    try:
        done = subprocess.run([program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)
    except OSError:
        return False
    return version.encode() in done.stdout
