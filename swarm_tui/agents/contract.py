"""Names of files both sides know, and the task file (standard library only)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final

from swarm_tui.files import read_regular, replacing

OUTPUT_FOLDER: Final = ".test_output"
"""In the agent's copy of the repository; git ignores it."""

PROMPT_FILE: Final = "prompt.md"
"""In the output folder, because an agent may read files in its copy without permission."""

PACKED_OUTPUT_FOLDER: Final = "test_output"
"""Name of the output folder inside the archive."""

BUNDLE_FILE: Final = "branch.bundle"

ARCHIVE_PATH: Final = "plugin/swarm/outputs.tar.gz"
"""In the agent's state folder, put in place by a rename. If it exists, it is complete and the work is finished."""

TRIES_PATH: Final = "plugin/swarm/tries.jsonl"
"""In the agent's state folder; written by the live plugin."""

USED_PATH: Final = "plugin/swarm/used.json"
"""In the agent's state folder. The live plugin writes the code and files that the test used in its first run."""

CONDITION_PATH: Final = "plugin/swarm/condition.json"
"""In the agent's state folder. An agent of any type may write here why its model does not answer:
`{"api_error": "limited", "until": 1795032147, "has_given_up": false, "words": "429 Too Many Requests"}`. It writes `{}`
or removes the file when the model answers again. `ApiErrorKind` lists the valid values of `api_error`; the other fields
are optional."""

TASK_VARIABLE: Final = "SWARM_TASK"
"""Path of the task file, for the live plugin and the offline agent."""

USED_VARIABLE: Final = "SWARM_USED"
"""If set, the live plugin records the code that a test uses with every version of Python."""


@dataclass(frozen=True, slots=True)
class Task:
    """The task of one agent. Paths inside the copy are relative to its top folder."""

    sweep: str
    test: str
    agent: str
    branch: str
    base: str
    repository: str
    """The user's checkout. Nothing may be imported from it."""
    file: str
    """The test's file, relative to the top of the repository."""
    rest: str
    """The part of the node id after the file and `::`; empty if there is none."""
    folder: str
    """The working folder of pytest; empty for the top of the copy."""
    pytest: tuple[str, ...]
    """The command that runs the test."""
    outcome: str
    """The path of the report."""
    records: str = ""
    """The folder of records for the offline agent."""
    speed: float = 1.0
    identity: tuple[str, str] = ("", "")
    """Author of commits: name and address."""
    revision: int = 0
    """How often work on this test was sent back; 0 if the agent starts from the base."""

    def write(self, path: Path) -> None:
        with replacing(path, is_synced=False) as draft:
            draft.write(json.dumps(asdict(self), indent=1).encode() + b"\n")

    @classmethod
    def read(cls, path: Path) -> Task:
        """Return the task in a file. Unknown keys, from newer versions, are ignored."""
        content = json.loads(read_regular(path))
        names = {field.name for field in fields(cls)}
        values = {name: value for name, value in content.items() if name in names}
        return cls(**values | {"pytest": tuple(values["pytest"]), "identity": tuple(values.get("identity", ("", "")))})
