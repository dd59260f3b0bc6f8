"""The files that an agent and the engine both know by name. Standard library only: agents import it."""

from __future__ import annotations

from typing import Final

OUTPUT_FOLDER: Final = ".test_output"
"""In the agent's copy of the repository, where git ignores it."""

PROMPT_FILE: Final = "prompt.md"
"""In the output folder: an agent needs no permission to read what lies in its copy."""

PACKED_OUTPUT_FOLDER: Final = "test_output"
"""The same folder inside the archive."""

BUNDLE_FILE: Final = "branch.bundle"

ARCHIVE_PATH: Final = "plugin/swarm/outputs.tar.gz"
"""In the agent's state folder; put in place by rename: when it is there, it is complete, and the work is done."""

TRIES_PATH: Final = "plugin/swarm/tries.jsonl"
"""In the agent's state folder; written by the live plugin."""

USED_PATH: Final = "plugin/swarm/used.json"
"""In the agent's state folder; the live plugin writes there which code and files the test used in its first run."""

CONDITION_PATH: Final = "plugin/swarm/condition.json"
"""In the agent's state folder; an agent that we know nothing of may write there why its model does not answer:
`{"trouble": "limited", "until": 1795032147, "has_given_up": false, "words": "429 Too Many Requests"}`, and `{}` or no
file when it answers again. The troubles are those of `TroubleKind`; all but the first field may be left out."""

TASK_VARIABLE: Final = "SWARM_TASK"
"""Holds the path of the task file; the live plugin and the offline agent read it."""

USED_VARIABLE: Final = "SWARM_USED"
"""When it is set, what a test uses is recorded with every Python."""
