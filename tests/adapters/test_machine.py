"""What a machine has left is read from the kernel; what cannot be read is not guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_tui.adapters.machine import MachineState, read_machine

GIB = 1 << 30
MEMINFO = "MemTotal:       16777216 kB\nMemFree:  100 kB\nMemAvailable:    8388608 kB\nHugePages_Total:  0\n"


def made(root: Path, meminfo: str, **control_group: str) -> MachineState:
    (root / "meminfo").write_text(meminfo)
    for name, content in control_group.items():
        (root / f"memory.{name}").write_text(content)
    return read_machine(root, root)


def test_this_machine_can_be_read() -> None:
    machine = read_machine()
    assert machine.processors >= 1
    assert machine.load is None or machine.load >= 0


def test_available_memory_includes_caches(tmp_path: Path) -> None:
    machine = made(tmp_path, MEMINFO)
    assert (machine.memory, machine.available) == (16 * GIB, 8 * GIB)


def test_container_limit_counts(tmp_path: Path) -> None:
    stat = f"anon 5\ninactive_file {GIB}\n"
    machine = made(tmp_path, MEMINFO, max=str(4 * GIB), current=str(3 * GIB), stat=stat)
    assert (machine.memory, machine.available) == (4 * GIB, 2 * GIB)
    assert made(tmp_path, MEMINFO, max="max\n").memory == 16 * GIB


@pytest.mark.parametrize("meminfo", ["", "MemTotal: much\n", "MemTotal: 7 kB\n", "\x00\xff"])
def test_missing_kernel_files_mean_unknown(tmp_path: Path, meminfo: str) -> None:
    machine = made(tmp_path, meminfo)
    assert (machine.memory, machine.available) == (None, None)
    unknown = MachineState(2)
    assert (unknown.strain, unknown.is_relaxed) == (("", ""), True)
    assert read_machine(tmp_path / "none", tmp_path / "none").memory is None


@pytest.mark.parametrize(
    ("machine", "strain", "is_relaxed"),
    [
        (MachineState(4, 1.0, 10 * GIB, 2 * GIB), ("", ""), True),
        (MachineState(4, 1.0, 10 * GIB, 2 * GIB - 1), ("", ""), False),
        (MachineState(4, 1.0, 10 * GIB, 1 * GIB - 1), ("memory", "91 % used"), False),
        # On a large machine a tenth would be more than any agent needs.
        (MachineState(4, 1.0, 1000 * GIB, 5 * GIB), ("", ""), True),
        (MachineState(4, 1.0, 1000 * GIB, 3 * GIB), ("", ""), False),
        (MachineState(4, 40.0, None, None), ("", ""), False),
        (MachineState(4, 41.0, None, None), ("load", "41 on 4 cores"), False),
        (MachineState(1, 20.0, None, None), ("load", "20 on 1 core"), False),
        (MachineState(4, 20.0, None, None), ("", ""), True),
    ],
)
def test_strain_ends_with_enough_resources(machine: MachineState, strain: tuple[str, str], is_relaxed: bool) -> None:
    assert (machine.strain, machine.is_relaxed) == (strain, is_relaxed)
