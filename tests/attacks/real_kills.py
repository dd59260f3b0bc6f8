"""Chaos: kills engine, agents and tmux server of a real sweep at random moments and resumes, round after round.

    python -m tests.attacks.real_kills --rounds 100 --seed 7 --keep failed

Each round has to end with the results and the integrated tree of an undisturbed sweep, no result pulled twice, no
test launched twice.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.mngr_settings import mngr_environment
from swarm_tui.adapters.provision import find_mngr
from swarm_tui.adapters.scratch import short_folder
from swarm_tui.adapters.tmux import Tmux
from swarm_tui.integrator.events import IntegrationStarted
from swarm_tui.journal.append import engine_process_id
from swarm_tui.journal.events import Launched, Pulled, Queued
from swarm_tui.journal.follow import EventFollower
from swarm_tui.journal.open import OpenedSweep
from swarm_tui.model.event import INTEGRATOR_KEY
from swarm_tui.model.spec import MngrSettings
from swarm_tui.sweep.resume import LOST_ENDS
from tests.sweep.endings import EXPECTED, make_endings
from tests.sweep.sweeping import Program, kill_engine, offline
from tests.waiting import until

NAMES = ("test_clean", "test_fixed", "test_wrong_test", "test_tutorial", "test_given_up", "test_blocked", "test_asks")
BLOWS = ("engine", "engine", "engine", "engine gently", "agent", "tmux", "create")
ROUND_DEADLINE = 300.0


@dataclass
class Round:
    """One sweep and what was done to it."""

    program: Program
    tmux: Tmux
    blows: list[str] = field(default_factory=list)

    def run(self, dice: random.Random | None) -> None:
        """Start a sweep, strike it some times when there are dice, and bring it to its end."""
        words = ("run", "--headless", *offline("records", "--slots", "3", "--speed", "8", "--answers-itself"))
        self.program.start(*words, "--", "-k", " or ".join(NAMES))
        until(self._has_begun, "the sweep to begin")
        if dice is not None:
            self._harass(dice)
        self._bring_to_end()

    def _has_begun(self) -> bool:
        runs = self.program.folder / ".swarm" / "runs"
        if not runs.is_dir() or not any(runs.glob("*/engine.lock")):
            return False
        return bool(engine_process_id(self.program.newest().lock) or self.program.opened().state.ended_why)

    def _harass(self, dice: random.Random) -> None:
        for _ in range(dice.randint(2, 5)):
            time.sleep(dice.uniform(0.1, 6.0))
            self._strike(dice)
            if engine_process_id(self.program.newest().lock) is None:
                if self.program.opened().state.ended_why == "finished":
                    break
                self._resume()

    def _strike(self, dice: random.Random) -> None:
        blow = dice.choice(BLOWS)
        self.blows.append(blow)
        match blow:
            case "engine":
                kill_engine(self.program.newest())
            case "engine gently":
                kill_engine(self.program.newest(), signal.SIGTERM)
            case "tmux":
                asyncio.run(self.tmux.kill_server())
            case "agent" | "create":
                self._kill_one("swarm-agent" if blow == "agent" else "create swarm-", dice)

    def _kill_one(self, mark: str, dice: random.Random) -> None:
        """Kill one process of this sweep whose command line holds the mark."""
        listed = subprocess.run(["ps", "-e", "-ww", "-o", "pid=,args="], capture_output=True, text=True, check=True)
        sweep = self.program.newest().name
        found = [line.split(None, 1) for line in listed.stdout.splitlines() if mark in line and sweep in line]
        if found:
            with suppress(ProcessLookupError):
                os.kill(int(dice.choice(found)[0]), signal.SIGKILL)

    def _resume(self) -> None:
        done = self.program.start("resume", "--relaunch", "--headless")
        until(
            lambda: engine_process_id(self.program.newest().lock) or done.poll() is not None,
            "the engine to resume",
            300.0,
        )

    def _bring_to_end(self) -> None:
        end = time.monotonic() + ROUND_DEADLINE
        while time.monotonic() < end:
            until(lambda: engine_process_id(self.program.newest().lock) is None, "the engine to end", ROUND_DEADLINE)
            opened = self.program.opened()
            is_lost = any(record.pulled.end in LOST_ENDS for record in opened.state.tests())
            is_integrated = opened.state.integration.state == "done"
            if opened.state.ended_why == "finished" and not is_lost and is_integrated:
                return
            self._resume()
        raise AssertionError(f"after {self.blows} the sweep does not come to its end")


def problems_of(opened: OpenedSweep, tree: str, undisturbed: str | None) -> list[str]:
    """Return what is wrong with a sweep that has come to its end."""
    problems = []
    for record in opened.state.tests():
        expected = EXPECTED[record.test.partition("::")[2]][0]
        if record.mark != expected:
            problems.append(f"{record.test} is {record.mark}, not {expected} ({record.reason})")
    if undisturbed is not None and tree != undisturbed:
        problems.append(f"the integrated tree is {tree}, not {undisturbed}")
    return problems + journal_problems(opened)


def journal_problems(opened: OpenedSweep) -> list[str]:
    """Return what the journal tells of tests that were launched twice, or results that were lost."""
    problems = []
    is_out: dict[str, bool] = {}
    is_kept: dict[str, bool] = {}
    for event in EventFollower(opened.folder.events).read().events:
        if isinstance(event, Launched) and not event.is_adopted:
            if is_out.get(event.test):
                problems.append(f"{event.test} was launched twice")
            is_out[event.test] = True
        elif isinstance(event, IntegrationStarted):
            is_out[INTEGRATOR_KEY] = False
        elif isinstance(event, Queued):
            is_out[event.test] = False
            if is_kept.get(event.test):
                problems.append(f"{event.test} had a result and was queued again")
        elif isinstance(event, Pulled):
            if is_kept.get(event.test):
                problems.append(f"{event.test} was pulled twice")
            is_kept[event.test] = event.pulled.end == "archive"
    return problems


@contextmanager
def isolated(mngr: str) -> Iterator[tuple[Path, dict[str, str], Tmux]]:
    """Return a folder, and an environment with a mngr home and a tmux server in it, gone afterwards."""
    root = Path(tempfile.mkdtemp(dir=short_folder(), prefix="sw"))
    for name in ("home", "t"):
        (root / name).mkdir()
    settings = MngrSettings(
        path=mngr, host_dir=str(root / "home" / ".mngr"), tmux_tmpdir=str(root / "t"), home=str(root / "home")
    )
    extra = {"SHELL": "/bin/bash", "LANG": "C.UTF-8", "SWARM_MNGR": mngr}
    environment = mngr_environment(settings, extra)
    tmux = Tmux(environment)
    subprocess.run(["git", "init", "--quiet", str(root / "empty")], check=True)
    asyncio.run(_quiet(Mngr(mngr, environment, root / "empty")))
    try:
        yield root, environment, tmux
    finally:
        asyncio.run(tmux.kill_server())
        # What was killed a moment ago may still write its last words.
        until(lambda: subprocess.run(["rm", "-rf", str(root)], capture_output=True).returncode == 0, "the folder to go")


async def _quiet(adapter: Mngr) -> None:
    if any(plugin.name == "modal" for plugin in await adapter.plugins()):
        await adapter.set_config("providers.modal.is_enabled", "false")


def play_round(
    mngr: str, seed: int | None, undisturbed: str | None, keep: Path | None = None
) -> tuple[list[str], list[str], str]:
    """Play one round; return the blows, the problems and the integrated tree. Without a seed nothing is struck.

    The project of a round with problems is copied to `keep`, for whoever looks for their cause.
    """
    with isolated(mngr) as (root, environment, tmux):
        project = make_endings(root / "project", list(NAMES))
        played = Round(Program(project.root, environment), tmux)
        try:
            played.run(None if seed is None else random.Random(seed))
            opened = played.program.opened()
            tree = project.git("rev-parse", f"swarm/{opened.folder.name}/integrated^{{tree}}")
            problems = problems_of(opened, tree, undisturbed)
        except AssertionError as error:
            tree, problems = "", [str(error)]
        left = project.git("status", "--porcelain").split("\n")
        problems += [f"{name} is left in the checkout" for name in left if name]
        if problems and keep is not None:
            shutil.copytree(project.root, keep / f"seed-{seed}", symlinks=True)
        return played.blows, problems, tree


def main() -> int:
    """Play rounds and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the projects of failed rounds there")
    arguments = parser.parse_args()
    mngr = asyncio.run(find_mngr()).path
    _, problems, undisturbed = play_round(mngr, None, None)
    print(f"undisturbed: {problems or 'as expected'}", flush=True)
    failed = 0
    for seed in range(arguments.seed, arguments.seed + arguments.rounds):
        started = time.monotonic()
        blows, problems, _ = play_round(mngr, seed, undisturbed, arguments.keep)
        failed += bool(problems)
        print(f"seed {seed}: {', '.join(blows)}: {problems or 'well'} ({time.monotonic() - started:.0f} s)", flush=True)
    print(f"{arguments.rounds} rounds, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
