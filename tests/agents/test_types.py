"""The properties of each agent type, as other packages use them."""

from __future__ import annotations

import ast
import json
import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

import swarm_tui
from swarm_tui.agents import hook
from swarm_tui.agents.packaged import local_package_dir
from swarm_tui.agents.types import DEFAULT_AGENT_TYPE, AgentStart, AgentType, Login, agent_type_of, agent_type_of_sweep
from swarm_tui.agents.types.claude.observer import DEBUG_PATH
from swarm_tui.model.spec import MngrSettings, SweepSpec

ALL = ("offline", "command", "claude", "code-guardian", "codex")


def start_of(folder: Path, *arguments: str) -> AgentStart:
    return AgentStart(arguments, local_package_dir(folder), "/state", "/task.json")


def test_claude_arguments_have_hook_and_debug_file(tmp_path: Path) -> None:
    words = agent_type_of("claude").prepare_command(start_of(tmp_path, "--model", "opus"))
    assert words[:2] == ("--model", "opus")
    assert words[words.index("--debug-file") + 1] == f"/state/{DEBUG_PATH}"
    settings = json.loads(Path(words[words.index("--settings") + 1]).read_text())
    assert str(hook.__file__) in settings["hooks"]["PermissionRequest"][0]["hooks"][0]["command"]


@pytest.mark.parametrize("permissions", ["allow", "ask", "skip"])
def test_claude_skips_confirmation_of_skip_permissions(tmp_path: Path, permissions: str) -> None:
    kind = agent_type_of("claude")
    words = kind.prepare_command(start_of(tmp_path, *kind.permissions[permissions].words))
    settings = json.loads(Path(words[words.index("--settings") + 1]).read_text())
    assert settings["skipDangerousModePermissionPrompt"] is (permissions == "skip")


def test_user_settings_are_unchanged(tmp_path: Path) -> None:
    own = ("--settings", "mine.json", "--debug-file=log")
    assert agent_type_of("claude").prepare_command(start_of(tmp_path, *own)) == own


def test_unknown_type_is_left_to_mngr() -> None:
    kind = agent_type_of("aider")
    assert type(kind) is AgentType
    assert (kind.mngr_type, kind.plugin, kind.transcript_sources.emitters) == ("aider", "aider", ("aider",))
    assert kind.has_model
    assert kind.can_integrate
    assert kind.prepare_command(start_of(Path("/folder"), "--fast")) == ("--fast",)
    assert kind.unknown_facts.startswith("their cost")
    assert not any(
        agent_type_of(known).unknown_facts for known in ("claude", "codex", "command", "offline", "simulated")
    )


def test_offline_agent_is_command_without_message(tmp_path: Path) -> None:
    kind = agent_type_of("offline")
    assert (kind.name, kind.mngr_type, kind.plugin) == ("offline", "command", "")
    assert kind.message("/p") is None
    program, task_file = kind.prepare_command(start_of(tmp_path, "ignored"))
    assert (Path(program).parent, task_file) == (tmp_path, "/task.json")
    assert not kind.has_model
    assert not kind.can_integrate


def test_command_agent_requires_a_command() -> None:
    kind = agent_type_of("command")
    assert kind.argument_problem(()) == (
        "--agent command requires a command",
        "give each of its arguments with --agent-argument",
    )
    assert kind.argument_problem(("./agent.sh",)) == ("", "")
    assert not kind.has_model
    assert kind.can_integrate


def test_simulated_agent_is_marked_as_simulated() -> None:
    assert agent_type_of("simulated").is_simulated
    assert [agent_type for agent_type in ALL if agent_type_of(agent_type).is_simulated] == []


@pytest.mark.parametrize("agent_type", ALL)
def test_message_is_shorter_than_terminal_line_limit(agent_type: str) -> None:
    assert len(agent_type_of(agent_type).message("/" + "x" * 1000) or "") < 4095


def test_claude_as_root_sets_sandbox_for_skip() -> None:
    claude = agent_type_of("claude")
    assert claude.variables(claude.permissions["skip"].words, is_root=True) == {"IS_SANDBOX": "1"}
    assert claude.variables(claude.permissions["skip"].words, is_root=False) == {}
    assert claude.variables(claude.permissions["ask"].words, is_root=True) == {}


def test_explicit_permission_flags_take_precedence() -> None:
    claude = agent_type_of("claude")
    assert claude.permission("ask", ()).words == ("--permission-mode", "default")
    assert "--allowedTools" in claude.permission("allow", ("--model", "opus")).words
    own = claude.permission("allow", ("--permission-mode=plan", "--model", "opus"))
    assert (own.words, own.sentence) == ((), "do what --permission-mode=plan allows")
    assert agent_type_of("aider").permission("allow", ()).words == ()


