"""What a check of the doctor finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. With `ok`, a `fix` is only advice."""

    name: str
    ok: bool
    found: str
    needed: str
    fix: str = ""
