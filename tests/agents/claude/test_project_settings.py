"""Project settings that make Claude Code stop at its start, checked against the real program."""

from __future__ import annotations

import pytest

from swarm_tui.agents.types import agent_type_of
from swarm_tui.agents.types.claude import settings_problem


@pytest.mark.parametrize("content", [b"", b" \n", b"{}", b'\xef\xbb\xbf{"permissions": {}}', b'{"hooks": {}, "x": 7}'])
def test_valid_settings_have_no_problem(content: bytes) -> None:
    assert settings_problem(content) == ""


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"a": 1,\n"b"}', "invalid JSON in line 2"),
        (b'// why\n{"permissions": {}}', "invalid JSON in line 1"),
        (b"[]", "not a JSON object"),
        (b'{"permissions": 7}', "'permissions' is not a JSON object"),
        (b"[" * 100_000, "nested too deeply"),
        (b"\xff", "invalid JSON in line 1"),
    ],
)
def test_invalid_settings_have_a_problem(content: bytes, problem: str) -> None:
    assert settings_problem(content).startswith(problem)


def test_problem_names_the_file() -> None:
    problem = agent_type_of("claude").project_problem(lambda path: b"{" if path.endswith("settings.json") else b"")
    assert problem.startswith(".claude/settings.json: invalid JSON in line 1")
