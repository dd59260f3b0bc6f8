"""A small sweep for attacks: the real engine and git, and a mngr whose agents hand in their work at once.

The agents are kept on disk, so that they outlive an engine that is killed, as those of the real mngr do.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.mngr_messages import ActionReport, Created, CreateRequest
from swarm_tui.agents.contract import ARCHIVE_PATH
from swarm_tui.hosts.registry import Hosts
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.folder import SweepFolder, create_runs_folder
from swarm_tui.journal.state import SweepState
from swarm_tui.model.spec import MngrSettings, SweepSpec, derive_tests
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.engine import run_engine
from swarm_tui.sweep.start import write_sweep
from tests.fake_mngr import FakeMngr
from tests.integrator.integrator_project import CODE, SWEEP, TEST_FILE, SweptProject, changed
from tests.sweep.scripted_sweep import QuietHost

EXPECTED: Final = {"test_add": "impl_fix", "test_double": "impl_fix", "test_halve": "clean", "test_name": "blocked"}
_FIXES: Final = {
    "test_add": changed(CODE, "first - second", "first + second"),
    "test_double": changed(CODE, "number * 3", "number * 2"),
}
_BLOCKER: Final = {"kind": "BLOCKER", "title": "Nobody knows the name", "detail_markdown": "It is not written down."}
IS_STRIKING = [True]
"""Whether blows count: what mngr does by itself goes on when an engine is killed."""


@contextmanager
def as_another_process() -> Iterator[None]:
    """Do what another process than the engine would do, and what is not struck with it."""
    IS_STRIKING[0] = False
    try:
        yield
    finally:
        IS_STRIKING[0] = True


def pack(outcome: dict[str, object], name: str, bundle: Path | None) -> bytes:
    """Return the archive of an agent's work."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as packed:
        content = json.dumps(outcome).encode()
        entry = tarfile.TarInfo(f"test_output/{name}")
        entry.size = len(content)
        packed.addfile(entry, io.BytesIO(content))
        if bundle is not None:
            packed.add(bundle, "branch.bundle")
    return buffer.getvalue()


@dataclass(frozen=True)
class World:
    """The folder of a project, of its mngr, and of one sweep; it can be copied as often as there are rounds."""

    root: Path

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def mngr(self) -> Path:
        return self.root / "mngr"

    @property
    def folder(self) -> SweepFolder:
        return SweepFolder(self.project / ".swarm" / "runs" / SWEEP)

    def spec(self) -> SweepSpec:
        """Return what is asked of the sweep."""
        return SweepSpec(
            sweep=SWEEP,
            repository=str(self.project),
            base=(self.root / "base").read_text(),
            created_at=1.0,
            agent_type="claude",
            integrator="agent",
            slots=2,
            python="python3",
            identity=("Ada Lovelace", "ada@example.org"),
            mngr=MngrSettings(path="mngr", host_dir=str(self.mngr)),
        )

    def begin(self) -> None:
        """Write the folder of the sweep, as `swarm-tui run` does."""
        create_runs_folder(self.project)
        self.folder.root.mkdir(exist_ok=True)
        names = [(f"{TEST_FILE}::{name}", TEST_FILE, 1) for name in EXPECTED]
        write_sweep(self.folder, self.spec(), derive_tests(SWEEP, names))

    def run(self, *, is_relaunching: bool = True) -> int:
        """Run the engine of the sweep in this process until it ends, and return its exit code."""
        os.environ["XDG_CONFIG_HOME"] = str(self.root / "config")
        return run_engine(self.folder.root, is_relaunching=is_relaunching, open_context=self.open_context)

    def open_context(
        self, folder: SweepFolder, spec: SweepSpec, writer: JournalWriter, state: SweepState
    ) -> SweepContext:
        mngr = KeptMngr(self.mngr, self.root / "handed_in")
        return SweepContext(
            folder=folder,
            spec=spec,
            writer=writer,
            state=state,
            mngr=mngr,
            hosts=Hosts([QuietHost(mngr)]),
            repository=Repository.open(self.project),
            shortage_pauses=(0.0,),
        )

    def copy(self, root: Path) -> World:
        """Return a copy of this world in another folder."""
        shutil.copytree(self.root, root, symlinks=True, dirs_exist_ok=True)
        return World(root)


