"""Makes a repository of the packaged sample project: `larder`, a small program with real faults and bad tests."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git import init_repository
from swarm_tui.errors import SwarmError, UsageError

SAMPLE: Final = Path(__file__).parent / "sample"
RECORDS: Final = Path(__file__).parent / "records"
PROJECT: Final = "larder"
TESTS: Final = "tests/e2e"
TUTORIAL: Final = "tutorial.sh"
IDENTITY: Final = ("Demo Person", "demo@example.org")

_MARK: Final = "swarm-tui-demo"
"""A file in the repository's .git: the demo made it and may use it again."""

# Stands for the dot of names that packaging tools would treat specially.
_DOT: Final = "dot-"
_LITTER: Final = shutil.ignore_patterns("__pycache__", "*.pyc", ".pytest_cache", ".test_output")


def sample_repository(folder: Path | None) -> Path:
    """Return a repository of the sample: a new one in a new or empty folder, or that of an earlier demo."""
    if folder is None:
        return _make(Path(tempfile.mkdtemp(prefix="swarm-demo-")) / PROJECT)
    folder = folder.expanduser().absolute()
    if (folder / ".git" / _MARK).is_file():
        return folder
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            f"{folder} is there already", "the demo needs a new or empty folder; without one it makes its own"
        )
    return _make(folder)


def _make(folder: Path) -> Path:
    try:
        shutil.copytree(SAMPLE, folder, ignore=_LITTER, dirs_exist_ok=True)
        for path in folder.glob(f"{_DOT}*"):
            path.rename(path.with_name("." + path.name.removeprefix(_DOT)))
        for path in (folder / "bin").iterdir():
            # A wheel may have lost the bit on its way.
            path.chmod(0o755)
    except OSError as error:
        raise SwarmError(f"the sample cannot be written to {folder}", error.strerror or str(error)) from error
    repository = init_repository(folder, branch="main", identity=IDENTITY)
    repository.run("add", "--all")
    repository.run("commit", "--quiet", "--no-verify", "--no-gpg-sign", "--message", "larder 0.4.0")
    (repository.git_directory / _MARK).write_text("made by `swarm-tui demo`\n")
    return folder
