"""Programs that do not end, say too much, or start others: what the engine starts is bounded, with all its children."""

from __future__ import annotations

import asyncio
import random
import secrets
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from swarm_tui.adapters.processes.environment import scrubbed_environment
from swarm_tui.adapters.processes.run import run_process
from swarm_tui.errors import ProgramTimeout
from tests.attacks.tricks import Trick
from tests.waiting import until

OUTPUT_LIMIT: Final = 100_000
TIME_LIMIT: Final = 1.0
OWN_END: Final = 300.0
"""Seconds after which the programs end by themselves."""
PROGRAMS: Final = (
    "yes {mark}",
    "yes {mark} >&2",
    "for number in $(seq 30); do sleep 300 & done; echo begun; wait",
    "trap '' TERM INT HUP; for number in 1 2 3; do sleep 300; done",
    "head -c 50000000 /dev/zero; exec sleep 300",
    "(sleep 300; echo {mark}) & exec 1>&- 2>&-; sleep 300",
    "f() {{ sleep 0.1; [ $1 -gt 0 ] && f $(($1 - 1)) & f $(($1 - 1)) 2>/dev/null; wait; }}; f 4; sleep 300",
)


def run_bounded(root: Path, dice: random.Random) -> Iterator[str]:
    """Run a hostile program; return what of it was not bounded."""
    mark = f"MARK_{secrets.token_hex(8)}"
    script = dice.choice(PROGRAMS).format(mark=mark)
    words = ["bash", "-c", script]
    started = time.monotonic()
    try:
        own = scrubbed_environment({"HOSTILE_MARK": mark})
        finished = asyncio.run(
            run_process(words, cwd=root, environment=own, timeout=TIME_LIMIT, output_limit=OUTPUT_LIMIT)
        )
        if max(len(finished.stdout), len(finished.stderr)) > OUTPUT_LIMIT:
            yield "more output is kept than is asked for"
    except ProgramTimeout:
        pass
    if time.monotonic() - started > OWN_END:
        yield f"it ran {time.monotonic() - started:.0f} s"
    try:
        until(lambda: not is_there(mark), "the end of its children")
    except AssertionError:
        yield f"children outlive it: {script}"


def is_there(mark: str) -> bool:
    listed = subprocess.run(["ps", "-e", "-ww", "-o", "args=", "e"], capture_output=True).stdout
    return f"HOSTILE_MARK={mark}".encode() in listed


TRICKS: Final = (
    Trick("programs", "a program that is started is bounded in time and output, with its children", run_bounded),
)