class KeptMngr(FakeMngr):
    """Keeps its agents in a file, and gives each what it is to hand in."""

    def __init__(self, root: Path, handed_in: Path) -> None:
        super().__init__(root)
        self._handed_in, self._file = handed_in, root / "agents.pickle"
        self.created: list[str] = []
        if self._file.exists():
            with self._file.open("rb") as file:
                self.agents, self.created = pickle.load(file)

    def _keep(self) -> None:
        draft = self._file.with_suffix(".draft")
        draft.write_bytes(pickle.dumps((self.agents, self.created)))
        draft.replace(self._file)

    async def create(self, request: CreateRequest, timeout: float = 0.0) -> Created:
        with as_another_process():
            created = await super().create(request, timeout)
            self.created.append(request.name)
            archive = self.agents[request.name].state_dir / ARCHIVE_PATH
            archive.parent.mkdir(parents=True)
            work = self._handed_in / request.name.rpartition(f"{SWEEP}-")[2]
            archive.write_bytes(work.read_bytes())
            self._keep()
            return created

    async def stop(self, names: Sequence[str]) -> ActionReport:
        with as_another_process():
            report = await super().stop(names)
            self._keep()
            return report

    async def destroy(self, names: Sequence[str], *, is_branch_deleted: bool = False) -> ActionReport:
        with as_another_process():
            report = await super().destroy(names)
            self._keep()
            return report


def make_world(root: Path) -> World:
    """Make a project, and what each of its agents is to hand in."""
    project = SweptProject(root / "project")
    git, handed_in = project.git, root / "handed_in"
    handed_in.mkdir()
    (root / "mngr").mkdir()
    for name in EXPECTED:
        outcome: dict[str, object] = {"tests_passing_before": True, "tests_passing_after": True}
        bundle = None
        if name in _FIXES:
            source = project.agent(name, [(f"[FIX_IMPL] Mend {name}", {"sums.py": _FIXES[name]})])
            bundle = _bundle(project, handed_in, source.branch, source.tip)
            change = {"FIX_IMPL": {"status": "SUCCEEDED", "summary_markdown": "Mended."}}
            outcome |= {"tests_passing_before": False, "changes": change}
        elif name == "test_name":
            outcome |= {"tests_passing_before": False, "tests_passing_after": False, "escalations": [_BLOCKER]}
        (handed_in / name.replace("_", "-")).write_bytes(pack(outcome, "testing_agent_outcome.json", bundle))
    _integrate(project, handed_in)
    for ref in git.git("for-each-ref", "--format=%(refname)", "refs/swarm").splitlines():
        git.git("update-ref", "-d", ref)
    (root / "base").write_text(project.base)
    return World(root)


def _integrate(project: SweptProject, handed_in: Path) -> None:
    """Make what the integrator is to hand in: the two fixes, one after the other."""
    git = project.git
    git.git("checkout", "--quiet", "--detach", project.base)
    named = {}
    for source in project.branches:
        git.git("cherry-pick", source.tip)
        named[source.branch] = git.git("rev-parse", "HEAD")
    tip = git.git("rev-parse", "HEAD")
    git.git("checkout", "--quiet", "main")
    bundle = _bundle(project, handed_in, f"swarm/{SWEEP}/integrator", tip)
    (handed_in / "integrator").write_bytes(pack({"impl_commit_hashes": named}, "integrator_outcome.json", bundle))


def _bundle(project: SweptProject, folder: Path, branch: str, tip: str) -> Path:
    path = folder / "bundle"
    project.git.git("update-ref", f"refs/heads/{branch}", tip)
    project.git.git("bundle", "create", "--quiet", str(path), f"{project.base}..refs/heads/{branch}")
    project.git.git("update-ref", "-d", f"refs/heads/{branch}")
    return path
