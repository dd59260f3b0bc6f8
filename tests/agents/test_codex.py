"""Codex: its settings and permissions as arguments, its login, and what its rollouts and hook report."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from swarm_tui.agents.packaged import local_package_dir
from swarm_tui.agents.types import AgentStart, Login, agent_type_of
from swarm_tui.agents.types.codex.observer import EVENTS, ROLLOUT, CodexObserver
from swarm_tui.agents.types.codex.settings import toml_value, with_overrides
from swarm_tui.limits.events import ApiError, ApiErrorKind
from swarm_tui.money.events import ModelTokens
from tests.openai.installed import VERSIONS

CODEX = agent_type_of("codex")
SETTINGS = """
model = "gpt-5.5"
model_provider = "ours"
sandbox_mode = "danger-full-access"

[model_providers.ours]
name = "Our \\"own\\" gateway"
base_url = "https://llm.example.org/v1"
env_key = "OUR_KEY"
query_params = { api-version = "2026-01-01" }
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "config.toml").write_text(SETTINGS)
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    return tmp_path


def command_of(folder: Path, *arguments: str) -> dict[str, Any]:
    """Return the settings in the arguments of an agent."""
    words = CODEX.prepare_command(AgentStart(arguments, local_package_dir(folder), "/state"))
    return with_overrides({}, words)


def test_user_model_and_provider_are_arguments(home: Path) -> None:
    found = command_of(home, *CODEX.permissions["allow"].words)
    assert found["model"] == "gpt-5.5"
    assert found["model_providers"] == tomllib.loads(SETTINGS)["model_providers"]
    # mngr and the repository must not decide about the sandbox.
    assert (found["sandbox_mode"], found["approval_policy"]) == ("workspace-write", "on-request")
    assert found["sandbox_workspace_write"] == {"writable_roots": [".git", "/state"], "network_access": True}
    assert set(found["hooks"]) >= {"PermissionRequest", "Stop", "Interrupt"}


def test_user_arguments_take_precedence(home: Path) -> None:
    found = command_of(home, *CODEX.permissions["allow"].words, "-c", "model=gpt-6", "--config=sandbox_mode=read-only")
    assert (found["model"], found["sandbox_mode"]) == ("gpt-6", "read-only")
    assert CODEX.permission("allow", ("-c", 'sandbox_mode="read-only"')).sentence == (
        'do what sandbox_mode="read-only" allows'
    )


@pytest.mark.parametrize("flag", ["--yolo", "--sandbox=read-only", "--dangerously-bypass-approvals-and-sandbox"])
def test_ignored_flags_are_rejected(flag: str) -> None:
    assert CODEX.argument_problem((flag,))[0] == f"Codex ignores {flag} in agents"


def test_secrets_in_settings_are_rejected(home: Path) -> None:
    (home / "config.toml").write_text(SETTINGS + 'http_headers = { Authorization = "Bearer x" }\n')
    problem, hint = CODEX.argument_problem(())
    assert problem.startswith("http_headers of your model provider")
    assert "env_http_headers" in hint


def test_key_of_provider_is_needed_and_decides_login(home: Path) -> None:
    environment = {"CODEX_HOME": str(home), "OUR_KEY": "secret"}
    assert CODEX.needed_variables(environment) == ("OUR_KEY",)
    assert CODEX.read_login(1, "Not logged in", environment) == Login(True)
    assert CODEX.read_login(1, "Not logged in", {"CODEX_HOME": str(home)}) == Login(False)


@pytest.mark.parametrize(
    ("code", "output", "environment", "login"),
    [
        (0, "Logged in using ChatGPT", {}, Login(True, is_subscription=True)),
        (0, "API key configured - sk-***", {}, Login(True)),
        (1, "Not logged in", {}, Login(False)),
        (1, "Not logged in", {"OPENAI_API_KEY": "x"}, Login(True)),
        (2, "error: unrecognized subcommand", {}, Login(None)),
    ],
)
def test_login_is_read_from_status(code: int, output: str, environment: dict[str, str], login: Login) -> None:
    assert CODEX.read_login(code, output, environment | {"HOME": "/nowhere"}) == login


def test_broken_user_settings_are_ignored(home: Path) -> None:
    (home / "config.toml").write_text("model = ")
    assert "model" not in command_of(home)


def test_refusal_has_reason_of_codex() -> None:
    assert CODEX.read_refusal('{"error": {"message": "unknown variant"}}') == "unknown variant"
    assert CODEX.read_refusal("no JSON") == ""


@pytest.mark.parametrize("value", ['a "quoted" text\n', 3, 1.5, True, ["a", {"b c": "d"}], {"key.with.dots": 1}])
def test_values_are_toml(value: object) -> None:
    assert tomllib.loads(f"value = {toml_value(value)}")["value"] == value


def record(kind: str, **payload: Any) -> bytes:
    return json.dumps({"type": kind, "payload": payload}).encode()


