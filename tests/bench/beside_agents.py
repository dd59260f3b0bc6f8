"""The room on 120 agents, beside other boards and lists: `python -m tests.bench.beside_agents`.

`mngr kanpan` shows 120 agents of a mngr with a home of its own, lazygit a list of commits, and a bare Textual app
nothing but a counter. Figures: from the start to the first frame and to the list, from a key that moves the cursor
to the first change of the screen, processor time while nothing happens, and memory with all children.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.adapters.provision import find_mngr
from swarm_tui.errors import SwarmError
from tests.bench.beside_reviews import lazygit_on
from tests.bench.merge_view import write_repository
from tests.bench.room_latency import BARE_APP, fed_sweep
from tests.bench.table import Figures, Table, machine
from tests.bench.terminal import quantile
from tests.bench.watched import Program, WatchedTerminal, key_times, start_times
from tests.git_project import GitProject
from tests.isolation import IsolatedMngr, isolate_mngr

COLUMNS = ("first frame ms", "list ms", "key p50 ms", "key p99 ms", "idle CPU %", "memory MB")
ROOT = Path(__file__).parents[2]
DOWN, UP = b"\x1b[B", b"\x1b[A"
TURN = 15
"""So many keys down, then as many up: never against an end."""


def measure(program: Program, keys: int, idle_seconds: float, *, settled_after: float = 2.0) -> Figures:
    """Start a program, leave it alone once it has settled, then move its cursor about."""
    with WatchedTerminal(program) as terminal:
        terminal.begin()
        terminal.read_for(settled_after)
        cpu, started = terminal.cpu_seconds(), time.perf_counter()
        terminal.read_for(idle_seconds)
        cpu_percent = 100 * (terminal.cpu_seconds() - cpu) / (time.perf_counter() - started)
        terminal.press_timed(DOWN)
        pressed = [terminal.press_timed(UP if number // TURN % 2 else DOWN) for number in range(keys)]
        memory = terminal.memory_megabytes()
        first, ready = start_times(terminal)
        times = key_times(terminal, pressed)
    if len(times) < 0.9 * keys:
        raise TimeoutError(f"only {len(times)} of {keys} keys changed anything")
    half, most = (1000 * quantile(times, part) for part in (0.5, 0.99))
    return dict(zip(COLUMNS, (1000 * first, 1000 * ready, half, most, cpu_percent, memory), strict=True))


@contextlib.contextmanager
def kanpan(agents: int) -> Iterator[Program | str]:
    """Return `mngr kanpan` on so many agents, or why it cannot be had."""
    try:
        mngr = asyncio.run(find_mngr())
    except SwarmError as error:
        yield str(error)
        return
    if subprocess.run([mngr.path, "kanpan", "--help"], capture_output=True, check=False).returncode:
        yield "not installed (a plugin of mngr: imbue-mngr-kanpan)"
        return
    with isolate_mngr(mngr.path) as isolated:
        make_agents(isolated, agents)
        yield Program("mngr kanpan", [mngr.path, "kanpan"], r"agent-\d\d\d", isolated.environment, isolated.repository)


def make_agents(isolated: IsolatedMngr, count: int) -> None:
    """Let mngr create one agent; all others are copies of its record, each with a session of its own."""
    name = "agent-000"
    request = CreateRequest(
        name=name, command=(str(isolated.agent),), source=isolated.repository, transfer="none", message=None
    )
    asyncio.run(isolated.adapter.create(request))
    first = next((isolated.host_dir / "agents").iterdir())
    record = json.loads((first / "data.json").read_text())
    for number in range(1, count):
        other = f"agent-{number:03}"
        record |= {"id": f"agent-{uuid.uuid4().hex}", "name": other}
        folder = shutil.copytree(first, first.parent / record["id"])
        (folder / "data.json").write_text(json.dumps(record))
        session = f"{isolated.settings.prefix}{other}"
        words = ["tmux", "new-session", "-d", "-s", session, "-n", "agent", f"{isolated.agent}; true"]
        subprocess.run(words, env=isolated.environment, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=120)
    parser.add_argument("--keys", type=int, default=90)
    parser.add_argument("--idle", type=float, default=8.0, help="seconds without a key")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is started; the best figure counts")
    arguments = parser.parse_args()
    table = Table(COLUMNS)
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="swarm-bench-")))
        project = GitProject(place / "repository")
        write_repository(project, 2_000, 600)
        board = stack.enter_context(kanpan(arguments.agents))
        sweep = stack.enter_context(fed_sweep(arguments.agents, 0, place))
        print(f"{arguments.agents} agents; {machine()}", flush=True)
        programs = [
            _room(sweep, place),
            Program("bare textual", [sys.executable, "-c", BARE_APP], "of all"),
            lazygit_on(project.root, place),
        ]
        if isinstance(board, str):
            table.missing["mngr kanpan"] = board
        else:
            programs.append(board)
        for _ in range(arguments.rounds):
            for program in programs:
                table.measure(program, partial(measure, program, arguments.keys, arguments.idle))
    print(f"{table.text()}\n{machine()}")


def _room(sweep: Path, place: Path) -> Program:
    # One line a test, as the others have one line an agent or a commit.
    remembered = place / "state" / "swarm-tui" / "room.json"
    remembered.parent.mkdir(parents=True, exist_ok=True)
    remembered.write_text(json.dumps({"is_taught": True, "projects": {str(ROOT): {"zoom": "rows"}}}))
    environment = {"XDG_STATE_HOME": str(place / "state"), "XDG_CONFIG_HOME": str(place / "config")}
    return Program("room", [sys.executable, "-m", "swarm_tui", "open", str(sweep)], r"test_\w+", environment, ROOT)


if __name__ == "__main__":
    main()
