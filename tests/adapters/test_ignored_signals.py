"""Programs that are started by one which ignores signals."""

from __future__ import annotations

import os
import sys

from swarm_tui.adapters.processes.run import run_process_blocking


def test_programs_receive_our_ignored_signals() -> None:
    program = (
        "import os, signal, subprocess, sys\n"
        "from swarm_tui.adapters.processes import keep_ignored_signals_to_ourselves\n"
        "keep_ignored_signals_to_ourselves()\n"
        "for name in ('INT', 'QUIT', 'HUP'):\n"
        "    os.kill(os.getpid(), getattr(signal, 'SIG' + name))\n"
        "    print(name, subprocess.run(['sh', '-c', f'kill -{name} $$']).returncode)\n"
    )
    ignoring = ["sh", "-c", "trap '' INT QUIT HUP; exec \"$@\"", "sh", sys.executable, "-c", program]
    finished = run_process_blocking(ignoring, environment=dict(os.environ))
    assert finished.text.split() == ["INT", "-2", "QUIT", "-3", "HUP", "-1"]
