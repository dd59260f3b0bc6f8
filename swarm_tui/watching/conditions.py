"""Which agents a person wants to watch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Conditions:
    """Which agents are wanted, in mngr's words (CEL)."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @property
    def are_there(self) -> bool:
        return bool(self.include or self.exclude)
