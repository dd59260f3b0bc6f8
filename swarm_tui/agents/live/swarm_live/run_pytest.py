"""Runs pytest for swarm-tui. pytest and our plugin are imported first, so that no project module can shadow them.

`python run_pytest.py ARGUMENTS` is `python -m pytest ARGUMENTS` with two differences: the project's folders are added
to the path after pytest is imported, and results are sent to the parent process.

SWARM_PYTHONPATH  PYTHONPATH for the tests and the programs that they start
SWARM_RESULTS     the inherited file descriptor for the results

Python 3.6, the standard library and pytest only.
"""

import importlib
import os
import sys
from typing import Any


def main() -> int:
    path_of_tests, descriptor = os.environ.pop("SWARM_PYTHONPATH"), int(os.environ.pop("SWARM_RESULTS"))
    folder = os.path.dirname(os.path.abspath(__file__))
    # If Python was told not to add the folder of a program, it would not add the current folder for `-m` either.
    is_safe = not sys.path or os.path.abspath(sys.path[0]) != folder
    sys.path[: 0 if is_safe else 1] = [os.path.dirname(folder)]

    import pytest

    swarm_live: Any = importlib.import_module("swarm_live")
    results: Any = importlib.import_module("swarm_live.results")
    swarm_live.channel = channel = results.Channel(descriptor)
    folders = [os.path.abspath(each) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    rest = [each for each in sys.path[1:] if os.path.abspath(each) not in folders]
    sys.path[:] = [*([] if is_safe else [os.getcwd()]), *path_of_tests.split(os.pathsep), *rest]
    os.environ["PYTHONPATH"] = path_of_tests
    code = results.code_of(pytest.main(sys.argv[1:], plugins=[swarm_live]))
    channel.send(kind="end", code=code)
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
