"""For which settings of a project Claude Code stops at its start: as the real one does."""

from __future__ import annotations

import pytest

from swarm_tui.agents.claude.project_settings import settings_problem
from swarm_tui.agents.kinds import kind_of


@pytest.mark.parametrize("content", [b"", b" \n", b"{}", b'\xef\xbb\xbf{"permissions": {}}', b'{"hooks": {}, "x": 7}'])
def test_settings_that_it_reads(content: bytes) -> None:
    assert settings_problem(content) == ""


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"a": 1,\n}', "line 2 is no JSON"),
        (b'// why\n{"permissions": {}}', "line 1 is no JSON"),
        (b"[]", "it is no JSON object"),
        (b'{"permissions": 7}', "'permissions' is no JSON object"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b"\xff", "line 1 is no JSON"),
    ],
)
def test_settings_that_it_stops_at(content: bytes, problem: str) -> None:
    assert settings_problem(content).startswith(problem)


def test_the_file_is_named() -> None:
    problem = kind_of("claude").project_problem(lambda path: b"{" if path.endswith("settings.json") else b"")
    assert problem.startswith(".claude/settings.json: line 1 is no JSON")
