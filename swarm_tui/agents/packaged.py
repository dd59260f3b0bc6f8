"""The programs that agents run: the folder of the live plugin, and the executables of the packaged agents."""

from __future__ import annotations

import io
import json
import os
import posixpath
import re
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.pytest import PLUGIN_FOLDER
from swarm_tui.agents import hook
from swarm_tui.errors import UsageError
from swarm_tui.files import replacing

# At most 15 characters each: mngr compares them with the process names that ps prints, which are cut.
OFFLINE_NAME: Final = "swarm-agent"
INTEGRATOR_NAME: Final = "swarm-integrate"
COMMAND_NAME: Final = "swarm-tui"

_SHEBANG_LIMIT: Final = 250
# The imports of the offline agent and the hook.
_SHIPPED: Final = ("__init__.py", "errors.py", "files.py", "adapters", "agents", "model")

_PROGRAM: Final = """\
#!{python} -I
# Isolated, so that the agent runs this swarm-tui even if its copy contains the source of swarm-tui.
import sys

sys.path.insert(0, {package!r})
from {module} import main

main()
"""


@dataclass(frozen=True, slots=True)
class PackageDir:
    """The folder of files that all agents of a sweep share on one host: its path here and its path on the host."""

    folder: Path
    """The path where this process writes the files."""
    seen_as: str
    """The path of the same folder on the host."""
    python: str
    """The Python on the host that runs the programs."""
    package: str
    """The folder on the host that contains the package `swarm_tui`."""
    live: str
    """The folder on the host that contains the live plugin."""

    @property
    def hook(self) -> str:
        """The path of our hook on the host."""
        return posixpath.join(self.package, "swarm_tui", "agents", "hook.py")

    def path(self, name: str) -> str:
        """Return the path of a file on the host."""
        return posixpath.join(self.seen_as, name)


def local_package_dir(folder: Path) -> PackageDir:
    """Return the package_dir for agents on this machine, which read the files from the same path."""
    package = str(Path(__file__).resolve().parents[2])
    return PackageDir(folder, str(folder), sys.executable, package, str(live_folder()))


def live_folder() -> Path:
    """Return the folder that must be on PYTHONPATH for pytest to find the live plugin."""
    return PLUGIN_FOLDER


def write_offline_program(package_dir: PackageDir) -> str:
    """Write the offline agent's executable. mngr uses the file name as the process name."""
    return _write_program(package_dir, OFFLINE_NAME, "swarm_tui.agents.offline.program")


def write_integrator_program(package_dir: PackageDir) -> str:
    return _write_program(package_dir, INTEGRATOR_NAME, "swarm_tui.integrator.program")


def write_command(package_dir: PackageDir) -> str:
    """Write an executable of the swarm-tui command line, which may be missing from an agent's PATH."""
    return _write_program(package_dir, COMMAND_NAME, "swarm_tui.__main__")


def write_hook_settings(package_dir: PackageDir, more: Mapping[str, object]) -> str:
    """Write a settings file that makes Claude Code run our hook, separate from the settings of project and user."""
    settings = {**hook.hook_settings(package_dir.python, package_dir.hook), **more}
    write_shared(package_dir.folder / "claude-settings.json", json.dumps(settings, indent=1))
    return package_dir.path("claude-settings.json")


def packed_package() -> bytes:
    """Return an archive with everything that our programs need on another host: `package` and `live`."""
    root = Path(__file__).resolve().parents[1]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=6) as archive:
        for name in _SHIPPED:
            for path in sorted((root / name).rglob("*.py") if (root / name).is_dir() else [root / name]):
                archive.add(path, f"package/swarm_tui/{path.relative_to(root).as_posix()}")
        archive.add(live_folder(), "live", filter=lambda found: None if "__pycache__" in found.name else found)
    return packed.getvalue()


def _write_program(package_dir: PackageDir, name: str, module: str) -> str:
    python, path = package_dir.python, package_dir.folder / name
    if re.search(r"\s", python) or len(python) > _SHEBANG_LIMIT:
        raise UsageError(f"cannot start {path.name} with {python}", "install swarm-tui in a short path without spaces")
    write_shared(path, _PROGRAM.format(python=python, package=package_dir.package, module=module), mode=0o700)
    return package_dir.path(name)


def write_shared(path: Path, content: str, *, mode: int = 0o600) -> Path:
    """Replace a file that every launch writes. Launches are concurrent, so each uses its own draft."""
    with replacing(path, is_synced=False) as draft:
        os.fchmod(draft.fileno(), mode)
        draft.write(content.encode())
    return path
