"""What hostile agents set in their copies, and the secrets that they write: nothing acts, nothing is shown."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from swarm_tui.model.masking import mask_secrets
from tests.attacks.tricks import Trick
from tests.hosts.test_no_code_of_agents import PLANTS, Planted
from tests.secrets.__main__ import CUTS, cut_in
from tests.secrets.samples import WRITTEN, Sample, is_hidden, make

SECRETS: Final = 20
ALPHABETS: Final = ("[a-z0-9]{20}", "[A-Za-z0-9+/]{40}", "[a-f0-9]{32}", "[A-Za-z0-9_-]{24}")


def runs_nothing(root: Path, dice: random.Random) -> Iterator[str]:
    """Plant some settings in a copy and pull it; return which of them ran."""
    planted = Planted(root)
    plants = dice.sample(PLANTS, dice.randint(1, 3))
    for plant in plants:
        plant(planted)
    planted.seen.unlink(missing_ok=True)
    planted.pull()
    if planted.seen.exists():
        yield f"{[plant.__name__ for plant in plants]} ran: {planted.seen.read_text()[:300]}"


def stays_secret(_: Path, dice: random.Random) -> Iterator[str]:
    """Write secrets in every way, cut by escapes and line breaks; return those of which anything can be read."""
    for _number in range(SECRETS):
        written, secret = dice.choice(WRITTEN), make(dice.choice(ALPHABETS), dice)
        # Too like a word of a language to be told from one.
        if not any(map(str.isdigit, secret)):
            continue
        sample = Sample(written, written.format(name="acme", NAME="ACME", secret=secret), secret)
        cut = cut_in(sample, dice.choice([CUTS["whole"], CUTS["cut by an escape"]]), dice)
        if not is_hidden(mask_secrets(cut.text), cut):
            yield f"{cut.text!r} is shown"


TRICKS: Final = (
    Trick("copy", "nothing that is set in a copy acts", runs_nothing),
    Trick("secret", "secrets are masked before others see them", stays_secret),
)
