"""Finds the tool servers (MCP) of a project that nobody has approved.

Claude Code asks about each of them before it reads its prompt, so that a sweep would stand still at its start.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

SERVERS_PATH: Final = ".mcp.json"
SETTINGS_PATH: Final = ".claude/settings.json"


def unapproved_servers(servers: bytes, settings: Iterable[bytes]) -> tuple[str, ...]:
    """Return the names of the servers that no settings approve, from the contents of `.mcp.json` and of settings."""
    declared = _object(servers).get("mcpServers")
    approved: set[str] = set()
    for content in settings:
        found = _object(content)
        if found.get("enableAllProjectMcpServers") is True:
            return ()
        names = found.get("enabledMcpjsonServers")
        approved |= {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()
    return tuple(sorted(declared.keys() - approved)) if isinstance(declared, dict) else ()


def _object(raw: bytes) -> dict[str, Any]:
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
