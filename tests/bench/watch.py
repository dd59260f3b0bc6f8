"""`swarm-tui watch` on real agents of mngr, beside `mngr kanpan` and `mngr list`: `python -m tests.bench.watch`.

Each agent has a record of mngr's and a tmux session of its own, in a home of their own. Figures: those of
`tests.bench.beside_agents`; and the time until a change of an agent is on the screen.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from swarm_tui.adapters.provision import find_mngr
from tests.bench.beside_agents import COLUMNS, make_agents, measure
from tests.bench.table import Figures, Table, machine
from tests.bench.terminal import quantile
from tests.bench.watched import Program, WatchedTerminal
from tests.isolation import IsolatedMngr, isolate_mngr

SEEN = "change seen ms"
SETTLED_AFTER = 15.0
"""So many seconds after its start the watch has asked `mngr list` once."""
READY = r"agent-\d\d\d"
ROOT = Path(__file__).parents[2]


def changes_seen(program: Program, isolated: IsolatedMngr, agents: int, times: int) -> Figures:
    """Let one agent begin and end turns; return the median time until the count of running agents says so."""
    record = next(iter(sorted((isolated.host_dir / "agents").iterdir())))
    active, spent = record / "active", []
    with WatchedTerminal(program) as terminal:
        terminal.begin()
        terminal.read_for(3.0)
        for number in range(times):
            begun, since = time.perf_counter(), len(terminal.pieces)
            if number % 2:
                active.unlink()
            else:
                active.touch()
            terminal.wait_for_output(rf"\?{agents}" if number % 2 else "◐1", within=20.0, since=since)
            spent.append(time.perf_counter() - begun)
            terminal.settle(1.0)
    active.unlink(missing_ok=True)
    return {SEEN: 1000 * quantile(spent, 0.5)}


def seconds_of_list(isolated: IsolatedMngr) -> Figures:
    begun = time.perf_counter()
    subprocess.run(
        [isolated.settings.path, "list"], env=isolated.environment, cwd=isolated.repository, capture_output=True
    )
    return {"list ms": 1000 * (time.perf_counter() - begun)}


@contextlib.contextmanager
def watch_on(isolated: IsolatedMngr) -> Iterator[Program]:
    """Return the watch of these agents, with a state of its own that shows a line for each agent."""
    with tempfile.TemporaryDirectory(prefix="swarm-bench-") as place:
        remembered = Path(place) / "swarm-tui" / "room.json"
        remembered.parent.mkdir(parents=True)
        remembered.write_text('{"is_taught": true}')
        environment = isolated.environment | {
            "XDG_STATE_HOME": place,
            "XDG_CONFIG_HOME": place,
            "SWARM_MNGR": isolated.settings.path,
            "PYTHONPATH": str(ROOT),
        }
        words = [sys.executable, "-m", "swarm_tui", "watch"]
        yield Program("room", words, READY, environment, isolated.repository)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=120)
    parser.add_argument("--keys", type=int, default=60)
    parser.add_argument("--idle", type=float, default=8.0, help="seconds without a key")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is started; the best figure counts")
    arguments = parser.parse_args()
    mngr = asyncio.run(find_mngr()).path
    table = Table((*COLUMNS, SEEN))
    with isolate_mngr(mngr) as isolated, watch_on(isolated) as watch:
        make_agents(isolated, arguments.agents)
        print(f"{arguments.agents} agents; {machine()}", flush=True)
        programs = [watch]
        if subprocess.run([mngr, "kanpan", "--help"], capture_output=True, check=False).returncode:
            table.missing["mngr kanpan"] = "not installed (a plugin of mngr: imbue-mngr-kanpan)"
        else:
            programs.append(Program("mngr kanpan", [mngr, "kanpan"], READY, isolated.environment, isolated.repository))
        for _ in range(arguments.rounds):
            for program in programs:
                measured = partial(measure, program, arguments.keys, arguments.idle, settled_after=SETTLED_AFTER)
                table.measure(program, measured)
            table.add("mngr list", seconds_of_list(isolated))
        table.measure(watch, partial(changes_seen, watch, isolated, arguments.agents, 10))
    print(f"{table.text()}\n{machine()}")


if __name__ == "__main__":
    main()
