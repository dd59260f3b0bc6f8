"""The programs that agents run: the live plugin's folder, and the executables of the packaged agents."""

from __future__ import annotations

import io
import json
import os
import posixpath
import re
import sys
import tarfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.pytest import PLUGIN_FOLDER
from swarm_tui.errors import UsageError

# At most 15 characters each: mngr compares them with what ps shows of a process.
OFFLINE_NAME: Final = "swarm-agent"
INTEGRATOR_NAME: Final = "swarm-integrate"
COMMAND_NAME: Final = "swarm-tui"

_SHEBANG_LIMIT: Final = 250
# What the offline agent and the hook import.
_SHIPPED: Final = ("__init__.py", "errors.py", "regular_file.py", "adapters", "agents", "model")

_PROGRAM: Final = """\
#!{python} -I
# Isolated, so that the agent runs this swarm-tui even when the copy it works on is swarm-tui itself.
import sys

sys.path.insert(0, {package!r})
from {module} import main

main()
"""


@dataclass(frozen=True, slots=True)
class Shelf:
    """The files that the agents of a sweep share on one host: where we write them, and how agents name them."""

    folder: Path
    """Where we write."""
    seen_as: str
    """The same folder as agents see it."""
    python: str
    """The Python that runs our programs there."""
    package: str
    """The folder there that holds the package of swarm-tui."""
    live: str
    """The folder there with the live plugin."""

    def path(self, name: str) -> str:
        """Return a file's path as agents see it."""
        return posixpath.join(self.seen_as, name)


def shelf_here(folder: Path) -> Shelf:
    """Return the shelf of agents on this machine, who read the files where we write them."""
    package = str(Path(__file__).resolve().parents[2])
    return Shelf(folder, str(folder), sys.executable, package, str(live_folder()))


def live_folder() -> Path:
    """Return the folder that must be on PYTHONPATH for pytest to find the live plugin."""
    return PLUGIN_FOLDER


def write_offline_program(shelf: Shelf) -> str:
    """Write the offline agent's executable; mngr takes the script's name for the name of its process."""
    return _write_program(shelf, OFFLINE_NAME, "swarm_tui.agents.offline.program")


def write_integrator_program(shelf: Shelf) -> str:
    return _write_program(shelf, INTEGRATOR_NAME, "swarm_tui.agents.integrator.program")


def write_command(shelf: Shelf) -> str:
    """Write an executable of swarm-tui's own command line, which the environment of an agent may lack."""
    return _write_program(shelf, COMMAND_NAME, "swarm_tui.__main__")


def write_hook_settings(shelf: Shelf, more: Mapping[str, object]) -> str:
    """Write settings by which Claude Code runs our hook, and more, apart from those of the project and the person."""
    from swarm_tui.agents.claude import hook

    script = posixpath.join(shelf.package, "swarm_tui", "agents", "claude", "hook.py")
    settings = {**hook.hook_settings(shelf.python, script), **more}
    _write_shared(shelf.folder / "claude-settings.json", json.dumps(settings, indent=1))
    return shelf.path("claude-settings.json")


def packed_package() -> bytes:
    """Return what our programs need on another host, as an archive: `package` and `live`."""
    root = Path(__file__).resolve().parents[1]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=6) as archive:
        for name in _SHIPPED:
            for path in sorted((root / name).rglob("*.py") if (root / name).is_dir() else [root / name]):
                archive.add(path, f"package/swarm_tui/{path.relative_to(root).as_posix()}")
        archive.add(live_folder(), "live", filter=lambda found: None if "__pycache__" in found.name else found)
    return packed.getvalue()


def _write_program(shelf: Shelf, name: str, module: str) -> str:
    python, path = shelf.python, shelf.folder / name
    if re.search(r"\s", python) or len(python) > _SHEBANG_LIMIT:
        raise UsageError(
            f"{path.name} cannot be started with {python}", "install swarm-tui under a short path without spaces"
        )
    _write_shared(path, _PROGRAM.format(python=python, package=shelf.package, module=module), mode=0o755)
    return shelf.path(name)


def _write_shared(path: Path, content: str, *, mode: int = 0o644) -> Path:
    """Write a file that every launch writes; agents are launched side by side, each with a draft of its own."""
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_native_id()}.draft")
    draft.write_text(content, encoding="utf-8")
    draft.chmod(mode)
    os.replace(draft, path)
    return path
