"""The engine as a process of its own: `python -m swarm_tui.engine FOLDER [--relaunch]`."""

from __future__ import annotations

import sys
from pathlib import Path

from swarm_tui.adapters.ignored_signals import keep_ignored_signals_to_ourselves
from swarm_tui.engine.engine import run_engine
from swarm_tui.errors import SwarmError


def main() -> int:
    keep_ignored_signals_to_ourselves()
    try:
        return run_engine(Path(sys.argv[1]), is_relaunching="--relaunch" in sys.argv[2:])
    except SwarmError as error:
        print(f"swarm-tui engine: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    except OSError as error:
        print(f"swarm-tui engine: {error}", file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
