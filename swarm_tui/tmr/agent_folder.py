"""Looks into the folder of one agent of a run of `mngr tmr`: what lies where, in as few calls as possible."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from swarm_tui.model.outcome import INTEGRATOR_OUTCOME_FILE, OUTCOME_FILE

BUNDLE_FILE: Final = "branch.bundle"
OUTPUT_FOLDER: Final = "test_output"
ARTIFACTS_FOLDER: Final = "e2e"


class AgentsFile(NamedTuple):
    """A regular file that lies in the run itself: what a link leads to is none."""

    path: Path
    changed_at: float
    size: int


@dataclass(frozen=True)
class AgentFolder:
    """What an agent handed in."""

    path: Path
    outcome: AgentsFile | None = None
    integrator_outcome: AgentsFile | None = None
    bundle: AgentsFile | None = None
    is_agents: bool = True
    """Whether an agent's folder may look so."""
    is_readable: bool = True


def look_into(path: Path) -> AgentFolder:
    """Return what is in a folder; of what cannot be read nothing is told."""
    try:
        found, folders = _scan(path)
        # Newer generations keep all but the bundle in a folder of its own.
        inner, _ = _scan(path / OUTPUT_FOLDER) if OUTPUT_FOLDER in folders else ({}, set())
    except OSError:
        return AgentFolder(path, is_readable=False)
    outcome, integrated = (inner.get(name) or found.get(name) for name in (OUTCOME_FILE, INTEGRATOR_OUTCOME_FILE))
    bundle = found.get(BUNDLE_FILE)
    is_agents = bool(outcome or integrated or bundle or folders & {OUTPUT_FOLDER, ARTIFACTS_FOLDER})
    return AgentFolder(path, outcome, integrated, bundle, is_agents)


def _scan(path: Path) -> tuple[dict[str, AgentsFile], set[str]]:
    """Return the files of an agent in a folder, and the names of all folders."""
    files: dict[str, AgentsFile] = {}
    folders: set[str] = set()
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.add(entry.name)
            elif entry.name in (OUTCOME_FILE, INTEGRATOR_OUTCOME_FILE, BUNDLE_FILE) and entry.is_file(
                follow_symlinks=False
            ):
                status = entry.stat(follow_symlinks=False)
                files[entry.name] = AgentsFile(path / entry.name, status.st_mtime, status.st_size)
    return files, folders
