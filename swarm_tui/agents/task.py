"""The task file of one agent, read by the live plugin and the offline agent. Standard library only."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from swarm_tui.regular_file import read_regular


@dataclass(frozen=True, slots=True)
class Task:
    """What one agent is to do. All paths inside the copy are relative to its top."""

    sweep: str
    test: str
    agent: str
    branch: str
    base: str
    repository: str
    """The user's checkout; nothing may be imported from it."""
    file: str
    """The test's file, from the top of the repository."""
    rest: str
    """What follows the file and `::` in the node id; empty for an id without."""
    folder: str
    """Where pytest is run; empty for the top of the copy."""
    pytest: tuple[str, ...]
    """The command that runs the test."""
    outcome: str
    """The file of the outcome."""
    records: str = ""
    """A folder of records for the offline agent."""
    speed: float = 1.0
    identity: tuple[str, str] = ("", "")
    """The author of commits: name and address."""
    revision: int = 0
    """How often work on this test was sent back; 0 for an agent that begins from the base."""

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Task:
        """Return the task in a file; keys of a newer version are left out."""
        content = json.loads(read_regular(path))
        known = {field.name for field in fields(cls)}
        values = {name: value for name, value in content.items() if name in known}
        return cls(**values | {"pytest": tuple(values["pytest"]), "identity": tuple(values.get("identity", ("", "")))})
