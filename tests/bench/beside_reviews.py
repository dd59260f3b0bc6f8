"""Walking through forty fixes, beside lazygit and tig on the same repository: `python -m tests.bench.beside_reviews`.

Figures: from the start to the newest commits (or the ranked fixes) on the screen, from a key to the next commit's
diff on the screen, and memory. `--commits 100000 --files 20000` asks the same of a big repository.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from tests.bench.merge_view import FIXES, write_repository
from tests.bench.table import Figures, Table, machine
from tests.bench.terminal import quantile
from tests.bench.watched import Program, Replay, WatchedTerminal, start_times
from tests.git_project import GitProject, quiet_environment

NEWEST = f"fix {FIXES - 1}"
COLUMNS = ("first frame ms", "list ms", "next diff p50 ms", "next diff p90 ms", "memory MB")
LAZYGIT_CONFIG = "disableStartupPopups: true\ngit:\n  autoFetch: false\nupdate:\n  method: never\n"


def programs(repository: Path, place: Path) -> Iterator[tuple[Program, bytes, Sequence[int]]]:
    """Return each program with its key for the next commit, and the fixes in the order in which it comes by them."""
    environment = quiet_environment() | {"XDG_STATE_HOME": str(place / "state"), "XDG_CONFIG_HOME": str(place)}
    environment |= {"PYTHONPATH": str(Path(__file__).parents[2])}
    room = [sys.executable, "-m", "swarm_tui", "fixes", "--base", "main", "fixes"]
    yield Program("room", room, f"Ranked {FIXES}", environment, repository), b"j", range(1, FIXES)
    down = range(FIXES - 2, -1, -1)
    yield lazygit_on(repository, place), b"j", down
    tig = {"HOME": str(place), "XDG_CONFIG_HOME": str(place)}
    yield Program("tig", ["tig"], NEWEST, quiet_environment() | tig, repository, [b"\r"]), b"\x0e", down


def lazygit_on(repository: Path, place: Path) -> Program:
    """Return lazygit on its list of commits, with no settings but those that keep it from asking and fetching."""
    (place / "lazygit").mkdir(exist_ok=True)
    (place / "lazygit" / "config.yml").write_text(LAZYGIT_CONFIG)
    environment = quiet_environment() | {"XDG_CONFIG_HOME": str(place), "XDG_STATE_HOME": str(place / "state")}
    return Program("lazygit", ["lazygit", "log"], NEWEST, environment, repository)


def measure(program: Program, key: bytes, order: Sequence[int], marker: Callable[[int], str]) -> Figures:
    """Start a program and walk through the fixes, one key each."""
    with WatchedTerminal(program) as terminal:
        terminal.begin()
        keys = [terminal.press_timed(key) for _ in order]
        memory = terminal.memory_megabytes()
        first, ready = start_times(terminal)
        replay, times = Replay(terminal), []
        for pressed, fix in zip(keys, order, strict=True):
            replay.to(pressed.piece)
            moment = replay.moment_of(marker(fix))
            if moment is None:
                raise TimeoutError(f"the diff of fix {fix} was never on the screen")
            times.append(moment - pressed.at)
    half, most = (1000 * quantile(times, part) for part in (0.5, 0.9))
    return dict(zip(COLUMNS, (1000 * first, 1000 * ready, half, most, memory), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=2_000)
    parser.add_argument("--files", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3, help="how often each is started; the best figure counts")
    arguments = parser.parse_args()
    table = Table(COLUMNS)
    with tempfile.TemporaryDirectory(prefix="swarm-bench-") as folder:
        project = GitProject(Path(folder) / "repository")
        write_repository(project, arguments.commits, arguments.files)
        print(f"{arguments.commits:,} commits, {arguments.files:,} files, {FIXES} fixes; {machine()}", flush=True)
        for _ in range(arguments.rounds):
            for program, key, order in programs(project.root, Path(folder)):
                work = partial(measure, program, key, order, _added_line(arguments.commits))
                table.measure(program, work)
    print(f"{table.text()}\n{machine()}")


def _added_line(commits: int) -> Callable[[int], str]:
    # Only the diff of a fix shows it; the lists of commits do not.
    return lambda fix: rf"\+def fix_{commits + 1 + fix}\(\)"


if __name__ == "__main__":
    main()
