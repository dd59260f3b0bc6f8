"""Times `swarm-tui tutorial check` on 5,000 blocks and 5,000 tests: all cited, all edited since, and leniently.

python -m tests.bench.tutorial_check [COUNT]
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS_PER_FILE = 50
GOAL_SECONDS = 2.0


def write_project(folder: Path, count: int, edit: str) -> None:
    """Write a tutorial and as many tests that cite its blocks; `edit` is what the tutorial says more since then."""
    sections = ("create", "list", "copy", "remove", "snapshot", "connect", "message")
    blocks = [
        (
            f"# {sections[number % 7]} item number {number}, the way that part {number // 100} tells",
            f"mytool {sections[number % 7]} item-{number} --size {number * 37 % 1009} --label part={number // 100}",
            f"# this is what item {number} is good for",
        )
        for number in range(count)
    ]
    tutorial = "\n\n".join("\n".join((head, command + edit, tail)) for head, command, tail in blocks)
    (folder / "tutorial.sh").write_text(f"#!/bin/bash\nset -e\n\n{tutorial}\n", encoding="utf-8")
    tests = folder / "tests"
    tests.mkdir()
    for start in range(0, count, TESTS_PER_FILE):
        functions = "\n\n".join(
            f"def test_item_{start + offset}(e2e: E2eSession) -> None:\n"
            '    e2e.write_tutorial_block("""\n' + "\n".join(f"        {line}" for line in block) + '\n    """)\n'
            f"    result = e2e.run({block[1]!r}, comment={block[0]!r})\n"
            "    expect(result).to_succeed()\n"
            f'    expect(result.stdout).to_contain("item-{start + offset}")\n'
            for offset, block in enumerate(blocks[start : start + TESTS_PER_FILE])
        )
        header = "from swarm_tui.e2e import E2eSession, expect\n\n\n"
        (tests / f"test_part_{start}.py").write_text(header + functions, encoding="utf-8")


def child_cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    for name, edit, options in (
        ("all cited", "", []),
        ("all edited since", " --verbose", []),
        ("all cited, lenient", "", ["--lenient"]),
        ("all edited since, lenient", " --verbose", ["--lenient"]),
    ):
        with tempfile.TemporaryDirectory() as name_of_folder:
            folder = Path(name_of_folder)
            write_project(folder, count, edit)
            words = [sys.executable, "-m", "swarm_tui", "tutorial", "check", "tutorial.sh", "tests", *options]
            started, cpu_before = time.perf_counter(), child_cpu_seconds()
            code = subprocess.run(words, cwd=folder, stdout=subprocess.DEVNULL, check=False).returncode
            seconds, cpu = time.perf_counter() - started, child_cpu_seconds() - cpu_before
        size = f"{count:,} blocks, {count:,} tests"
        print(f"{size}, {name:26} {seconds:5.2f} s, CPU {cpu:5.2f} s  (goal {GOAL_SECONDS:.0f} s)  exit {code}")


if __name__ == "__main__":
    main()
