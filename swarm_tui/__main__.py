"""The console script: hands the command line to `swarm_tui.cli` and exits with what it gives."""

import sys

from swarm_tui.adapters.processes import keep_ignored_signals_to_ourselves
from swarm_tui.cli.main import run_command_line


def main() -> None:
    keep_ignored_signals_to_ourselves()
    sys.exit(run_command_line(sys.argv[1:]))


if __name__ == "__main__":
    main()
