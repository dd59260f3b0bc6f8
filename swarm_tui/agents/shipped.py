"""Where the programs lie that agents are given: the live plugin's folder, and our own agents' executables."""

from __future__ import annotations

import os
import re
import sys
import threading
from pathlib import Path
from typing import Final

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
    """Return the folder that is put on PYTHONPATH so that pytest finds the live plugin."""
    return Path(__file__).parent / "live"


def write_offline_program(folder: Path) -> Path:
    """Write the offline agent's executable; a script of that name is what mngr sees as the process's name."""
    return _write_program(folder / OFFLINE_NAME, "swarm_tui.agents.offline.program")


def write_integrator_program(folder: Path) -> Path:
    """Write the built-in integrator's executable."""
    return _write_program(folder / INTEGRATOR_NAME, "swarm_tui.agents.integrator.program")


def write_command(folder: Path) -> Path:
    """Write an executable that is swarm-tui's own command line: an agent's environment may be without it."""
    return _write_program(folder / COMMAND_NAME, "swarm_tui.__main__")


def _write_program(path: Path, module: str) -> Path:
    python = sys.executable
    if re.search(r"\s", python) or len(python) > _SHEBANG_LIMIT:
        raise UsageError(
            f"{path.name} cannot be started with {python}", "install swarm-tui under a short path without spaces"
        )
    package = str(Path(__file__).resolve().parents[2])
    # Agents are launched side by side, and each launch writes it: nobody may take another one's draft away.
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_native_id()}.draft")
    draft.write_text(_PROGRAM.format(python=python, package=package, module=module), encoding="utf-8")
    draft.chmod(0o755)
    os.replace(draft, path)
    return path