def test_only_needed_variables_are_passed_to_claude() -> None:
    environment = {"ANTHROPIC_API_KEY": "k", "HTTPS_PROXY": "p", "GITHUB_TOKEN": "t", "CLAUDE_CODE_SSE_PORT": "1"}
    assert agent_type_of("claude").needed_variables(environment) == ("ANTHROPIC_API_KEY", "HTTPS_PROXY")
    assert agent_type_of("offline").needed_variables(environment) == ()


@pytest.mark.parametrize(
    ("output", "environment", "login"),
    [
        ('{"loggedIn": false, "authMethod": "none"}', {}, Login(False)),
        ('{"loggedIn": true, "authMethod": "api_key"}', {}, Login(True)),
        ('{"loggedIn": true, "authMethod": "claude.ai"}', {}, Login(True, is_subscription=True)),
        ('{"loggedIn": true, "authMethod": "oauth_token"}', {"ANTHROPIC_AUTH_TOKEN": "x"}, Login(True)),
        (
            '{"loggedIn": true, "authMethod": "oauth_token"}',
            {"CLAUDE_CODE_OAUTH_TOKEN": "x"},
            Login(True, is_subscription=True),
        ),
        ("error: unknown command 'auth'", {}, Login(None)),
        ("[]", {}, Login(None)),
        ("[" * 100_000, {}, Login(None)),
    ],
)
def test_login_is_read_from_claude_status(output: str, environment: dict[str, str], login: Login) -> None:
    assert agent_type_of("claude").read_login(1, output, environment) == login


def test_types_that_run_claude_are_claude_type() -> None:
    kind = agent_type_of("code-guardian")
    assert (kind.mngr_type, kind.plugin, kind.program, kind.process) == ("code-guardian", "claude", "claude", "claude")
    assert kind.transcript_sources == agent_type_of(DEFAULT_AGENT_TYPE).transcript_sources


def test_derived_type_has_type_of_its_parent() -> None:
    kind = agent_type_of("my-claude", "claude")
    assert (kind.name, kind.mngr_type, kind.program) == ("my-claude", "my-claude", "claude")
    assert kind.transcript_sources.emitters == ("claude",)
    settings = MngrSettings(path="mngr")
    spec = SweepSpec(
        sweep="s", repository="/r", base="b", created_at=0, mngr=settings, agent_type="my-claude", parent_type="claude"
    )
    assert agent_type_of_sweep(spec) == kind
    assert type(agent_type_of("my-script", "command")) is AgentType
    assert agent_type_of("my-agent", "aider").plugin == "my-agent"
    assert agent_type_of("claude", "command").program == "claude"


@pytest.mark.parametrize(
    ("name", "is_needed"),
    [
        ("ANTHROPIC_API_KEY", True),
        ("CLAUDE_CODE_USE_BEDROCK", True),
        ("CLAUDE_CONFIG_DIR", True),
        ("AWS_SESSION_TOKEN", True),
        ("GOOGLE_APPLICATION_CREDENTIALS", True),
        ("https_proxy", True),
        ("NODE_EXTRA_CA_CERTS", True),
        ("CLAUDE_CODE_MESSAGING_SOCKET", False),
        ("OPENAI_API_KEY", False),
        ("GITHUB_TOKEN", False),
    ],
)
def test_claude_gets_no_unrelated_secrets(name: str, is_needed: bool) -> None:
    claude = agent_type_of("claude")
    is_matched = any(fnmatchcase(name, pattern) for pattern in claude.environment_patterns)
    assert (is_matched and name not in claude.withheld_environment) is is_needed


@pytest.mark.parametrize(
    ("line", "is_dialog"),
    [
        (" ❯ 1. Yes, I trust this folder", True),
        (" Esc to cancel · Tab to amend", True),
        ("Enter to select · ↑/↓ to navigate · Esc to cancel", True),
        ("API error · Retrying in 17s · attempt 1/10", False),
        ("✻ Cogitating… (12s · esc to interrupt)", False),
        ("  Read 40 lines", False),
    ],
)
def test_claude_dialogs_are_recognized_on_screen(line: str, is_dialog: bool) -> None:
    claude = agent_type_of("claude")
    assert any(re.search(sign, line) for sign in claude.dialog_signs) is is_dialog


def test_only_type_modules_name_agent_types() -> None:
    package = Path(swarm_tui.__file__).parent
    asking = [
        f"{path.relative_to(package)}:{node.lineno}"
        for path in sorted(package.rglob("*.py"))
        if path.parent != package / "agents" / "kinds"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare)
        for side in (node.left, *node.comparators)
        if isinstance(side, ast.Constant) and side.value in ("claude", "offline", "command", "simulated")
    ]
    assert asking == []
