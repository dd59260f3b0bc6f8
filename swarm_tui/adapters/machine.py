"""Measure free memory and load of this machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_GIB: Final = 1 << 30
PROC: Final = Path("/proc")
CONTROL_GROUP: Final = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class MachineState:
    """The free resources of a machine; None if unknown."""

    processors: int
    load: float | None = None
    """The average of running and waiting programs over the last minute."""
    memory: int | None = None
    """Total bytes."""
    available: int | None = None
    """Free bytes."""

    @property
    def strain(self) -> tuple[str, str]:
        """The scarce resource, `memory` or `load`, with its numbers; both empty if there is enough."""
        return self._lack(memory_share=0.10, most_memory=2 * _GIB, load_each=10.0)

    @property
    def is_relaxed(self) -> bool:
        """Whether more agents can be launched again after a shortage."""
        return not any(self._lack(memory_share=0.20, most_memory=4 * _GIB, load_each=5.0))

    def _lack(self, memory_share: float, most_memory: int, load_each: float) -> tuple[str, str]:
        if self.memory and self.available is not None:
            needed = min(self.memory * memory_share, most_memory)
            if self.available < needed:
                return "memory", f"{100 - 100 * self.available // self.memory} % used"
        if self.load is not None and self.load > load_each * self.processors:
            cores = "1 core" if self.processors == 1 else f"{self.processors} cores"
            return "load", f"{self.load:.0f} on {cores}"
        return "", ""


def read_machine(proc: Path = PROC, control_group: Path = CONTROL_GROUP) -> MachineState:
    """Return the state of this machine, or of the container of this process."""
    memory, available = _memory(proc, control_group)
    return MachineState(_processors(), _load(), memory, available)


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count() or 1


def _load() -> float | None:
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


def _memory(proc: Path, control_group: Path) -> tuple[int | None, int | None]:
    fields = _numbers(proc / "meminfo")
    if "MemTotal:" not in fields or "MemAvailable:" not in fields:
        return None, None
    memory, available = fields["MemTotal:"] * 1024, fields["MemAvailable:"] * 1024
    limit, used = _number(control_group / "memory.max"), _number(control_group / "memory.current")
    if limit is not None and used is not None and limit < memory:
        # The system frees its file cache when a program needs memory.
        cached = _numbers(control_group / "memory.stat").get("inactive_file", 0)
        memory, available = limit, min(available, max(0, limit - used + cached))
    return memory, available


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _numbers(path: Path) -> dict[str, int]:
    """Return the lines of a file that have a name and a number."""
    try:
        lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return {}
    words = (line.split() for line in lines)
    return {word[0]: int(word[1]) for word in words if len(word) > 1 and word[1].isdigit()}
