"""opencode: its settings for mngr, its login, and what our plugin reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from swarm_tui.agents.packaged import local_package_dir
from swarm_tui.agents.types import AgentStart, Login, agent_type_of
from swarm_tui.agents.types.opencode.observer import EVENTS, OpenCodeObserver
from swarm_tui.limits.events import ApiError, ApiErrorKind
from swarm_tui.money.events import ModelTokens

OPENCODE = agent_type_of("opencode")


def overrides(folder: Path, permissions: str = "allow") -> dict[str, Any]:
    """Return the settings that mngr gives to an agent."""
    start = AgentStart((), local_package_dir(folder), "/state")
    flag, setting = OPENCODE.create_arguments(start, permissions)
    name, _, value = setting.partition("=")
    assert (flag, name) == ("-S", "agent_types.opencode.config_overrides")
    found: dict[str, Any] = json.loads(value)
    return found


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "config" / "opencode"
    folder.mkdir(parents=True)
    return folder / "opencode.json"


def test_plugin_is_shared_and_added_to_those_of_the_user(config: Path, tmp_path: Path) -> None:
    config.write_text('{"plugin": ["mine"], "model": "anthropic/claude-opus-5-5"}')
    mine, ours = overrides(tmp_path)["plugin"]
    assert mine == "mine"
    assert Path(ours.removeprefix("file://")).read_text().startswith("// A plugin of opencode")


@pytest.mark.parametrize(("permissions", "bash"), [("allow", None), ("ask", "ask"), ("skip", None)])
def test_permissions_are_settings(config: Path, tmp_path: Path, permissions: str, bash: str | None) -> None:
    found = overrides(tmp_path, permissions)["permission"]
    assert (found["*"], found.get("bash")) == ("allow", bash)
    assert ("external_directory" in found) is (permissions != "skip")


def test_free_models_are_used_only_if_the_user_names_one(config: Path, tmp_path: Path) -> None:
    assert overrides(tmp_path)["disabled_providers"] == ["opencode"]
    config.write_text('{"model": "anthropic/claude-opus-5-5", "disabled_providers": ["groq"]}')
    assert overrides(tmp_path)["disabled_providers"] == ["groq", "opencode"]
    config.write_text('{"model": "opencode/big-pickle"}')
    assert "disabled_providers" not in overrides(tmp_path)


def test_project_settings_are_disabled() -> None:
    assert OPENCODE.variables((), is_root=False)["OPENCODE_DISABLE_PROJECT_CONFIG"] == "1"
    assert "AGENTS.md" in (OPENCODE.message("/p") or "")


def test_variables_of_the_user_config_are_needed(config: Path) -> None:
    config.write_text('{"provider": {"ours": {"options": {"apiKey": "{env:OUR_KEY}"}}}}')
    environment = {"XDG_CONFIG_HOME": str(config.parents[1]), "OUR_KEY": "x", "OTHER_KEY": "y", "OPENAI_API_KEY": "z"}
    assert OPENCODE.needed_variables(environment) == ("OPENAI_API_KEY", "OUR_KEY")


LISTED = "└  {} credentials\n\n└  {} environment variable\n"


@pytest.mark.parametrize(
    ("listed", "config_shown", "login"),
    [
        (LISTED.format(0, 0), {"plugin": []}, Login(False)),
        (LISTED.format(1, 0), {}, Login(True)),
        (LISTED.format(0, 1), {}, Login(True)),
        (LISTED.format(0, 0), {"provider": {"ours": {}}}, Login(True)),
        (LISTED.format(0, 0), {"model": "opencode/big-pickle"}, Login(True)),
        ("no such command", None, Login(None)),
    ],
)
def test_login_is_a_credential_or_a_configured_model(listed: str, config_shown: object, login: Login) -> None:
    output = listed if config_shown is None else f"{listed}\n{json.dumps(config_shown, indent=2)}\n"
    assert OPENCODE.read_login(0, output, {}) == login


def test_model_argument_is_rejected() -> None:
    assert OPENCODE.argument_problem(("--model=x/y",))[0] == "opencode ignores --model in agents"
    assert OPENCODE.argument_problem(()) == ("", "")


def observed(*events: dict[str, Any]) -> OpenCodeObserver:
    observer = OpenCodeObserver()
    observer.add_lines(EVENTS.name, [json.dumps(event).encode() for event in events])
    return observer


def message(identity: str, cost: float = 0.25, **more: Any) -> dict[str, Any]:
    tokens = {"input": 800, "output": 50, "reasoning": 10, "cache": {"read": 200, "write": 5}}
    return {"event": "message", "id": identity, "model": "m", "cost": cost, "tokens": tokens, "is_root": True, **more}


def test_idle_agent_asks_with_its_last_words() -> None:
    observer = observed({"event": "status", "type": "busy"})
    running = observer.observe(0)
    assert running is not None
    assert not running.needs_user
    idle = observed({"event": "status", "type": "idle", "words": "Which rate?"}).observe(0)
    assert idle is not None
    assert (idle.needs_user, idle.question) == (True, "Which rate?")


def test_each_message_counts_once() -> None:
    observer = observed(message("a"), message("a", cost=0.5), message("b"))
    assert observer.models == (ModelTokens("m", 1_600, 120, 400, 10),)
    assert observer.dollars == 0.75


def test_cost_of_a_model_without_price_is_unknown() -> None:
    assert observed(message("a"), message("b", cost=0.0)).dollars is None


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, ApiErrorKind.LIMITED),
        (401, ApiErrorKind.LOGIN_LOST),
        (402, ApiErrorKind.UNPAID),
        (503, ApiErrorKind.OVERLOADED),
        (None, ApiErrorKind.UNREACHABLE),
    ],
)
def test_failed_turn_is_api_error(status: int | None, kind: ApiErrorKind) -> None:
    failure = {"name": "APIError", "message": "no", "status": status}
    seen = observed(message("a", failure=failure), {"event": "status", "type": "idle"}).observe(0)
    assert seen is not None
    assert (seen.needs_user, seen.api_error) == (False, ApiError(kind=kind, has_given_up=True))


def test_long_retry_is_a_limit_with_its_end() -> None:
    retry = {"event": "status", "type": "retry", "attempt": 2, "message": "Rate limit reached", "next": 9_000_000}
    seen = observed(retry).observe(1_000)
    assert seen is not None
    assert seen.api_error == ApiError(kind=ApiErrorKind.LIMITED, until=9_000)
    assert seen.status_detail == "Rate limit reached, retrying (2)"
    soon = observed(retry).observe(8_990)
    assert soon is not None
    assert soon.api_error == ApiError(kind=ApiErrorKind.LIMITED)


def test_interrupted_turn_closes_its_questions() -> None:
    asked = {"event": "asked", "id": "per_1", "at": 1.0, "kind": "PermissionRequest", "tool": "bash"}
    observer = observed(asked | {"input": {"command": "curl x"}})
    seen = observer.observe(0)
    assert seen is not None
    assert seen.question == "it asks to use bash: curl x"
    observer.add_lines(EVENTS.name, [b'{"event": "status", "type": "idle"}'])
    assert list(observer.closed_questions) == ["per_1"]


@pytest.mark.parametrize("line", [b"[]", b"{", b"{}", b'{"event": "message"}', b'{"event": "asked", "id": 3}'])
def test_other_lines_are_ignored(line: bytes) -> None:
    observer = OpenCodeObserver()
    observer.add_lines(EVENTS.name, [line])
    assert (observer.observe(0), observer.models, observer.dollars) == (None, (), 0.0 if b"message" in line else None)
