"""How a project's tests are run: the interpreter, the folder, the options and the set-up of a fresh copy."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from swarm_tui.adapters.git.repository import Repository
from swarm_tui.model.limits import NO_LIMITS, RunLimits
from swarm_tui.model.sweep import SweepSpec


@dataclass(frozen=True, slots=True)
class TestSettings:
    """What the outcome of a test depends on beside the tree it is run on, and how long running it may take."""

    __test__ = False

    python: str
    """A path from the top of a copy when each copy has its own."""
    folder: str = ""
    """Where pytest is run, from the top of a copy."""
    import_roots: tuple[str, ...] = (".",)
    """Folders of a copy that come first on PYTHONPATH, from its top."""
    options: tuple[str, ...] = ()
    setup: str = ""
    """The project's own command for a fresh copy."""
    timeout: float = 1800.0
    """The seconds that one call of pytest may take."""
    checkout: str = ""
    """The user's checkout; the set-up command may copy something from there."""
    fill: tuple[str, ...] = ()
    """Shell commands that bring into a fresh copy what git leaves out."""
    limits: RunLimits = NO_LIMITS
    command: str = ""
    """A shell command to run in place of pytest; it passes when its exit code is 0."""

    @property
    def key(self) -> str:
        """Return the name under which results are cached."""
        words = [self.python, self.folder, *self.import_roots, "", *self.options, "", self.setup]
        if self.limits != NO_LIMITS:
            words.append(repr(self.limits))
        if self.command:
            words += ["command", self.command]
        return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]


def settings_of_sweep(spec: SweepSpec) -> TestSettings:
    """Return how the agents of a sweep ran their tests."""
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
    """Return how the tests of a repository are probably run: with its own venv, and from `src` if there is one."""
    root = repository.root
    active = os.environ.get("VIRTUAL_ENV", "")
    candidates = [Path(active) / "bin/python"] if active else []
    candidates += [root / name / "bin/python" for name in (".venv", "venv")]
    python = next((str(path) for path in candidates if path.is_file()), None) or shutil.which("python3") or "python3"
    import_roots = ("src", ".") if (root / "src").is_dir() else (".",)
    return TestSettings(python, import_roots=import_roots, checkout=str(root))
