"""Paths in a sweep folder, and the search for the sweeps of a repository."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import msgspec

from swarm_tui.errors import JournalError, UsageError
from swarm_tui.files import read_regular, replacing

if TYPE_CHECKING:
    from swarm_tui.model.spec import SweepSpec

SWARM_FOLDER: Final = ".swarm"
_SWEEP_NAME: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,99}")


@dataclass(frozen=True, slots=True)
class SweepFolder:
    """The paths of one sweep."""

    root: Path

    @property
    def name(self) -> str:
        return self.root.name

    @property
    def spec(self) -> Path:
        return self.root / "sweep.json"

    @property
    def events(self) -> Path:
        return self.root / "events.jsonl"

    @property
    def requests(self) -> Path:
        return self.root / "requests.jsonl"

    @property
    def verdicts(self) -> Path:
        return self.root / "verdicts.jsonl"

    @property
    def lock(self) -> Path:
        return self.root / "engine.lock"

    @property
    def snapshot(self) -> Path:
        return self.root / "snapshot.json"

    @property
    def former_snapshots(self) -> Path:
        """The folder of earlier snapshots."""
        return self.root / "snapshots"

    @property
    def engine_log(self) -> Path:
        return self.root / "engine.log"

    @property
    def integrator(self) -> Path:
        """The folder with the integrator's report and notes."""
        return self.root / "integrator"

    def agent(self, agent: str) -> Path:
        """Return the folder of an agent's pulled work."""
        if not _SWEEP_NAME.fullmatch(agent):
            raise ValueError(f"invalid agent name: {agent!r}")
        return self.root / "agents" / agent

    def recordings(self, agent: str) -> Path:
        return self.agent(agent) / "recordings"

    def read_spec(self) -> SweepSpec:
        """Read sweep.json. Raise JournalError if it is invalid or of an earlier format."""
        from swarm_tui.model.spec import FORMAT_VERSION, SpecVersion, SweepSpec

        try:
            content = read_regular(self.spec)
            if msgspec.json.decode(content, type=SpecVersion).version < FORMAT_VERSION:
                raise JournalError(
                    f"{self.name} was created by an earlier version of swarm-tui",
                    f"open it with that version, or delete {self.root}",
                )
            return msgspec.json.decode(content, type=SweepSpec)
        except FileNotFoundError:
            raise UsageError(f"not a sweep folder: {self.root}", "use a folder that contains a sweep.json") from None
        except OSError as error:
            raise JournalError(f"{self.spec} cannot be read: {error.strerror or error}") from error
        except (ValueError, RecursionError) as error:
            raise JournalError(
                f"{self.spec} is invalid: {str(error)[:200]}",
                "list the other sweeps with `swarm-tui list`",
            ) from error

    def write_spec(self, spec: SweepSpec) -> None:
        """Write sweep.json. Create the folder if it is missing."""
        self.root.mkdir(parents=True, exist_ok=True)
        write_beside(self.spec, msgspec.json.format(msgspec.json.encode(spec), indent=2) + b"\n")


def make_own_folder(path: Path) -> Path:
    """Create a folder inside a sweep folder and return it. A symbolic link at its path is replaced."""
    if path.is_symlink():
        path.unlink()
    path.mkdir(parents=True, exist_ok=True)
    return path


def write_beside(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write a file atomically: write a temporary file in the same folder, sync it, and rename it."""
    with draft_beside(path, mode) as draft:
        draft.write(content)


@contextlib.contextmanager
def draft_beside(path: Path, mode: int = 0o600) -> Iterator[BinaryIO]:
    """Open a temporary file in the same folder. It replaces `path` if no error occurs."""
    try:
        with replacing(path, mode) as draft:
            yield draft
    except OSError as error:
        raise JournalError(f"{path} cannot be written: {error.strerror or error}") from error


def runs_folder(repository: Path) -> Path:
    return repository / SWARM_FOLDER / "runs"


def create_runs_folder(repository: Path) -> Path:
    """Create and return the folder of all sweeps, with a .gitignore that hides it from git status.

    A folder that exists becomes private too.
    """
    runs = runs_folder(repository)
    try:
        # Events, screens and answers must not be readable by other users of a shared machine.
        runs.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        runs.mkdir(mode=0o700, exist_ok=True)
        for folder in (runs.parent, runs):
            status = folder.stat()
            if status.st_mode & 0o077 and status.st_uid == os.geteuid():
                folder.chmod(0o700)
        ignore = repository / SWARM_FOLDER / ".gitignore"
        # Written atomically: an empty file, left by a full disk, would not hide the folder.
        if not ignore.exists():
            write_beside(ignore, b"*\n")
    except OSError as error:
        raise JournalError(f"{runs} cannot be created: {error.strerror or error}") from error
    return runs


def list_sweeps(repository: Path) -> list[SweepFolder]:
    """Return all sweeps of a repository, newest last."""
    return sweeps_in(runs_folder(repository))


def sweeps_in(runs: Path) -> list[SweepFolder]:
    """Return the sweeps in a folder, newest last."""
    if not runs.is_dir():
        return []
    folders = [SweepFolder(path) for path in runs.iterdir() if (path / "sweep.json").is_file()]
    return sorted(folders, key=lambda folder: folder.name)


def find_sweep(repository: Path, name: str | None = None) -> SweepFolder:
    """Return the sweep with this path, id or prefix of an id. Without a name, return the newest."""
    if name and ("/" in name or name in (".", "..")):
        folder = SweepFolder(Path(name).expanduser().resolve())
        if not folder.spec.is_file():
            raise UsageError(f"not a sweep folder: {name}", "use a folder that contains a sweep.json")
        return folder
    sweeps = list_sweeps(repository)
    if name and os.path.isdir(name) and not any(folder.name.startswith(name) for folder in sweeps):
        return find_sweep(repository, f"./{name}")
    if not sweeps:
        raise UsageError("no sweeps in this repository", "start one with `swarm-tui run`, or try `swarm-tui demo`")
    if name is None:
        return sweeps[-1]
    matches = [folder for folder in sweeps if folder.name == name] or [
        folder for folder in sweeps if folder.name.startswith(name)
    ]
    if len(matches) == 1:
        return matches[0]
    if matches:
        names = ", ".join(folder.name for folder in matches[:5])
        raise UsageError(f"ambiguous sweep: {name!r} matches {len(matches)} sweeps", f"use one of {names}")
    newest = ", ".join(folder.name for folder in sweeps[-5:])
    raise UsageError(f"unknown sweep: {name!r}", f"use one of the newest: {newest}")
