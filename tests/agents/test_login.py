"""Checks of an agent's program and login, with scripts in place of the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_tui.agents.login import check_home, check_login, check_program, version_advice
from swarm_tui.agents.types import Login, agent_type_of
from swarm_tui.errors import ProgramMissing, SwarmError, UsageError
from tests.claude.installed import VERSION
from tests.programs import make_path, make_program

CLAUDE = agent_type_of("claude")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"PATH": str(make_path(tmp_path / "bin", "sh"))}


def stand_in(environment: dict[str, str], script: str) -> dict[str, str]:
    make_program(Path(environment["PATH"]) / "claude", script)
    return environment


async def test_missing_program_is_reported_with_hint(environment: dict[str, str]) -> None:
    with pytest.raises(ProgramMissing) as caught:
        await check_program(CLAUDE, environment)
    assert "--agent offline" in str(caught.value)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'no such module' >&2; exit 3", "no such module"),
        ("exit 3", "code 3"),
        ("echo 1.0.35", "2.1 or newer"),
    ],
)
async def test_broken_or_old_program_is_rejected(environment: dict[str, str], script: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        await check_program(CLAUDE, stand_in(environment, script))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("version", "is_newer"),
    [("2.1.293 (Claude Code)", False), ("2.1.73", False), ("2.1.294", True), ("2.2", True), ("our own claude", False)],
)
def test_version_newer_than_tested_gives_advice(version: str, is_newer: bool) -> None:
    assert version_advice(CLAUDE, version).startswith("newer than 2.1.293") is is_newer
    assert version_advice(agent_type_of("aider"), version) == ""


def test_tested_version_is_the_one_of_the_tests() -> None:
    assert ".".join(map(str, CLAUDE.tested_version)) == VERSION


async def test_program_with_unparsable_version_is_accepted(environment: dict[str, str]) -> None:
    assert await check_program(CLAUDE, stand_in(environment, "echo our own claude")) == "our own claude"


async def test_missing_login_is_reported_with_hint(environment: dict[str, str]) -> None:
    stand_in(environment, """echo '{"loggedIn": false}'; exit 1""")
    with pytest.raises(SwarmError, match="Claude is not logged in on this machine"):
        await check_login(CLAUDE, environment)


async def test_login_check_uses_the_agents_environment(environment: dict[str, str]) -> None:
    script = """test "$ANTHROPIC_API_KEY" = secret && echo '{"loggedIn": true}' || echo '{"loggedIn": false}'"""
    stand_in(environment, script)
    assert await check_login(CLAUDE, environment | {"ANTHROPIC_API_KEY": "secret"}) == Login(True)


def test_unwritable_home_is_rejected(tmp_path: Path) -> None:
    check_home(CLAUDE, {"HOME": str(tmp_path)})
    gone = {"HOME": str(tmp_path / "gone")}
    with pytest.raises(UsageError, match=r"gone is not writable: mngr has to record trust .* in ~/\.claude\.json"):
        check_home(CLAUDE, gone)
    check_home(CLAUDE, gone | {"CLAUDE_CONFIG_DIR": "/elsewhere"})
    check_home(agent_type_of("aider"), gone)


async def test_type_without_login_is_accepted(environment: dict[str, str]) -> None:
    assert await check_login(agent_type_of("aider"), environment) == Login(None)
