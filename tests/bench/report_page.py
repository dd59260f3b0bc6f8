"""How long the page of a sweep takes to make, and how long it takes a browser to open.

python -m tests.bench.report_page [TESTS]      needs Chromium on PATH for the second part
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from swarm_tui.report.page import write_report
from tests.report.browser import Browser
from tests.report.sweeps import START, make_sweep

ROUNDS = 5


def main(words: list[str]) -> int:
    count = int(words[0]) if words else 500
    with tempfile.TemporaryDirectory(prefix="swarm-bench-") as folder:
        made = make_sweep(Path(folder) / "project", count)
        times = []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            written = write_report(Path(folder) / "page", made.open(), START)
            times.append(time.perf_counter() - started)
        print(f"{count:,} tests: made in {min(times):.2f} s (goal 5 s for 500), {written.size / 1e6:.1f} MB")
        opened = [_open(written.page.as_uri()) for _ in range(ROUNDS)]
        print(f"opened in {min(opened):.2f} s (goal 1 s for 500)")
    return 0


def _open(address: str) -> float:
    with Browser() as browser:
        browser.open(address)
        milliseconds: float = browser.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
        return milliseconds / 1_000


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
