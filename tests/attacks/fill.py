"""Full disks: each round puts a small file system below one part of a sweep, lets it be full, then gives it room.

Mounting needs root; where nobody may mount, nothing is tried, and that is said.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from swarm_tui.errors import SwarmError
from swarm_tui.journal.open import integrity_warnings, open_sweep
from tests.attacks.attack import Bounds, Table
from tests.attacks.forked import run_forked
from tests.attacks.kill import lost_work, tree_of
from tests.attacks.scripted_world import EXPECTED, World, make_world

ROUNDS: Final = 200
PARTS: Final[dict[str, Callable[[World], Path]]] = {
    "the sweep's folder": lambda world: world.project / ".swarm",
    "the repository": lambda world: world.project / ".git",
    "mngr's folder": lambda world: world.mngr,
    "temporary files": lambda world: world.root / "tmp",
}
PAGE: Final = 4096
ROOMY: Final = 64_000_000

SAID: Final = "an engine on a full disk goes on, or ends with a sentence and without a traceback"
FULL: Final = "(engines that a full disk has ended)"
UNHARMED: Final = "what was written before the disk was full is unharmed"
GOES_ON: Final = "when there is room again, `resume` brings the sweep to the end of an undisturbed one"


def attack(bounds: Bounds, table: Table) -> None:
    """Fill a disk and make room, round after round."""
    with tempfile.TemporaryDirectory(prefix="swarm-fill-") as temporary:
        if not _can_mount(Path(temporary)):
            print("fill: not tried here, for nobody may mount a file system")
            return
        pattern = make_world(Path(temporary) / "pattern")
        (pattern.root / "tmp").mkdir()
        calm = pattern.copy(Path(temporary) / "calm")
        ended = run_forked(lambda: _live(calm))
        if ended.code:
            raise RuntimeError(f"a sweep that nothing disturbs does not end well: {ended.output}")
        for number, dice in bounds.each():
            world = pattern.copy(Path(temporary) / "round")
            part = list(PARTS)[number % len(PARTS)]
            _play(world, part, dice, tree_of(calm), table, f"round {number}, {part}")
            shutil.rmtree(world.root)


def _play(world: World, part: str, dice: random.Random, tree: str, table: Table, what: str) -> None:
    with small_disk(PARTS[part](world), dice) as make_room:
        ended = run_forked(lambda: _live(world), limit=120.0)
        problems = [] if ended.code in (0, 1) else [f"code {ended.code}: {ended.output[-500:]}"]
        problems += ["a traceback: " + ended.output[-1500:]] if "Traceback" in ended.output else []
        problems += ["not a word"] if ended.code == 1 and not _says_why(world, ended.output) else []
        table.tried(SAID, problems, f"{what}, code {ended.code}")
        table.tried(FULL, [], what, times=ended.code)
        if world.folder.spec.exists():
            opened = open_sweep(world.folder)
            table.tried(UNHARMED, integrity_warnings(opened.state), what)
        make_room()
        again = run_forked(lambda: _live(world), limit=120.0)
        problems = [f"code {again.code}: {again.output[-800:]}"] if again.code else []
        if not problems:
            opened = open_sweep(world.folder)
            marks = {record.test.partition("::")[2]: record.mark for record in opened.state.tests()}
            problems += [] if marks == EXPECTED else [f"{marks}"]
            problems += [] if tree_of(world) == tree else ["another integrated tree"]
            problems += lost_work(opened)
        table.tried(GOES_ON, problems, what)


def _says_why(world: World, output: str) -> bool:
    """Return whether an engine has said why it failed: in its log, or at the end of the journal."""
    if output.strip():
        return True
    return world.folder.spec.exists() and bool(open_sweep(world.folder).state.ended_reason)


def _live(world: World) -> int:
    """Begin the sweep unless it is begun, and run an engine on it, as the program does."""
    tempfile.tempdir = str(world.root / "tmp")
    os.environ["TMPDIR"] = str(world.root / "tmp")
    try:
        if not world.folder.spec.exists() or not world.folder.events.exists():
            world.begin()
        return world.run()
    except SwarmError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(error, file=sys.stderr)
        return 1


@contextmanager
def small_disk(folder: Path, dice: random.Random) -> Iterator[Callable[[], None]]:
    """Put a file system with little room below a folder; the function that is returned makes room."""
    folder.mkdir(exist_ok=True)
    room = dice.choice((0, PAGE, 4 * PAGE, 16 * PAGE, 40 * PAGE, 100 * PAGE))
    _mount(folder, room)
    try:
        yield lambda: _call("mount", "-o", f"remount,size={ROOMY}", str(folder))
    finally:
        _call("umount", "--lazy", str(folder))


def _can_mount(folder: Path) -> bool:
    probe = folder / "probe"
    probe.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(probe)], capture_output=True)
    _call("umount", str(probe))
    return mounted.returncode == 0


def _mount(folder: Path, room: int) -> None:
    """Put a file system with so much room below a folder and what it holds."""
    kept = folder.with_name(folder.name + ".kept")
    shutil.copytree(folder, kept, symlinks=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOMY}", "tmpfs", str(folder)], check=True)
    shutil.copytree(kept, folder, symlinks=True, dirs_exist_ok=True)
    status = os.statvfs(folder)
    used = (status.f_blocks - status.f_bfree) * status.f_frsize
    _call("mount", "-o", f"remount,size={used + room + PAGE}", str(folder))
    shutil.rmtree(kept)


def _call(*words: str) -> None:
    subprocess.run(words, check=False, capture_output=True)
