"""Starts the demo's sweep: the sample's tests, the offline agent, a mngr home and a tmux server of its own."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.mngr_settings import mngr_environment
from swarm_tui.adapters.provision import FoundMngr, find_mngr, install_mngr
from swarm_tui.demo.sample import RECORDS, TESTS, TUTORIAL, sample_repository
from swarm_tui.engine.order import Order, begin_sweep, check_order, prepare_sweep
from swarm_tui.engine.start import start_engine
from swarm_tui.errors import ProgramMissing
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.sweep import MngrSettings

SLOTS: Final = 6
TITLE: Final = "demo: larder"
# Long enough for a person who looks around first; a demo without a person has to end.
WAIT_TIMEOUT: Final = 600.0
# The path of a tmux socket has to stay under 107 bytes, whatever TMPDIR says.
_SHORT_FOLDER: Final = Path("/tmp")

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
    """Make the repository, find or install mngr, and start a sweep apart from the user's own mngr, tmux and git."""
    order = Order(
        folder=Path.cwd(),
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
        is_trial_skipped=True,
    )
    check_order(order)
    mngr = await find_or_install_mngr(options.mngr, progress)
    repository = sample_repository(options.folder)
    progress(f"sample project: {repository}")
    settings = make_private_home(mngr.path)
    try:
        await _disable_modal(settings, repository)
        order = replace(order, folder=repository, tutorial=str(repository / TUTORIAL), mngr_settings=settings)
        spec, tests = await prepare_sweep(order, progress)
        folder = begin_sweep(spec, tests)
    except BaseException:
        # No sweep refers to this home yet, so `clean` would not find it.
        shutil.rmtree(Path(str(settings.home)).parent, ignore_errors=True)
        raise
    progress(f"sweep {folder.name}: {len(tests)} tests, {spec.slots} slots, mngr {mngr.version} in a home of its own")
    start_engine(folder)
    return folder


async def find_or_install_mngr(override: str | None, progress: Progress) -> FoundMngr:
    """Return a mngr of a supported version; install one into swarm-tui's private environment where there is none."""
    try:
        return await find_mngr(override)
    except ProgramMissing as error:
        if override or os.environ.get("SWARM_MNGR"):
            raise
        progress(f"{error.message}: it is put into swarm-tui's own environment now, nothing else is touched")
        return await install_mngr(progress)


def make_private_home(mngr: str) -> MngrSettings:
    """Make a mngr home and a tmux folder for one sweep; `swarm-tui clean` removes them."""
    root = Path(tempfile.mkdtemp(prefix="sw", dir=_SHORT_FOLDER if _SHORT_FOLDER.is_dir() else None))
    home, tmux = root / "home", root / "t"
    home.mkdir()
    tmux.mkdir()
    return MngrSettings(path=mngr, host_dir=str(home / ".mngr"), tmux_tmpdir=str(tmux), home=str(home))


async def _disable_modal(settings: MngrSettings, repository: Path) -> None:
    """Disable the Modal provider: without an account it makes mngr commands complain in a new home."""
    mngr = Mngr(settings.path, mngr_environment(settings), repository)
    if any(plugin.name == "modal" and plugin.is_enabled for plugin in await mngr.plugins()):
        await mngr.set_config("providers.modal.is_enabled", "false")
