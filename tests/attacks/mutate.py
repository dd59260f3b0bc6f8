"""Damaged folders: each round damages that of a finished sweep, and calls commands and the room on it."""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import pkgutil
import random
import resource
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import swarm_tui
from tests.attacks.attack import Bounds, Table
from tests.attacks.damage import damage
from tests.attacks.forked import Ended, run_forked
from tests.attacks.scripted_world import World, make_world
from tests.integrator.integrator_project import SWEEP

ROUNDS: Final = 3000
COMMANDS_EACH: Final = 4
ROOM_EVERY: Final = 10
MEMORY: Final = 3 << 30
LIMIT: Final = 120.0
LARGEST_KEPT: Final = 10_000_000

COMMANDS: Final[tuple[tuple[str, ...], ...]] = (
    ("status",), ("status", "--json"), ("list",), ("list", "--json"), ("events",), ("events", "--json"), ("pending",),
    ("pending", "--json"), ("fixes", "--list"), ("fixes", "--json"), ("fixes", "--diff", "1"), ("fixes", "--pr-body"),
    ("report", "-o", "../page"), ("wait", "--until", "done", "--timeout", "1s"), ("stop",), ("request", "slots", "3"),
    ("request", "message", "test_add", "--text", "x"), ("answer", "x", "--text", "y"), ("attach", "test_add"),
    ("integrate", "--integrator", "builtin"), ("clean", "--yes"), ("resume", "--headless"),
)  # fmt: skip
KEYS: Final = ("plus", "w", "j", "enter", "escape", "3", "j", "e", "escape", "4", "5", "6", "7", "1", "t", "escape")

SENTENCE: Final = "every command on a damaged folder ends with a sentence and a code of 0, 1 or 2"
WAITS: Final = "no command waits for what is no file, or reads without an end"
OUTSIDE: Final = "nothing outside the folder of the sweep is changed"
TRUE: Final = "what is shown of a damaged journal is true, or it is said that something is lost"
ROOM: Final = "the room stays up on a damaged folder, or refuses it with a sentence"


def attack(bounds: Bounds, table: Table) -> None:
    """Damage and look, round after round."""
    _import_all()
    with tempfile.TemporaryDirectory(prefix="swarm-mutate-") as temporary:
        pattern = make_world(Path(temporary) / "pattern")
        ended = run_forked(lambda: _finish(pattern))
        if ended.code:
            raise RuntimeError(f"a sweep that nothing disturbs does not end well: {ended.output}")
        truth = _records(_call(pattern, ("status", "--json")))
        for number, dice in bounds.each():
            _play(pattern, Path(temporary) / "round", number, dice, truth, table, bounds.keep)


def _import_all() -> None:
    """Import what the commands and the room need, so that no forked process has to."""
    for found in pkgutil.walk_packages(swarm_tui.__path__, "swarm_tui."):
        if not any(part in found.name for part in ("__main__", ".demo.sample", "swarm_live", "mngr_plugin")):
            importlib.import_module(found.name)
    # What is collected in a forked process would be copied for it.
    gc.freeze()


def _play(
    pattern: World, root: Path, number: int, dice: random.Random, truth: Any, table: Table, keep: Path | None
) -> None:
    world = pattern.copy(root)
    secret = root / "secret" / "file"
    secret.parent.mkdir()
    secret.write_text("a secret\n")
    before, failures = _outside(world), table.failures
    done = damage(world.folder.root, dice, secret)
    what = f"round {number}, {', '.join(f'{way} {path}' for path, way in done)}"
    journal_damaged = all(path in ("events.jsonl", "snapshot.json") for path, _ in done)
    if journal_damaged:
        _judge_truth(_call(world, ("status", "--json")), truth, done, table, what)
    for words in dice.sample(COMMANDS, COMMANDS_EACH):
        _judge(_call(world, words), table, f"{what}: {' '.join(words)}")
    if number % ROOM_EVERY == 0:
        ended = run_forked(lambda: _look(world), limit=LIMIT)
        problems = [ended.output[-1500:]] if ended.code or ended.is_late else []
        table.tried(ROOM, problems, what)
    after = _outside(world)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    table.tried(OUTSIDE, sorted(changed), what)
    if table.failures > failures and keep is not None:
        # A copy of a file with holes has none any more.
        too_large = [path for path in root.rglob("*") if path.is_file() and path.stat().st_size > LARGEST_KEPT]
        for path in too_large:
            path.unlink()
        shutil.copytree(root, keep / f"mutate-{number}", symlinks=True, dirs_exist_ok=True)
    shutil.rmtree(root)