def event(kind: str, turn: str = "t1", **payload: Any) -> bytes:
    return record("event_msg", type=kind, turn_id=turn, **payload)


def usage(response: str, turn: str = "t1", whole: int = 1_000, cached: int = 200) -> bytes:
    used = {"input_tokens": whole, "cached_input_tokens": cached, "output_tokens": 50}
    return record("token_usage_record", turn_id=turn, response_id=response, usage=used)


def observed(*lines: bytes) -> CodexObserver:
    observer = CodexObserver()
    observer.add_lines(ROLLOUT.name, lines)
    return observer


def test_turn_is_running_until_it_ends_with_words() -> None:
    observer = CodexObserver()
    assert observer.observe(0) is None
    observer.add_lines(ROLLOUT.name, [event("task_started")])
    running = observer.observe(0)
    assert running is not None
    assert not running.needs_user
    observer.add_lines(ROLLOUT.name, [event("task_complete", last_agent_message="Which rate?")])
    asked = observer.observe(0)
    assert asked is not None
    assert (asked.needs_user, asked.question) == (True, "Which rate?")


def test_turns_of_subagents_do_not_decide_the_state() -> None:
    observer = observed(event("task_started"), event("task_complete", turn="t2", root_turn_id="t1"))
    running = observer.observe(0)
    assert running is not None
    assert not running.needs_user


@pytest.mark.parametrize(
    ("info", "kind"),
    [
        ({"response_too_many_failed_attempts": {"http_status_code": 429}}, ApiErrorKind.LIMITED),
        ("usage_limit_exceeded", ApiErrorKind.LIMITED),
        ("internal_server_error", ApiErrorKind.OVERLOADED),
        ({"http_connection_failed": {"http_status_code": 401}}, ApiErrorKind.LOGIN_LOST),
        ({"http_connection_failed": {"http_status_code": None}}, ApiErrorKind.UNREACHABLE),
    ],
)
def test_failed_turn_is_api_error(info: object, kind: ApiErrorKind) -> None:
    error = {"message": "exceeded retry limit", "codex_error_info": info}
    seen = observed(event("task_started"), event("task_complete", error=error)).observe(0)
    assert seen is not None
    assert (seen.needs_user, seen.api_error) == (False, ApiError(kind=kind, has_given_up=True))


def test_used_up_limit_ends_when_the_server_reports() -> None:
    limits = {"primary": {"used_percent": 100.0, "resets_at": 1_800_000_000}, "secondary": {"used_percent": 40.0}}
    error = {"message": "You have hit your usage limit.", "codex_error_info": "usage_limit_exceeded"}
    observer = observed(
        event("task_started"), event("token_count", rate_limits=limits), event("task_complete", error=error)
    )
    seen = observer.observe(0)
    assert seen is not None
    assert seen.api_error == ApiError(kind=ApiErrorKind.LIMITED, until=1_800_000_000, has_given_up=True)


def test_invalid_request_is_a_question() -> None:
    error = {"message": "The model does not exist.", "codex_error_info": "model_not_found"}
    seen = observed(event("task_started"), event("task_complete", error=error)).observe(0)
    assert seen is not None
    assert (seen.needs_user, seen.question) == (True, "The model does not exist.")


def test_tokens_of_each_response_count_once() -> None:
    observer = observed(
        record("turn_context", turn_id="t1", model="gpt-5.5"),
        record("turn_context", turn_id="t2", model="gpt-6-mini"),
        *(usage("r1"), usage("r1"), usage("r2"), usage("r3", turn="t2", cached=0)),
    )
    assert observer.models == (
        ModelTokens("gpt-5.5", input=1_600, output=100, cache_read=400),
        ModelTokens("gpt-6-mini", input=1_000, output=50),
    )


@pytest.mark.parametrize("end", [event("turn_aborted"), event("task_complete")])
def test_question_ends_with_its_turn(end: bytes) -> None:
    observer = observed(event("task_started"))
    asked = {"event": "asked", "id": "1", "at": 1.0, "kind": "PermissionRequest", "tool": "Bash"}
    observer.add_lines(EVENTS.name, [json.dumps(asked | {"input": {"command": "curl x"}}).encode()])
    seen = observer.observe(0)
    assert seen is not None
    assert seen.question == "it asks to use Bash: curl x"
    observer.add_lines(ROLLOUT.name, [end])
    assert not observer.open_questions
    assert list(observer.closed_questions) == ["1"]


@pytest.mark.parametrize(
    "line", [b"[]", b"{", b'{"type": "event_msg"}', b'{"type": "token_usage_record", "payload": {}}']
)
def test_other_lines_are_ignored(line: bytes) -> None:
    observer = observed(line)
    assert (observer.observe(0), observer.models) == (None, ())


def test_needed_version_is_the_tested_one() -> None:
    assert CODEX.needed_version == tuple(map(int, VERSIONS["codex"].split(".")))[:2]
