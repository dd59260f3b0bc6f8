"""Tests that are bombs: a run of ours ends them, with all that they have started, and the other tests are run."""

from __future__ import annotations

import asyncio
import random
import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from swarm_tui.adapters.processes.confinement import BoundedRunner
from swarm_tui.adapters.pytest import SessionsHere, run_tests
from swarm_tui.model.run_limits import RunLimits, own_variables
from tests.attacks.hostile_programs import OWN_END, is_there
from tests.attacks.tricks import Trick
from tests.git_project import PYTEST_INI
from tests.waiting import until

PROCESSES: Final = 40
MEMORY: Final = 200 << 20
TIME_LIMIT: Final = 120.0
# Each has an end of its own, far beyond the limits: should nothing of ours hold, the machine bears it.
BOMBS: Final = {
    "forks": "for _ in range(120): os.fork() or time.sleep(300)\n    time.sleep(300)",
    "forks that leave": "for _ in range(120): os.fork() or (os.setsid(), time.sleep(300))\n    time.sleep(300)",
    "forks of forks": "depth = 0\n    while depth < 7:\n        depth += 1\n        os.fork()\n    time.sleep(300)",
    "a shell's": "subprocess.run(['sh', '-c', 'for n in $(seq 120); do sleep 300 & done; wait'])",
    "threads' programs": "for _ in range(120): subprocess.Popen(['sleep', '300'], start_new_session=True)\n"
    "    time.sleep(300)",
    "memory": "held = bytearray(1 << 30)",
    "memory by and by": "held = [bytearray(1 << 20) for _ in range(1024)]",
}
TESTS: Final = (
    "import os, subprocess, time\ndef test_good(): pass\ndef test_bomb():\n    {bomb}\ndef test_last(): pass\n"
)


def run_bomb(root: Path, dice: random.Random) -> Iterator[str]:
    """Run a file of tests with a bomb in it; return what was not bounded."""
    name = dice.choice(list(BOMBS))
    (root / "test_it.py").write_text(TESTS.format(bomb=BOMBS[name]))
    (root / "pytest.ini").write_text(PYTEST_INI)
    mark, started = f"MARK_{secrets.token_hex(8)}", time.monotonic()
    own = own_variables(1, str(root), RunLimits(memory_limit=MEMORY)) | {"HOSTILE_MARK": mark}
    Path(own["TMPDIR"]).mkdir()
    tests = {f"test_it.py::test_{each}": f"test_it.py::test_{each}" for each in ("good", "bomb", "last")}
    run = run_tests(
        SessionsHere(sys.executable, root, variables=own, timeout=TIME_LIMIT, runner=BoundedRunner(PROCESSES)), tests
    )
    outcomes = list(asyncio.run(run).outcomes.values())
    if outcomes != ["passed", "failed", "passed"]:
        yield f"{name}: {outcomes}"
    if time.monotonic() - started > OWN_END:
        yield f"{name}: it ran {time.monotonic() - started:.0f} s"
    try:
        until(lambda: not is_there(mark), "the end of its children")
    except AssertionError:
        yield f"{name}: children outlive it"


TRICKS: Final = (Trick("tests", "a test run is bounded in processes and memory, with all that it starts", run_bomb),)
