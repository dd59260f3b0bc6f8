"""Measure the masking of secrets: python -m tests.secrets [--gitleaks gitleaks.toml] [--lines FOLDER]

The samples are made from the patterns of detect-secrets, which is installed with the other packages for tests, and from
a configuration file of gitleaks if one is given (config/gitleaks.toml of its repository). Lines come from files.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from swarm_tui.model.masking import mask_secrets
from tests.secrets.samples import Sample, is_hidden, of_detect_secrets, of_gitleaks

CUTS: Final = {"whole": "", "cut by an escape": "\x1b[0;1m", "cut by a newline": "\n", "cut by \\r\\n": "\r\n"}


def cut_in(sample: Sample, cut: str, dice: random.Random) -> Sample:
    """Return the sample with its secret cut in two; names and short beginnings stay whole."""
    if not cut or len(sample.secret) < 12 or any(map(str.isspace, sample.secret)):
        return sample
    place = dice.randrange(5, len(sample.secret) - 4)
    broken = sample.secret[:place] + cut + sample.secret[place:]
    return sample._replace(text=sample.text.replace(sample.secret, broken, 1))


def missed(samples: Iterable[Sample]) -> list[Sample]:
    return [sample for sample in samples if not is_hidden(mask_secrets(sample.text), sample)]


def lines_of(folder: Path, count: int, dice: random.Random) -> Iterator[str]:
    """Return some lines of the files below a folder."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size < 50_000_000]
    lines = [line for path in files for line in path.read_text("utf-8", "replace").splitlines() if line.strip()]
    yield from dice.sample(lines, min(count, len(lines)))


def main() -> int:
    """Exit with 1 where less than 98 % is masked, or more than 1 % of the lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gitleaks", type=Path, metavar="FILE")
    parser.add_argument("--lines", type=Path, metavar="FOLDER")
    parser.add_argument("--each", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    dice = random.Random(wanted.seed)
    samples = list(of_detect_secrets(dice, wanted.each))
    samples += of_gitleaks(wanted.gitleaks, dice, wanted.each) if wanted.gitleaks else []
    is_good = True
    for name, cut in CUTS.items():
        left = missed(cut_in(sample, cut, dice) for sample in samples)
        share = 1 - len(left) / len(samples)
        is_good = is_good and share >= 0.98
        print(f"{name:18} {len(samples):5} samples of {len({s.rule for s in samples}):3} rules: {share:.1%} masked")
        for rule, count in Counter(sample.rule for sample in left).most_common():
            example = next(sample for sample in left if sample.rule == rule)
            print(f"    {count} x {rule}: {example.text[:150]!r}")
    if wanted.lines:
        lines, begun = list(lines_of(wanted.lines, 10_000, dice)), time.perf_counter()
        changed = [line for line in lines if mask_secrets(line) != line]
        is_good = is_good and len(changed) <= 0.01 * len(lines)
        print(f"{len(changed)} of {len(lines)} lines changed, in {time.perf_counter() - begun:.1f} s")
        print(*(f"    {line[:150]!r}\n    {mask_secrets(line)[:150]!r}" for line in changed[:40]), sep="\n")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
