"""The demo: a packaged sample project, recorded work of agents on it, and a sweep that replays the work."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git import init_repository
from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.mngr_settings import mngr_environment
from swarm_tui.adapters.provision import FoundMngr, find_mngr, install_mngr
from swarm_tui.adapters.scratch import short_folder
from swarm_tui.errors import ProgramMissing, SwarmError, UsageError
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.options import RunOptions
from swarm_tui.model.spec import MngrSettings
from swarm_tui.sweep.order import begin_sweep, check_machine, prepare_sweep
from swarm_tui.sweep.start import start_engine

SAMPLE: Final = Path(__file__).parent / "sample"
RECORDS: Final = Path(__file__).parent / "records"
PROJECT: Final = "larder"
TESTS: Final = "tests/e2e"
TUTORIAL: Final = "tutorial.sh"
IDENTITY: Final = ("Demo Person", "demo@example.org")

_MARK: Final = "swarm-tui-demo"
"""A file in .git that marks a repository of the demo, which may be used again."""

# Replaces the dot of names that packaging tools would treat specially.
_DOT: Final = "dot-"
_LITTER: Final = shutil.ignore_patterns("__pycache__", "*.pyc", ".pytest_cache", ".test_output")


def sample_repository(folder: Path | None) -> Path:
    """Return a repository of the sample: a new one in a new or empty folder, or the one of an earlier demo."""
    if folder is None:
        return _make(Path(tempfile.mkdtemp(prefix="swarm-demo-")) / PROJECT)
    folder = folder.expanduser().absolute()
    if (folder / ".git" / _MARK).is_file():
        return folder
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty", "use a new or empty folder, or none to create a temporary one")
    return _make(folder)


def _make(folder: Path) -> Path:
    try:
        shutil.copytree(SAMPLE, folder, ignore=_LITTER, dirs_exist_ok=True)
        for path in folder.glob(f"{_DOT}*"):
            path.rename(path.with_name("." + path.name.removeprefix(_DOT)))
        for path in (folder / "bin").iterdir():
            # A wheel may have lost the executable bit.
            path.chmod(0o755)
    except OSError as error:
        raise SwarmError(f"the sample cannot be written to {folder}: {error.strerror or error}") from error
    repository = init_repository(folder, branch="main", identity=IDENTITY)
    repository.run("add", "--all")
    repository.run("commit", "--quiet", "--no-verify", "--no-gpg-sign", "--message", "larder 0.4.0")
    (repository.git_directory / _MARK).write_text("created by `swarm-tui demo`\n")
    return folder


SLOTS: Final = 6
TITLE: Final = "demo: larder"
# Long enough to look around first, but an unattended demo must finish.
WAIT_TIMEOUT: Final = 600.0

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """The options of the demo."""

    folder: Path | None = None
    slots: int = SLOTS
    speed: float = 1.0
    answers_itself: bool = False
    mngr: str | None = None


async def begin_demo(options: DemoOptions, progress: Progress) -> SweepFolder:
    """Create the repository, find or install mngr, and start a sweep isolated from the user's mngr, tmux and git."""
    run_options = RunOptions(
        agent_type="offline",
        integrator="builtin",
        slots=options.slots,
        wait_timeout=WAIT_TIMEOUT,
        speed=options.speed,
        answers_itself=options.answers_itself,
        python=sys.executable,
        pytest_arguments=(TESTS,),
        records=str(RECORDS),
        title=TITLE,
        is_private=True,
        is_preflight_skipped=True,
    )
    check_machine(run_options)
    mngr = await find_or_install_mngr(options.mngr, progress)
    repository = sample_repository(options.folder)
    progress(f"sample project: {repository}")
    settings = make_private_home(mngr.path)
    try:
        await _disable_modal(settings, repository)
        run_options = replace(run_options, tutorial=str(repository / TUTORIAL))
        spec, tests = await prepare_sweep(run_options, repository, progress, mngr=settings)
        folder = begin_sweep(spec, tests)
    except BaseException:
        # No sweep refers to this home yet, so `clean` would not find it.
        shutil.rmtree(Path(str(settings.home)).parent, ignore_errors=True)
        raise
    progress(f"sweep {folder.name}: {len(tests)} tests, {spec.slots} slots, mngr {mngr.version} in a separate home")
    start_engine(folder)
    return folder


async def find_or_install_mngr(override: str | None, progress: Progress) -> FoundMngr:
    """Return a supported mngr. If there is none, install it into swarm-tui's private environment."""
    try:
        return await find_mngr(override)
    except ProgramMissing as error:
        if override or os.environ.get("SWARM_MNGR"):
            raise
        progress(f"{error.message}; installing it into swarm-tui's private environment")
        return await install_mngr(progress)


def make_private_home(mngr: str) -> MngrSettings:
    """Create a mngr home and a tmux folder for one sweep. `swarm-tui clean` removes them."""
    root = Path(tempfile.mkdtemp(prefix="sw", dir=short_folder()))
    home, tmux = root / "home", root / "t"
    home.mkdir()
    tmux.mkdir()
    return MngrSettings(path=mngr, host_dir=str(home / ".mngr"), tmux_tmpdir=str(tmux), home=str(home))


async def _disable_modal(settings: MngrSettings, repository: Path) -> None:
    """Disable the Modal provider, which makes mngr commands fail in a new home without an account."""
    mngr = Mngr(settings.path, mngr_environment(settings), repository)
    if any(plugin.name == "modal" and plugin.is_enabled for plugin in await mngr.plugins()):
        await mngr.set_config("providers.modal.is_enabled", "false")
