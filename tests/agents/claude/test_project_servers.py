"""Which tool servers of a project Claude Code would ask about at its start."""

from __future__ import annotations

import json

import pytest

from swarm_tui.agents.claude.project_servers import unapproved_servers

TWO = json.dumps({"mcpServers": {"notes": {"command": "cat"}, "browser": {"command": "cat"}}}).encode()


def test_all_that_nobody_has_approved() -> None:
    assert unapproved_servers(TWO, ()) == ("browser", "notes")
    assert unapproved_servers(TWO, [b'{"enabledMcpjsonServers": ["notes", 7]}', b"{}"]) == ("browser",)
    assert unapproved_servers(TWO, [b"{}", b'{"enableAllProjectMcpServers": true}']) == ()
    assert unapproved_servers(TWO, [b'{"enableAllProjectMcpServers": "yes"}']) == ("browser", "notes")


@pytest.mark.parametrize("servers", [b"", b"no JSON", b"[]", b'{"mcpServers": 7}', b"[" * 100_000])
def test_a_file_that_names_none(servers: bytes) -> None:
    assert unapproved_servers(servers, [servers]) == ()
