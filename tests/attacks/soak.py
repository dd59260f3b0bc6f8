"""A long run: a real sweep that does not end and a room on it, under requests and keys, watched for what grows.

A round is a minute, or all the time that there is.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from swarm_tui.adapters.provision import find_mngr
from swarm_tui.journal.append import engine_process_id
from swarm_tui.journal.follow import EventFollower
from swarm_tui.journal.open import integrity_warnings, open_sweep
from swarm_tui.journal.state import SweepState
from swarm_tui.model.results import State
from tests.attacks.attack import Bounds, Table
from tests.attacks.real_kills import isolated
from tests.sweep.endings import FILE, make_endings
from tests.sweep.sweeping import Program, offline
from tests.waiting import PATIENCE, until

ROUNDS: Final = 60
NAMES: Final = ("test_hangs", "test_clean", "test_fixed", "test_blocked", "test_asks", "test_given_up")
ACTIONS: Final = ("retry", "retry", "slots", "hold", "release", "message", "keys", "keys", "status", "pause")
KEYS: Final = ("+", "-", "w", "j", "k", "Enter", "Escape", "3", "4", "5", "6", "1", "t", "?", "Escape", "/", "Escape")
PAUSE: Final = 4.0
SIZE: Final = ("120", "36")

ALIVE: Final = "engine and room live through it all"
GROWTH: Final = "memory and open files of engine and room do not grow without an end"
RIGHT: Final = "what is shown is what the whole journal says"
ANSWERED: Final = "every request is answered"
NOTHING_LEFT: Final = "after `stop` and `clean` nothing is left"


@dataclass
class Watched:
    """A process, and what it has used each minute."""

    name: str
    process_id: int
    memory: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)

    def measure(self) -> None:
        root = Path(f"/proc/{self.process_id}")
        pages = int((root / "statm").read_text().split()[1])
        self.memory.append(pages * os.sysconf("SC_PAGE_SIZE"))
        self.files.append(len(os.listdir(root / "fd")))

    def problems(self) -> Iterator[str]:
        """Yield what has grown since it was warm: after a sixth of the time."""
        warm = max(1, len(self.memory) // 6)
        if len(self.memory) <= warm + 1:
            return
        before, after = max(self.memory[: warm + 1]), min(self.memory[-3:])
        if after > 1.5 * before + 50_000_000:
            yield f"{self.name} had {before >> 20} MiB after {warm} minutes, {after >> 20} MiB in the end"
        if min(self.files[-3:]) > max(self.files[: warm + 1]) + 10:
            yield f"{self.name} had {self.files[warm]} open files, {self.files[-1]} in the end"

    def __str__(self) -> str:
        return f"{self.name}: {self.memory[0] >> 20} to {self.memory[-1] >> 20} MiB, {self.files[-1]} files"


@dataclass
class Soak:
    """The sweep, its room, and what was asked of it."""

    program: Program
    dice: random.Random
    asked: int = 0

    def tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", "soak", *words], env=self.program.environment, capture_output=True, text=True
        )
        return done.stdout

    def begin(self) -> list[Watched]:
        names = " or ".join(NAMES)
        run = ("run", "--headless", *offline("records", "--slots", "3", "--speed", "4", "--timeout", "12h"))
        self.program.start(*run, "--wait-timeout", "12h", "--no-preflight", "--", "-k", names)
        runs = self.program.folder / ".swarm" / "runs"
        until(lambda: runs.is_dir() and any(runs.glob("*/engine.lock")), "the sweep", 300.0)
        until(lambda: self._state("test_hangs") is State.RUNNING, "the agent that hangs", 300.0)
        room = f"exec {sys.executable} -m swarm_tui"
        self.tmux("new-session", "-d", "-x", SIZE[0], "-y", SIZE[1], "-c", str(self.program.folder), room)
        until(lambda: self.program.newest().name in self.screen(), "the room", 120.0)
        room_id = int(self.tmux("display-message", "-p", "#{pane_pid}"))
        engine_id = engine_process_id(self.program.newest().lock)
        assert engine_id
        return [Watched("engine", engine_id), Watched("room", room_id)]

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def _state(self, name: str) -> State | None:
        record = self.program.opened().state.records.get(f"{FILE}::{name}")
        return record.state if record is not None else None

    def act(self) -> list[str]:
        """Do one thing at random; return what is wrong with its answer."""
        action, name = self.dice.choice(ACTIONS), self.dice.choice(NAMES[1:])
        match action:
            case "retry":
                return self._ask("retry", f"::{name}")
            case "slots":
                return self._ask("slots", str(self.dice.randint(2, 4)))
            case "hold":
                return [*self._ask("hold"), *self._ask("release")]
            case "release":
                return self._ask("release")
            case "message":
                return self._ask("message", "::test_asks", "--text", "The first.")
            case "keys":
                for _ in range(10):
                    self.tmux("send-keys", self.dice.choice(KEYS))
            case "status":
                done = self.program.call("status", "--json")
                return [] if done.returncode == 0 else [done.stderr[-300:]]
        time.sleep(PAUSE)
        return []

    def _ask(self, *words: str) -> list[str]:
        self.asked += 1
        done = self.program.call("request", *words)
        # The engine may say no, as to a message to an agent that does not wait: it has answered then.
        is_answered = done.returncode in (0, 1) and "has not answered" not in done.stderr
        return [] if is_answered and "Traceback" not in done.stderr else [f"{' '.join(words)}: {done.stderr[-300:]}"]


def attack(bounds: Bounds, table: Table) -> None:
    """Run a sweep for as many minutes as there are rounds."""
    mngr = asyncio.run(find_mngr()).path
    with isolated(mngr) as (root, environment, _):
        # tests/sweep/endings.py has a program, its tests and the agents' records.
        project = make_endings(root / "project", list(NAMES))
        soak = Soak(Program(project.root, environment), random.Random(bounds.seed))
        watched = soak.begin()
        try:
            for number, _ in bounds.each():
                _minute(soak, watched, number, table, min(60.0, bounds.seconds))
            for each in watched:
                table.tried(GROWTH, each.problems(), str(each), len(each.memory))
        finally:
            _end(soak, table)


def _minute(soak: Soak, watched: list[Watched], number: int, table: Table, minute: float) -> None:
    what, end = f"minute {number}", time.monotonic() + minute
    while time.monotonic() < end:
        table.tried(ANSWERED, soak.act(), what)
    gone = [each.name for each in watched if not Path(f"/proc/{each.process_id}").exists()]
    is_broken = "Traceback" in soak.screen()
    table.tried(ALIVE, [f"{name} has ended" for name in gone] + ["the room broke"] * is_broken, what)
    for each in watched:
        if each.name not in gone:
            each.measure()
    folder = soak.program.newest()
    opened = open_sweep(folder)
    events = EventFollower(folder.events).read().events
    whole = SweepState(opened.spec.tests).apply_all(each for each in events if each.seq <= opened.state.last_seq)
    problems = list(integrity_warnings(opened.state))
    if list(whole.tests()) != list(opened.state.tests()):
        problems.append("the snapshot and the rest give another state than the whole journal")
    table.tried(RIGHT, problems, what)
    print(f"{what}: {soak.asked} requests, journal {folder.events.stat().st_size >> 10} KiB, ", *watched, flush=True)


def _programs_with(name: str) -> list[str]:
    """Return the command lines on this machine in which a name stands."""
    listed = subprocess.run(["ps", "-e", "-ww", "-o", "args="], capture_output=True, text=True, check=True).stdout
    return [line[:200] for line in listed.splitlines() if name in line]


def _end(soak: Soak, table: Table) -> None:
    name = soak.program.newest().name
    soak.tmux("kill-server")
    stopped = soak.program.call("stop")
    cleaned = soak.program.call("clean", "--yes", "--folder")
    problems = [done.stderr[-300:] for done in (stopped, cleaned) if done.returncode]
    # A watcher of mngr sees within seconds that its agent is gone.
    deadline = time.monotonic() + PATIENCE
    while (left := _programs_with(name)) and time.monotonic() < deadline:
        time.sleep(0.2)
    problems += left
    if soak.program.folder.joinpath(".swarm", "runs", name).exists():
        problems.append("the folder of the sweep is still there")
    table.tried(NOTHING_LEFT, problems, "in the end")
