"""Which code and files of the repository a test used when it was run; written by a program in the agent's copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, ConfigDict

USED_FILE: Final = "used.json"
"""In the folder of what was pulled from an agent."""
USED_LIMIT: Final = 4_000_000


class UsedCode(BaseModel):
    """What one run of a test used. Paths begin at the top of the repository."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    outcome: str = ""
    functions: Mapping[str, tuple[int, ...]] = {}
    """The first lines of the functions that were called, by file."""
    loaded: frozenset[str] = frozenset()
    """The files of the modules that were imported."""
    opened: frozenset[str] = frozenset()
    """Other files that were opened."""
    has_programs: bool = False
    """Programs were started, whose code and files are not seen."""
    is_whole: bool = True
    """Opened files were seen at all: Python 3.7 and older do not tell."""

    @property
    def is_green(self) -> bool:
        return self.outcome in ("passed", "xfailed", "xpassed")
