"""The programs that agents run: the live plugin's folder, and the executables of the packaged agents."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from pathlib import Path
from typing import Final

from swarm_tui.adapters.pytest import PLUGIN_FOLDER
from swarm_tui.errors import UsageError

# At most 15 characters each: mngr compares them with what ps shows of a process.
OFFLINE_NAME: Final = "swarm-agent"
INTEGRATOR_NAME: Final = "swarm-integrate"
COMMAND_NAME: Final = "swarm-tui"

_SHEBANG_LIMIT: Final = 250

_PROGRAM: Final = """\
#!{python} -I
# Isolated, so that the agent runs this swarm-tui even when the copy it works on is swarm-tui itself.
import sys

sys.path.insert(0, {package!r})
from {module} import main

main()
"""


def live_folder() -> Path:
    """Return the folder that must be on PYTHONPATH for pytest to find the live plugin."""
    return PLUGIN_FOLDER


def write_offline_program(folder: Path) -> Path:
    """Write the offline agent's executable; mngr takes the script's name for the name of its process."""
    return _write_program(folder / OFFLINE_NAME, "swarm_tui.agents.offline.program")


def write_integrator_program(folder: Path) -> Path:
    return _write_program(folder / INTEGRATOR_NAME, "swarm_tui.agents.integrator.program")


def write_command(folder: Path) -> Path:
    """Write an executable of swarm-tui's own command line, which the environment of an agent may lack."""
    return _write_program(folder / COMMAND_NAME, "swarm_tui.__main__")


def write_hook_settings(folder: Path) -> Path:
    """Write the settings by which Claude Code runs our hook, apart from those of the project and of the person."""
    from swarm_tui.agents.claude import hook

    settings = hook.hook_settings(sys.executable, str(Path(hook.__file__).resolve()))
    return _write_shared(folder / "claude-settings.json", json.dumps(settings, indent=1))


def _write_program(path: Path, module: str) -> Path:
    python = sys.executable
    if re.search(r"\s", python) or len(python) > _SHEBANG_LIMIT:
        raise UsageError(
            f"{path.name} cannot be started with {python}", "install swarm-tui under a short path without spaces"
        )
    package = str(Path(__file__).resolve().parents[2])
    return _write_shared(path, _PROGRAM.format(python=python, package=package, module=module), mode=0o755)


def _write_shared(path: Path, content: str, *, mode: int = 0o644) -> Path:
    """Write a file that every launch writes; agents are launched side by side, each with a draft of its own."""
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_native_id()}.draft")
    draft.write_text(content, encoding="utf-8")
    draft.chmod(mode)
    os.replace(draft, path)
    return path
