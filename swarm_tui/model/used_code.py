"""Code and files of the repository that a test used. A program in the agent's copy records them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, ConfigDict

USED_FILE: Final = "used.json"
"""The file name in the folder of an agent's pulled work."""
USED_LIMIT: Final = 4_000_000


class UsedCode(BaseModel):
    """Code and files used by one run of a test. Paths are relative to the top of the repository."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    outcome: str = ""
    functions: Mapping[str, tuple[int, ...]] = {}
    """The first lines of called functions, by file."""
    loaded: frozenset[str] = frozenset()
    """The files of imported modules."""
    opened: frozenset[str] = frozenset()
    """Other opened files."""
    has_programs: bool = False
    """Whether the test started programs, whose code and files are not recorded."""
    is_whole: bool = True
    """Whether opened files were recorded, which requires Python 3.8."""

    @property
    def is_green(self) -> bool:
        return self.outcome in ("passed", "xfailed", "xpassed")
