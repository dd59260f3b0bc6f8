"""Kills: the engine at every moment of a sweep, and engine, agents, mngr and tmux of a real sweep at random.

Nine of ten rounds run the real engine with agents that hand in at once, and kill it before the n-th act on a file,
other moments in each round until all were tried; what is resumed may be killed again. Every tenth round is a whole
sweep through the real mngr and tmux.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from swarm_tui.journal.open import OpenedSweep, integrity_warnings, open_sweep
from tests.attacks.attack import Bounds, Table
from tests.attacks.forked import NOT_STRUCK, count_acts, run_forked
from tests.attacks.real_kills import journal_problems, play_round
from tests.attacks.scripted_world import EXPECTED, World, make_world
from tests.git_project import quiet_environment
from tests.integrator.integrator_project import SWEEP

ROUNDS: Final = 300
REAL_EVERY: Final = 10
LOSING_EVERY: Final = 4
MOST_LIVES: Final = 12
# Neither divides the other, so that rounds one after the other strike far apart, and all moments in the end.
STRIDE: Final = 7919

RESULTS: Final = "after a kill and a resume every test has the result of an undisturbed sweep"
TREE: Final = "the integrated tree is that of an undisturbed sweep"
ONCE: Final = "nothing is launched or pulled twice"
LOST: Final = "the same with any line of the journal lost in between"
KEPT: Final = "what was pulled is still there"
WHOLE: Final = "the journal has no gap, and nothing that the engine did not write"
REAL: Final = "a real sweep ends the same, whatever of it is killed"


def attack(bounds: Bounds, table: Table) -> None:
    """Kill and resume, round after round."""
    with tempfile.TemporaryDirectory(prefix="swarm-kill-") as temporary:
        pattern = make_world(Path(temporary) / "pattern")
        calm = pattern.copy(Path(temporary) / "calm")
        acts = count_acts(lambda: _live(calm), Path(temporary) / "acts")
        expected_tree = tree_of(calm)
        undisturbed = None
        for number, dice in bounds.each():
            if number % REAL_EVERY == REAL_EVERY - 1:
                undisturbed = undisturbed or _undisturbed()
                blows, problems, _ = play_round(_mngr(), number, undisturbed, bounds.keep)
                table.tried(REAL, problems, f"round {number}: {', '.join(blows)}")
                continue
            world = pattern.copy(Path(temporary) / "round")
            strike = 1 + number * STRIDE % acts
            is_losing = number % LOSING_EVERY == LOSING_EVERY - 1
            problem = live_and_die(world, strike, acts, dice, is_losing=is_losing)
            what = f"round {number}, act {strike} of {acts}"
            if is_losing:
                _judge_loss(world, problem, expected_tree, table, what)
            else:
                _judge(world, problem, expected_tree, table, what)
            if table.failures and bounds.keep is not None:
                shutil.copytree(world.root, bounds.keep / f"kill-{number}", symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(world.root)


def live_and_die(world: World, strike: int, acts: int, dice: random.Random, *, is_losing: bool = False) -> str:
    """Run and resume a sweep that is struck at least once; return what kept it from its end."""
    for _ in range(MOST_LIVES):
        ended = run_forked(lambda: _live(world), strike=strike)
        if ended.is_late:
            return f"an engine that was to die at act {strike} did not end: {ended.output[-500:]}"
        if ended.code == 0:
            return ""
        if ended.code > 0:
            return f"an engine failed: {ended.output[-500:]}"
        strike = dice.choice((NOT_STRUCK, dice.randint(1, acts)))
        if is_losing:
            _lose_lines(world.folder.events, dice)
    return "" if run_forked(lambda: _live(world)).code == 0 else "it does not come to its end"


def _live(world: World) -> int:
    """Begin the sweep unless it is begun, and run an engine on it."""
    if not world.folder.spec.exists():
        world.begin()
    return world.run()


def _lose_lines(journal: Path, dice: random.Random) -> None:
    lines = journal.read_bytes().splitlines(keepends=True) if journal.exists() else []
    for _ in range(dice.choice((1, 1, 3))):
        if lines:
            del lines[dice.randrange(len(lines))]
    if lines:
        journal.write_bytes(b"".join(lines))


def _judge_loss(world: World, problem: str, tree: str, table: Table, what: str) -> None:
    if not problem:
        opened = open_sweep(world.folder)
        marks = {record.test.partition("::")[2]: record.mark for record in opened.state.tests()}
        found = tree_of(world)
        problem = "" if (marks, found) == (EXPECTED, tree) else f"{marks}, tree {found}"
        problem = problem or "; ".join(lost_work(opened))
    table.tried(LOST, [problem] if problem else [], what)


def _judge(world: World, problem: str, tree: str, table: Table, what: str) -> None:
    if problem:
        table.tried(RESULTS, [problem], what)
        return
    opened = open_sweep(world.folder)
    marks = {record.test.partition("::")[2]: record.mark for record in opened.state.tests()}
    table.tried(RESULTS, [f"{marks}"] if marks != EXPECTED else [], what)
    found = tree_of(world)
    table.tried(TREE, [f"it is {found}, not {tree}"] if found != tree else [], what)
    table.tried(ONCE, journal_problems(opened), what)
    table.tried(KEPT, lost_work(opened), what)
    table.tried(WHOLE, integrity_warnings(opened.state), what)


def lost_work(opened: OpenedSweep) -> list[str]:
    """Return what an agent has handed in, and is not in the folder of the sweep."""
    problems = []
    for record in opened.state.tests():
        folder = opened.folder.agent(record.agent)
        wanted = [folder / "test_output" / "testing_agent_outcome.json"]
        wanted += [folder / "branch.bundle"] if record.mark == "impl_fix" else []
        problems += [f"{path.name} of {record.test} is gone" for path in wanted if not path.is_file()]
        problems += [f"{path.name} is left" for path in folder.glob(".pulling*")]
    return problems


def tree_of(world: World) -> str:

    words = ["git", "rev-parse", f"refs/heads/swarm/{SWEEP}/integrated^{{tree}}"]
    done = subprocess.run(words, cwd=world.project, env=quiet_environment(), capture_output=True, text=True)
    return done.stdout.strip()


def _mngr() -> str:
    from swarm_tui.adapters.provision import find_mngr

    return asyncio.run(find_mngr()).path


def _undisturbed() -> str:
    _, problems, tree = play_round(_mngr(), None, None)
    if problems:
        raise RuntimeError(f"a sweep that nothing disturbs does not end well: {problems}")
    return tree
