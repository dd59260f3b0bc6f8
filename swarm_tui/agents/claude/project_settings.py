"""Finds the faults in a project's own settings for which Claude Code stops at its start and asks."""

from __future__ import annotations

import json
from typing import Final

SETTINGS_PATHS: Final = (".claude/settings.json", ".claude/settings.local.json")
_OBJECTS: Final = ("permissions", "hooks", "env")


def settings_problem(content: bytes) -> str:
    """Return why Claude Code cannot read these settings, or ""; of all that it checks, what anybody gets wrong."""
    text = content.decode("utf-8-sig", "replace").strip()
    if not text:
        return ""
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        return f"line {error.lineno} is no JSON ({error.msg})"
    except RecursionError:
        return "it is nested too deeply"
    if not isinstance(found, dict):
        return "it is no JSON object"
    wrong = next((name for name in _OBJECTS if not isinstance(found.get(name, {}), dict)), "")
    return f"{wrong!r} is no JSON object" if wrong else ""
