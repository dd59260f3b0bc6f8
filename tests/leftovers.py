"""The temporary folder of a test process, and all processes started from it: they are gone even after `kill -9`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from swarm_tui.adapters.processes.ends import end_marked_processes
from swarm_tui.adapters.scratch import memory_folder, remove_abandoned, short_folder

MARK: Final = "SWARM_TEST_RUN"
"""The variable that marks every process started from a test process; its value is the name of the folder.

The name is one that agents and test runs get, so that their processes have the mark, too."""
KEEP: Final = "keep"
ROOT: Final = Path(__file__).parents[1]


class RunFolder:
    """Makes the temporary folder of this process, and starts a watcher that cleans up when this process has ended."""

    def __init__(self) -> None:
        # pytest's own folders stay after a run, for whoever looks into a failure; a worker inherits this.
        outside = os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
        self.path = Path(tempfile.mkdtemp(prefix="sw", dir=short_folder(outside)))
        unmarked = {name: value for name, value in os.environ.items() if name != MARK}
        self._watcher = subprocess.Popen(
            [sys.executable, "-m", "tests.leftovers", str(self.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=unmarked,
            cwd=ROOT,
            start_new_session=True,
        )
        os.environ[MARK] = self.path.name
        os.environ["TMPDIR"] = tempfile.tempdir = str(self.path)

    def close(self, *, is_kept: bool = False) -> None:
        """Have the watcher clean up now, and wait for it; with `is_kept` nothing is removed or ended."""
        self._watcher.communicate(KEEP.encode() if is_kept else b"")


def watch(folder: Path) -> None:
    """Wait until the test process has closed our input, as its end does; then clean up behind it."""
    if sys.stdin.read() == KEEP:
        return
    end_marked_processes(MARK, folder.name, grace=10.0)
    shutil.rmtree(folder, ignore_errors=True)
    remove_abandoned(memory_folder(), "swarm-")


if __name__ == "__main__":
    watch(Path(sys.argv[1]))
