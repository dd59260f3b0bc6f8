"""The paths of a sweep on disk, and the search for the sweeps of a repository."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from swarm_tui.errors import JournalError, UsageError
from swarm_tui.regular_file import read_regular

if TYPE_CHECKING:
    from swarm_tui.model.sweep import SweepSpec

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
        """The folder of snapshots of earlier moments."""
        return self.root / "snapshots"

    @property
    def engine_log(self) -> Path:
        return self.root / "engine.log"

    @property
    def integrator(self) -> Path:
        """The folder of the integrator: integrator_outcome.json and its notes."""
        return self.root / "integrator"

    def agent(self, agent: str) -> Path:
        """The folder of what was pulled from one agent."""
        if not _SWEEP_NAME.fullmatch(agent):
            raise ValueError(f"{agent!r} is no agent name")
        return self.root / "agents" / agent

    def recordings(self, agent: str) -> Path:
        return self.agent(agent) / "recordings"

    def read_spec(self) -> SweepSpec:
        """Read what was asked of this sweep."""
        from pydantic import ValidationError

        from swarm_tui.model.sweep import SweepSpec

        try:
            return SweepSpec.model_validate_json(read_regular(self.spec))
        except FileNotFoundError:
            raise UsageError(f"{self.root} is no sweep folder", "it holds no sweep.json") from None
        except OSError as error:
            raise JournalError(f"{self.spec} cannot be read", error.strerror or str(error)) from error
        except ValidationError as error:
            raise JournalError(
                f"{self.spec} is broken",
                f"{error.error_count()} fields are wrong or missing; `swarm-tui list` shows the other sweeps",
            ) from error

    def write_spec(self, spec: SweepSpec) -> None:
        """Write sweep.json; create the folder if it is missing."""
        self.root.mkdir(parents=True, exist_ok=True)
        write_beside(self.spec, spec.model_dump_json(indent=2).encode() + b"\n")


def make_own_folder(path: Path) -> Path:
    """Make a folder of a sweep, and return it; a link in its place, which may lead anywhere, gives way."""
    if path.is_symlink():
        path.unlink()
    path.mkdir(parents=True, exist_ok=True)
    return path


def write_beside(path: Path, content: bytes) -> None:
    """Write a file atomically: to a draft beside it, to disk, then renamed."""
    with draft_beside(path) as draft:
        draft.write(content)


@contextlib.contextmanager
def draft_beside(path: Path) -> Iterator[BinaryIO]:
    """Return a file beside another one, which it replaces when it was written without an error."""
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_native_id()}.draft")
    try:
        with open(draft, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError as error:
        raise JournalError(f"{path} cannot be written", error.strerror or str(error)) from error
    finally:
        draft.unlink(missing_ok=True)


def runs_folder(repository: Path) -> Path:
    return repository / SWARM_FOLDER / "runs"


def create_runs_folder(repository: Path) -> Path:
    """Create and return the folder of all sweeps, with a .gitignore that keeps it out of the user's git status."""
    runs = runs_folder(repository)
    try:
        runs.mkdir(parents=True, exist_ok=True)
        ignore = repository / SWARM_FOLDER / ".gitignore"
        # Written atomically: an empty file, left by a full disk, would show all of .swarm to git.
        if not ignore.exists():
            write_beside(ignore, b"*\n")
    except OSError as error:
        raise JournalError(f"{runs} cannot be made", error.strerror or str(error)) from error
    return runs


def list_sweeps(repository: Path) -> list[SweepFolder]:
    """Return all sweeps of a repository, the newest last."""
    return sweeps_in(runs_folder(repository))


def sweeps_in(runs: Path) -> list[SweepFolder]:
    """Return the sweeps in a folder of sweeps, the newest last."""
    if not runs.is_dir():
        return []
    found = [SweepFolder(path) for path in runs.iterdir() if (path / "sweep.json").is_file()]
    return sorted(found, key=lambda folder: folder.name)


def find_sweep(repository: Path, name: str | None = None) -> SweepFolder:
    """Return the sweep with this folder, id or beginning of an id; without a name the newest."""
    if name and ("/" in name or name in (".", "..")):
        folder = SweepFolder(Path(name).expanduser().resolve())
        if not folder.spec.is_file():
            raise UsageError(f"{name} is no sweep folder", "it holds no sweep.json, and no run of `mngr tmr`")
        return folder
    sweeps = list_sweeps(repository)
    if name and os.path.isdir(name) and not any(folder.name.startswith(name) for folder in sweeps):
        return find_sweep(repository, f"./{name}")
    if not sweeps:
        raise UsageError("there is no sweep here", "`swarm-tui run` starts one, `swarm-tui demo` shows one")
    if name is None:
        return sweeps[-1]
    fitting = [folder for folder in sweeps if folder.name == name] or [
        folder for folder in sweeps if folder.name.startswith(name)
    ]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UsageError(f"{name!r} fits {len(fitting)} sweeps", ", ".join(folder.name for folder in fitting[:5]))
    known = ", ".join(folder.name for folder in sweeps[-5:])
    raise UsageError(f"there is no sweep {name!r} here", f"the newest are {known}")
