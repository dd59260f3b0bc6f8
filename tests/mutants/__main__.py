"""Break the core in small ways and print what the quick tests overlook: `python -m tests.mutants [MODULE ...]`."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.mutants.run import Fate, NotGreen, Tried, try_mutants
from tests.mutants.table import CORE, EQUIVALENT

GOAL = 90
"""How many of a hundred mutants have to be killed."""


def main() -> int:
    """Exit with 0 when enough mutants were killed, 1 when too many survived, 2 when the tests fail by themselves."""
    options = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    options.add_argument("modules", nargs="*", help="part of a module's path; all of the table without one")
    options.add_argument("--limit", type=int, default=20, help="mutants of each module (20)")
    options.add_argument("--seed", default="1", help="which ones (1)")
    options.add_argument("--jobs", type=int, default=2, help="how many at once (2)")
    options.add_argument("--line", type=int, help="only the mutants of this line")
    chosen = options.parse_args()
    wanted = {
        module: tests
        for module, tests in CORE.items()
        if not chosen.modules or any(part in module for part in chosen.modules)
    }
    if not wanted:
        options.error(f"no module of the table has {' or '.join(chosen.modules)} in its path")
    begun = time.monotonic()
    tried: list[Tried] = []
    limit = chosen.limit if chosen.line is None else sys.maxsize
    try:
        for one in try_mutants(wanted, limit=limit, seed=chosen.seed, workers=chosen.jobs, only_line=chosen.line):
            if not is_equivalent(one):
                tried.append(one)
                print(end={Fate.KILLED: ".", Fate.TIMED_OUT: "t", Fate.SURVIVED: "S"}[one.fate], flush=True)
    except NotGreen as error:
        print(f"the tests fail without any mutant: {error}", file=sys.stderr)
        return 2
    print(f"\n\n{survivors(tried)}\n\n{table(tried)}")
    killed = sum(one.fate is not Fate.SURVIVED for one in tried)
    print(f"\n{killed} of {len(tried)} killed in {time.monotonic() - begun:.0f} s, goal {GOAL} %")
    return 0 if killed * 100 >= GOAL * len(tried) else 1


def is_equivalent(one: Tried) -> bool:
    """Return whether the table says that nobody can tell this mutant from the original."""
    before = "\n".join(line[6:] for line in one.diff.splitlines() if line.startswith("    - "))
    after = "\n".join(line[6:] for line in one.diff.splitlines() if line.startswith("    + "))
    return (one.module, before, after) in EQUIVALENT


def survivors(tried: list[Tried]) -> str:
    """Return each survivor as file:line, kind and diff."""
    lines = [
        f"{one.module}:{one.mutant.line}: {one.mutant.kind}\n{one.diff}" for one in tried if one.fate is Fate.SURVIVED
    ]
    return "\n".join(lines) or "no survivor"


def table(tried: list[Tried]) -> str:
    """Return one row for each module, and one for all."""
    counts = Counter(one.module for one in tried)
    survived = Counter(one.module for one in tried if one.fate is Fate.SURVIVED)
    width = max((len(module) for module in counts), default=0)
    rows = [f"{'module':{width}}  mutants  killed  survivors"]
    for module, count in [*counts.items(), ("all", counts.total())]:
        left = survived.total() if module == "all" else survived[module]
        rows.append(
            f"{module:{width}}  {count:7}  {count - left:6}  {left:9}  {100 * (count - left) // (count or 1):3} %"
        )
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
