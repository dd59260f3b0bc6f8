"""What keeps runs of tests from disturbing each other and the machine, as variables for our pytest plugin. Pure.

SWARM_AGENT_NUMBER   a number that no other living agent of the sweep has, from 1
SWARM_FIRST_PORT     the first of the ports that are the agent's alone, as far as this sweep goes
SWARM_LAST_PORT      the last of them
TMPDIR               a folder of its own
SWARM_OWN_HOME       the folder that its tests see as HOME
SWARM_TEST_TIMEOUT   the seconds that one test may take
SWARM_MEMORY_LIMIT   the bytes that each process of a test run may use
SWARM_CPU_LIMIT      the number of processors that a test run may use
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

FIRST_PORT: Final = 10_000
PORTS_EACH: Final = 20
# Up to where the kernel hands out ports by itself.
_BLOCKS: Final = (32_768 - FIRST_PORT) // PORTS_EACH
OWN_HOME: Final = "SWARM_OWN_HOME"
COPIES_NUMBER: Final = 1000
"""The number of the first copy in which we run tests ourselves; agents are not that many."""


PROCESS_LIMIT: Final = 500
"""So many processes may live in one run of tests where nobody says another number."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """What confined runs of tests may do beyond the copy that they work in."""

    has_network: bool = False
    readable: tuple[str, ...] = ()
    """Files and folders that they may read, beside the system and the project's Python."""

    @property
    def words(self) -> str:
        network = "the network, and no home" if self.has_network else "no home and no network"
        return f"{network}{''.join(f', may read {path}' for path in self.readable)}"


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What one run of tests may use."""

    test_timeout: float | None = None
    memory_limit: int | None = None
    has_own_home: bool = False
    cpu_limit: int | None = None
    process_limit: int = PROCESS_LIMIT
    confinement: Confinement | None = None
    """None: a run may read and change what the user may."""

    @property
    def variables(self) -> dict[str, str]:
        """The variables by which our plugin knows the limits."""
        found = {}
        if self.test_timeout is not None:
            found["SWARM_TEST_TIMEOUT"] = f"{self.test_timeout:g}"
        if self.memory_limit is not None:
            found["SWARM_MEMORY_LIMIT"] = str(self.memory_limit)
        if self.cpu_limit is not None:
            found["SWARM_CPU_LIMIT"] = str(self.cpu_limit)
        return found


NO_LIMITS: Final = RunLimits()


def own_variables(number: int, temporary: str, limits: RunLimits) -> dict[str, str]:
    """Return the variables of the run with that number, whose temporary folder is below `temporary`."""
    first = FIRST_PORT + number % _BLOCKS * PORTS_EACH
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
    """Return the temporary folder of one run: a short path, since that of a socket has 107 bytes at most."""
    return f"{temporary}/{number}"


def free_number(taken: Iterable[int]) -> int:
    """Return the smallest number from 1 that is not taken."""
    known, number = set(taken), 1
    while number in known:
        number += 1
    return number