def _judge(ended: Ended, table: Table, what: str) -> None:
    table.tried(WAITS, [f"after {ended.seconds:.0f} s it had not ended"] if ended.is_late else [], what)
    if ended.is_late:
        return
    problems = []
    if ended.code not in (0, 1, 2, 124):
        problems.append(f"code {ended.code}")
    if "Traceback (most recent call last)" in ended.output:
        problems.append("a traceback")
    if ended.code and not ended.output.strip():
        problems.append("not a word")
    table.tried(SENTENCE, [*problems, ended.output[-1500:]] if problems else [], what)


def _judge_truth(ended: Ended, truth: Any, done: Sequence[tuple[str, str]], table: Table, what: str) -> None:
    """Compare what is shown with what was there before, unless it is said that something is missing."""
    try:
        shown = json.loads(ended.output)
    except ValueError:
        table.tried(TRUE, [] if ended.code in (1, 2) else [ended.output[-500:]], what)
        return
    # What was cut off is told by the snapshot, where that is whole.
    is_journal_gone = "snapshot.json" in {path for path, _ in done}
    is_told = shown["integrity_warnings"] or is_journal_gone
    problems = [] if is_told or _records(ended) == truth else ["another state, and no doubt"]
    table.tried(TRUE, problems, what)


def _records(ended: Ended) -> Any:
    content = json.loads(ended.output)
    return [content["counts"], content["state"], content["tests"]]


def _finish(world: World) -> int:
    _use_own_folders(world)
    world.begin()
    code = world.run()
    # An old request, verdicts and put-off items are part of what may be damaged.
    from swarm_tui.journal.requests import RequestKind, append_request
    from swarm_tui.questions.deferred import DeferredItems

    append_request(world.folder, RequestKind.SLOTS, slots=3)
    DeferredItems(world.folder).change(["x"], is_deferred=True)
    return code


def _call(world: World, words: Sequence[str]) -> Ended:
    def call() -> int:
        from swarm_tui.cli.main import run_command_line

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        os.chdir(world.project)
        _use_own_folders(world)
        sys.setrecursionlimit(1000)
        return run_command_line(list(words))

    return run_forked(call, limit=LIMIT)


def _use_own_folders(world: World) -> None:
    """Use the folders of this world, as a user of its own would."""
    os.environ |= {
        "XDG_CONFIG_HOME": str(world.root / "config"),
        "XDG_STATE_HOME": str(world.root / ".local/state"),
        "HOME": str(world.root),
        "SWARM_MNGR": "/bin/false",
    }


def _look(world: World) -> int:
    from swarm_tui.errors import SwarmError

    _use_own_folders(world)
    try:
        asyncio.run(_press_keys(world))
    except SwarmError as error:
        print(error)
    return 0


async def _press_keys(world: World) -> None:
    from swarm_tui.journal.folder import find_sweep
    from tests.room.scenes import Scene, press, room_on

    async with room_on(find_sweep(world.project, SWEEP), Scene("damaged", ())) as (app, pilot):
        for key in KEYS:
            await press(pilot, key)
        if not app.is_running:
            raise RuntimeError("the room has left")


def _outside(world: World) -> dict[str, tuple[int, int, bytes]]:
    """Return what lies beside the sweep's folder; what git and our commands may write there is left out."""
    found = {}
    for top, folders, names in os.walk(world.root):
        if Path(top) == world.project:
            folders[:] = [name for name in folders if name != ".swarm"]
        if Path(top) == world.root:
            folders[:] = [name for name in folders if name != "page"]
        if Path(top).name == ".git":
            # Refs may change when a sweep is cleaned or integrated, and objects be added.
            folders[:], names = [name for name in folders if name in ("hooks", "info")], ["config", "HEAD"]
        for name in names:
            path = Path(top) / name
            if path.is_file() and "config" not in path.parent.name and ".local" not in path.parts:
                status = path.lstat()
                found[str(path.relative_to(world.root))] = (status.st_mode, status.st_size, path.read_bytes())
    return found
