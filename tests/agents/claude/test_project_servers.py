"""MCP servers of a project that Claude Code would ask about at its start."""

from __future__ import annotations

import json

import pytest

from swarm_tui.agents.types.claude import unapproved_servers

TWO = json.dumps({"mcpServers": {"notes": {"command": "cat"}, "browser": {"command": "cat"}}}).encode()


def test_unapproved_servers_are_found() -> None:
    assert unapproved_servers(TWO, ()) == ("browser", "notes")
    assert unapproved_servers(TWO, [b'{"enabledMcpjsonServers": ["notes", 7]}', b"{}"]) == ("browser",)
    assert unapproved_servers(TWO, [b"{}", b'{"enableAllProjectMcpServers": true}']) == ()
    assert unapproved_servers(TWO, [b'{"enableAllProjectMcpServers": "yes"}']) == ("browser", "notes")


@pytest.mark.parametrize("servers", [b"", b"no JSON", b"[]", b'{"mcpServers": 7}', b"[" * 100_000])
def test_file_without_servers_has_none(servers: bytes) -> None:
    assert unapproved_servers(servers, [servers]) == ()
