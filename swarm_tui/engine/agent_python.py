"""The Python of one agent: what it installs, compiles and measures stays with it, never in the user's environment."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from swarm_tui.adapters.own_venv import activation, make_own_venv
from swarm_tui.errors import AdapterError
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.hosts import LOCAL_HOST
from swarm_tui.model.sweep import SweepSpec

_VENV = "venv"
_COMPILED = "compiled"


@dataclass(frozen=True, slots=True)
class AgentPython:
    """An interpreter and the variables that go with it."""

    path: str
    variables: dict[str, str]


def make_agent_python(spec: SweepSpec, folder: SweepFolder, agent_folder: Path, host: str) -> AgentPython:
    """Make the Python of an agent on this machine, on top of the project's; elsewhere it is the one that is named."""
    if host != LOCAL_HOST or not spec.python:
        return AgentPython(spec.python, {})
    own = agent_folder.absolute()
    variables = {
        # Bytecode of what is imported from the user's environment would be written into it.
        "PYTHONPYCACHEPREFIX": str(folder.root.absolute() / _COMPILED),
        "GCOV_PREFIX": str(own / "gcov"),
    }
    if not os.path.isabs(spec.python):
        return AgentPython(spec.python, variables)
    try:
        python = make_own_venv(own / _VENV, spec.python)
    except (AdapterError, OSError):
        # No Python of this kind has virtual environments: the agent says what it cannot run.
        return AgentPython(spec.python, variables)
    return AgentPython(str(python), variables | activation(own / _VENV, os.environ))


def remove_agent_python(folder: SweepFolder, agent_folder: Path, work_dir: str) -> None:
    """Remove what was installed, compiled and measured for an agent that works no more."""
    for name in (_VENV, "gcov"):
        shutil.rmtree(agent_folder / name, ignore_errors=True)
    if os.path.isabs(work_dir):
        shutil.rmtree(folder.root / _COMPILED / work_dir.lstrip(os.sep), ignore_errors=True)


def folders_of_agent_pythons(folder: SweepFolder) -> list[Path]:
    """Return what is there of the Pythons of all agents of a sweep."""
    compiled = folder.root / _COMPILED
    return [*([compiled] if compiled.is_dir() else []), *folder.root.glob(f"agents/*/{_VENV}")]
