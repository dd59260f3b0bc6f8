"""What is special about each kind of agent, as the rest of the program asks for it."""

from __future__ import annotations

import ast
import json
import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

import swarm_tui
from swarm_tui.agents.claude import hook
from swarm_tui.agents.claude.observer import DEBUG_PATH
from swarm_tui.agents.kinds import DEFAULT_AGENT_TYPE, AgentKind, AgentStart, Login, kind_of, kind_of_sweep
from swarm_tui.agents.shipped import shelf_here
from swarm_tui.model.sweep import MngrSettings, SweepSpec

ALL = ("offline", "command", "claude", "code-guardian", "codex")


def start_of(folder: Path, *arguments: str) -> AgentStart:
    return AgentStart(arguments, shelf_here(folder), "/state", "/task.json")


def test_claude_runs_our_hook_and_logs_its_requests(tmp_path: Path) -> None:
    words = kind_of("claude").prepare_command(start_of(tmp_path, "--model", "opus"))
    assert words[:2] == ("--model", "opus")
    assert words[words.index("--debug-file") + 1] == f"/state/{DEBUG_PATH}"
    settings = json.loads(Path(words[words.index("--settings") + 1]).read_text())
    assert str(hook.__file__) in settings["hooks"]["PermissionRequest"][0]["hooks"][0]["command"]


@pytest.mark.parametrize("permissions", ["allow", "ask", "skip"])
def test_claude_does_not_ask_whether_it_may_skip_what_the_person_has_chosen_to_skip(
    tmp_path: Path, permissions: str
) -> None:
    kind = kind_of("claude")
    words = kind.prepare_command(start_of(tmp_path, *kind.permissions[permissions].words))
    settings = json.loads(Path(words[words.index("--settings") + 1]).read_text())
    assert settings["skipDangerousModePermissionPrompt"] is (permissions == "skip")


def test_settings_of_a_persons_own_are_left_alone(tmp_path: Path) -> None:
    own = ("--settings", "mine.json", "--debug-file=log")
    assert kind_of("claude").prepare_command(start_of(tmp_path, *own)) == own


def test_a_type_that_no_module_names_is_one_of_mngrs() -> None:
    kind = kind_of("codex")
    assert type(kind) is AgentKind
    assert (kind.mngr_type, kind.plugin, kind.transcript_sources.emitters) == ("codex", "codex", ("codex",))
    assert kind.has_model
    assert kind.can_integrate
    assert kind.prepare_command(start_of(Path("/folder"), "--fast")) == ("--fast",)
    assert kind.unknown_facts.startswith("what they cost")
    assert not any(kind_of(known).unknown_facts for known in ("claude", "command", "offline", "simulated"))


def test_the_offline_agent_is_a_command_that_needs_no_message(tmp_path: Path) -> None:
    kind = kind_of("offline")
    assert (kind.agent_type, kind.mngr_type, kind.plugin) == ("offline", "command", "")
    assert kind.message("/p") is None
    program, task_file = kind.prepare_command(start_of(tmp_path, "ignored"))
    assert (Path(program).parent, task_file) == (tmp_path, "/task.json")
    assert not kind.has_model
    assert not kind.can_integrate


def test_a_command_has_to_be_given() -> None:
    kind = kind_of("command")
    assert kind.argument_problem(()) == (
        "--agent command needs the command",
        "give its words with --agent-argument, one by one",
    )
    assert kind.argument_problem(("./agent.sh",)) == ("", "")
    assert not kind.has_model
    assert kind.can_integrate


def test_a_simulated_agent_is_an_agent_that_is_not_there() -> None:
    assert kind_of("simulated").is_simulated
    assert [agent_type for agent_type in ALL if kind_of(agent_type).is_simulated] == []


@pytest.mark.parametrize("agent_type", ALL)
def test_a_message_is_shorter_than_a_terminal_line_may_be(agent_type: str) -> None:
    assert len(kind_of(agent_type).message("/" + "x" * 1000) or "") < 4095


def test_claude_run_by_root_skips_permissions_only_in_a_sandbox() -> None:
    claude = kind_of("claude")
    assert claude.variables(claude.permissions["skip"].words, is_root=True) == {"IS_SANDBOX": "1"}
    assert claude.variables(claude.permissions["skip"].words, is_root=False) == {}
    assert claude.variables(claude.permissions["ask"].words, is_root=True) == {}


def test_permissions_are_chosen_by_the_person() -> None:
    claude = kind_of("claude")
    assert claude.permission("ask", ()).words == ("--permission-mode", "default")
    assert "--allowedTools" in claude.permission("allow", ("--model", "opus")).words
    own = claude.permission("allow", ("--permission-mode=plan", "--model", "opus"))
    assert (own.words, own.sentence) == ((), "do what --permission-mode=plan lets them")
    assert kind_of("codex").permission("allow", ()).words == ()


def test_what_claude_needs_of_an_environment_is_passed_and_nothing_else() -> None:
    environment = {"ANTHROPIC_API_KEY": "k", "HTTPS_PROXY": "p", "GITHUB_TOKEN": "t", "CLAUDE_CODE_SSE_PORT": "1"}
    assert kind_of("claude").needed_variables(environment) == ("ANTHROPIC_API_KEY", "HTTPS_PROXY")
    assert kind_of("offline").needed_variables(environment) == ()


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
def test_claude_says_whether_it_is_logged_in(output: str, environment: dict[str, str], login: Login) -> None:
    assert kind_of("claude").read_login(1, output, environment) == login


def test_types_that_run_claude_are_claude() -> None:
    kind = kind_of("code-guardian")
    assert (kind.mngr_type, kind.plugin, kind.program, kind.process) == ("code-guardian", "claude", "claude", "claude")
    assert kind.transcript_sources == kind_of(DEFAULT_AGENT_TYPE).transcript_sources


def test_a_type_of_mngrs_settings_is_of_the_kind_of_its_parent() -> None:
    kind = kind_of("my-claude", "claude")
    assert (kind.agent_type, kind.mngr_type, kind.program) == ("my-claude", "my-claude", "claude")
    assert kind.transcript_sources.emitters == ("claude",)
    settings = MngrSettings(path="mngr")
    spec = SweepSpec(
        sweep="s", repository="/r", base="b", created_at=0, mngr=settings, agent_type="my-claude", parent_type="claude"
    )
    assert kind_of_sweep(spec) == kind
    assert type(kind_of("my-script", "command")) is AgentKind
    assert kind_of("my-agent", "codex").plugin == "my-agent"
    assert kind_of("claude", "command").program == "claude"


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
def test_claude_needs_its_own_variables_and_no_other_secrets(name: str, is_needed: bool) -> None:
    claude = kind_of("claude")
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
def test_dialogs_of_claude_are_seen_on_its_screen(line: str, is_dialog: bool) -> None:
    claude = kind_of("claude")
    assert any(re.search(sign, line) for sign in claude.dialog_signs) is is_dialog


def test_no_other_module_asks_for_a_type_of_agent() -> None:
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
