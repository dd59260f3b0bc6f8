"""How to run a project's tests: the interpreter, the folder, the options and the set-up of a new copy."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git.repository import Repository
from swarm_tui.model.run_limits import NO_LIMITS, RunLimits
from swarm_tui.model.spec import SweepSpec

# Part of the cache key. A new value ignores results of older versions.
_HOW_RESULTS_ARE_READ: Final = "connection"


@dataclass(frozen=True, slots=True)
class TestSettings:
    """The settings that affect the result of a test, besides its tree, and the time limit of a run."""

    __test__ = False

    python: str
    """The interpreter; a path relative to the top of a copy if each copy has its own."""
    folder: str = ""
    """The working folder of pytest, relative to the top of a copy."""
    import_roots: tuple[str, ...] = (".",)
    """Folders that come first on PYTHONPATH, relative to the top of a copy."""
    options: tuple[str, ...] = ()
    setup: str = ""
    """The project's own set-up command for a new copy."""
    timeout: float = 1800.0
    """The time limit of one pytest run, in seconds."""
    checkout: str = ""
    """The user's checkout. The set-up command may copy files from it."""
    fill: tuple[str, ...] = ()
    """Shell commands that add files to a new copy that git ignores."""
    limits: RunLimits = NO_LIMITS
    command: str = ""
    """A shell command to run instead of pytest. It passes if its exit code is 0."""

    @property
    def key(self) -> str:
        """Return the key for cached results."""
        words = [_HOW_RESULTS_ARE_READ, self.python, self.folder, *self.import_roots, "", *self.options, "", self.setup]
        if self.limits != NO_LIMITS:
            words.append(repr(self.limits))
        if self.command:
            words += ["command", self.command]
        return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]


def settings_of_sweep(spec: SweepSpec) -> TestSettings:
    """Return the settings that the agents of a sweep used."""
    return TestSettings(
        python=spec.python or "python3",
        folder=spec.folder,
        import_roots=spec.import_roots or (".",),
        options=spec.run_options,
        setup=spec.setup or "",
        timeout=spec.timeout,
        checkout=spec.repository,
        fill=spec.fill,
        limits=spec.run_limits,
    )


def guess_settings(repository: Repository) -> TestSettings:
    """Return the probable settings of a repository: its own venv, and `src` on the path if it exists."""
    root = repository.root
    active = os.environ.get("VIRTUAL_ENV", "")
    candidates = [Path(active) / "bin/python"] if active else []
    candidates += [root / name / "bin/python" for name in (".venv", "venv")]
    python = next((str(path) for path in candidates if path.is_file()), None) or shutil.which("python3") or "python3"
    import_roots = ("src", ".") if (root / "src").is_dir() else (".",)
    return TestSettings(python, import_roots=import_roots, checkout=str(root))
