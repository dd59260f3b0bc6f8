"""The check of an agent's program and login, with stand-ins for the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_tui.agents.kinds import Login, kind_of
from swarm_tui.agents.login import check_home, check_login, check_program
from swarm_tui.errors import ProgramMissing, SwarmError, UsageError
from tests.programs import make_path, make_program

CLAUDE = kind_of("claude")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"PATH": str(make_path(tmp_path / "bin", "sh"))}


def stand_in(environment: dict[str, str], script: str) -> dict[str, str]:
    make_program(Path(environment["PATH"]) / "claude", script)
    return environment


async def test_a_program_that_is_missing_is_said_with_a_way_out(environment: dict[str, str]) -> None:
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
async def test_a_program_that_is_broken_or_too_old_is_refused(
    environment: dict[str, str], script: str, words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        await check_program(CLAUDE, stand_in(environment, script))
    assert words in str(caught.value)


async def test_a_wrapper_may_say_of_itself_what_it_likes(environment: dict[str, str]) -> None:
    assert await check_program(CLAUDE, stand_in(environment, "echo our own claude")) == "our own claude"


async def test_a_login_that_is_missing_is_one_sentence(environment: dict[str, str]) -> None:
    stand_in(environment, """echo '{"loggedIn": false}'; exit 1""")
    with pytest.raises(SwarmError, match="Claude is not logged in here"):
        await check_login(CLAUDE, environment)


async def test_a_login_is_looked_for_in_the_agents_environment(environment: dict[str, str]) -> None:
    script = """test "$ANTHROPIC_API_KEY" = secret && echo '{"loggedIn": true}' || echo '{"loggedIn": false}'"""
    stand_in(environment, script)
    assert await check_login(CLAUDE, environment | {"ANTHROPIC_API_KEY": "secret"}) == Login(True)


def test_a_home_that_mngr_cannot_write_into_is_refused(tmp_path: Path) -> None:
    check_home(CLAUDE, {"HOME": str(tmp_path)})
    gone = {"HOME": str(tmp_path / "gone")}
    with pytest.raises(UsageError, match=r"gone cannot be written: mngr notes in ~/\.claude\.json"):
        check_home(CLAUDE, gone)
    check_home(CLAUDE, gone | {"CLAUDE_CONFIG_DIR": "/elsewhere"})
    check_home(kind_of("codex"), gone)


async def test_a_kind_without_a_login_is_never_refused(environment: dict[str, str]) -> None:
    assert await check_login(kind_of("codex"), environment) == Login(None)
