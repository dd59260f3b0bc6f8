"""Limits of test runs, as environment variables for the pytest plugin of swarm-tui.

SWARM_AGENT_NUMBER   number of the agent, unique among the live agents of the sweep, from 1
SWARM_FIRST_PORT     first port of a range that no other agent of the sweep uses; other sweeps start at another port
SWARM_LAST_PORT      last reserved port
TMPDIR               temporary folder of the agent
SWARM_OWN_HOME       folder that tests get as HOME
SWARM_TEST_TIMEOUT   time limit of one test, in seconds
SWARM_MEMORY_LIMIT   memory limit of each process of a test run, in bytes
SWARM_CPU_LIMIT      number of processors that a test run may use
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

FIRST_PORT: Final = 10_000
PORTS_EACH: Final = 20
# Linux assigns ports from 32,768 on automatically.
_BLOCKS: Final = (32_768 - FIRST_PORT) // PORTS_EACH
OWN_HOME: Final = "SWARM_OWN_HOME"
COPIES_NUMBER: Final = 1000
"""The number of the first copy that swarm-tui runs tests in. The numbers of agents are smaller."""


PROCESS_LIMIT: Final = 500
"""The default maximum of processes in one test run."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a confined test run may access in addition to its copy."""

    has_network: bool = False
    readable: tuple[str, ...] = ()
    """Readable files and folders, in addition to the system and the project's Python."""

    @property
    def words(self) -> str:
        network = "the network, and no home" if self.has_network else "no home and no network"
        return f"{network}{''.join(f', may read {path}' for path in self.readable)}"


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits of one test run."""

    test_timeout: float | None = None
    memory_limit: int | None = None
    has_own_home: bool = False
    cpu_limit: int | None = None
    process_limit: int = PROCESS_LIMIT
    passed_environment: tuple[str, ...] = ()
    """Names of variables that a run gets besides those that all runs get."""
    confinement: Confinement | None = None
    """None means unconfined: a run may access everything that the user may."""

    @property
    def variables(self) -> dict[str, str]:
        """The limits as environment variables for the plugin."""
        variables = {}
        if self.test_timeout is not None:
            variables["SWARM_TEST_TIMEOUT"] = f"{self.test_timeout:g}"
        if self.memory_limit is not None:
            variables["SWARM_MEMORY_LIMIT"] = str(self.memory_limit)
        if self.cpu_limit is not None:
            variables["SWARM_CPU_LIMIT"] = str(self.cpu_limit)
        return variables


NO_LIMITS: Final = RunLimits()


def own_variables(number: int, temporary: str, limits: RunLimits) -> dict[str, str]:
    """Return the variables of the run with this number and with a temporary folder below `temporary`."""
    # Sweeps on the same machine start at different blocks of ports.
    block = (zlib.crc32(temporary.encode()) + number) % _BLOCKS
    first = FIRST_PORT + block * PORTS_EACH
    folder = own_folder(temporary, number)
    home = {OWN_HOME: f"{folder}/home"} if limits.has_own_home else {}
    return {
        "SWARM_AGENT_NUMBER": str(number),
        "SWARM_FIRST_PORT": str(first),
        "SWARM_LAST_PORT": str(first + PORTS_EACH - 1),
        "TMPDIR": folder,
        **home,
        **limits.variables,
    }


def own_folder(temporary: str, number: int) -> str:
    """Return the temporary folder of one run. The path is short because the path of a socket has at most 107 bytes."""
    return f"{temporary}/{number}"


def free_number(taken: Iterable[int]) -> int:
    """Return the smallest number from 1 that is not taken."""
    used, number = set(taken), 1
    while number in used:
        number += 1
    return number
