"""Attack the program, and print what was promised, how often it was tried and how often it did not hold.

python -m tests.attacks kill --rounds 300
python -m tests.attacks mutate --rounds 3000 --seed 7 --keep /tmp/failed
python -m tests.attacks soak --minutes 60
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
import time
from pathlib import Path
from typing import Final, Protocol, cast

from tests.attacks.attack import Bounds, Table, machine


class AttackModule(Protocol):
    """What every module of an attack offers."""

    ROUNDS: int
    """How many rounds are the whole attack."""

    def attack(self, bounds: Bounds, table: Table) -> None: ...


ATTACKS: Final = {
    "kill": "kill everything at every moment of a sweep and at random, and resume",
    "mutate": "damage a sweep's folder, and call every command and the room on it",
    "hostile": "agents that hand in hostile texts, commits and archives, forge events, fill memory and disk",
    "fill": "let the disk below each part of a sweep be full",
    "soak": "run a sweep and a room on it for a long time, under requests and keys",
}


def load_attack(name: str) -> AttackModule:
    """Return the module of an attack."""
    return cast(AttackModule, importlib.import_module(f"tests.attacks.{name}"))


def main() -> int:
    """Exit with 0 when every promise held, else 1."""
    overview = "\n".join(f"  {name:8} {text}" for name, text in ATTACKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m tests.attacks",
        description=f"{__doc__}\nattacks:\n{overview}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("attacks", nargs="+", choices=ATTACKS, metavar="ATTACK")
    parser.add_argument("--rounds", type=int, help="how many; without it the whole attack")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first round")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="begin no other round after this time; ctrl+c ends at once"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the folders of failed rounds there")
    wanted = parser.parse_args()
    table = Table(say=lambda text: print(text, flush=True))
    for name in wanted.attacks:
        module, begun = load_attack(name), time.monotonic()
        rounds = module.ROUNDS if wanted.rounds is None else wanted.rounds
        with contextlib.suppress(KeyboardInterrupt):
            module.attack(Bounds(rounds, wanted.seed, 60 * wanted.minutes, wanted.keep), table)
        print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)
    print(f"\n{table.text()}\n\n{machine()}")
    return 1 if table.failures else 0


if __name__ == "__main__":
    sys.exit(main())
