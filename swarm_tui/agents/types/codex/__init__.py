"""Plug-in: Codex."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from swarm_tui.agents import hook
from swarm_tui.agents.types import AgentStart, AgentType, Login, Permission
from swarm_tui.agents.types.codex import settings as codex_settings
from swarm_tui.agents.types.codex.settings import toml_value
from swarm_tui.model.text import parse_object, plain

if TYPE_CHECKING:
    from swarm_tui.agents.observer import AgentObserver

_HOOKS = ("SessionStart", "UserPromptSubmit", "Stop", "Interrupt", "PreCompact", "PostCompact")
_IGNORED_FLAGS = (
    *("--dangerously-bypass-approvals-and-sandbox", "--yolo", "--full-auto"),
    *("-s", "--sandbox", "-a", "--ask-for-approval"),
)


class CodexType(AgentType):
    """Codex agents."""

    AGENT_TYPES = ("codex",)
    title = "Codex"
    says_cost = True
    program = "codex"
    process = "codex"
    environment_patterns = (
        *("OPENAI_*", "CODEX_API_KEY", "CODEX_CA_CERTIFICATE"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR"),
    )
    # A trusted repository can change both in its .codex/config.toml. Only arguments take precedence over that file.
    permissions: ClassVar[Mapping[str, Permission]] = {
        "allow": Permission(
            "work in their copies and use the network without asking, in Codex's sandbox",
            ("-c", 'approval_policy="on-request"', "-c", 'sandbox_mode="workspace-write"'),
        ),
        "ask": Permission(
            "ask before they change anything", ("-c", 'approval_policy="on-request"', "-c", 'sandbox_mode="read-only"')
        ),
        "skip": Permission(
            "do anything without asking", ("-c", 'approval_policy="never"', "-c", 'sandbox_mode="danger-full-access"')
        ),
    }
    needs_full_copy = True
    needed_version = (0, 169)
    login_hint = "run `codex login`, or export OPENAI_API_KEY, which is passed only to agents"
    # It reports on standard error.
    login_command = ("sh", "-c", "codex login status 2>&1")
    start_dialog_hint = "run `codex` in your checkout, answer the dialog there, and exit"

    def needed_variables(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        key = codex_settings.key_variable(codex_settings.read_settings(environment))
        found = super().needed_variables(environment)
        return tuple(sorted({*found, key})) if key in environment else found

    def permission(self, chosen: str, arguments: Sequence[str]) -> Permission:
        # The user's arguments follow ours, so they take precedence.
        own = [f"{key}={value}" for key, value in codex_settings.overrides(arguments) if key in _POLICY_KEYS]
        permission = super().permission(chosen, arguments)
        return Permission(f"do what {' '.join(own)} allows", permission.words) if own else permission

    def argument_problem(self, arguments: Sequence[str]) -> tuple[str, str]:
        ignored = next((word for word in arguments if word.partition("=")[0] in _IGNORED_FLAGS), "")
        if ignored:
            return (
                f"Codex ignores {ignored} in agents",
                "use --permissions, or -c sandbox_mode=... -c approval_policy=...",
            )
        used = codex_settings.with_overrides(codex_settings.read_settings(os.environ), arguments)
        if secret := codex_settings.secret_in(used):
            return (
                f"{secret} of your model provider would be visible in the agents' command lines",
                "use env_key or env_http_headers in its table, and export the variable",
            )
        return "", ""

    def model(self, arguments: Sequence[str]) -> str:
        used = codex_settings.with_overrides(codex_settings.read_settings(os.environ), arguments)
        return str(used.get("model") or "")

    def argument_check(self, arguments: Sequence[str]) -> tuple[str, ...]:
        return ("codex", *self._with_settings(arguments, os.environ), "app-server", "--print-startup-config")

    def read_refusal(self, output: str) -> str:
        error = parse_object(output.encode()).get("error")
        message = error.get("message") if isinstance(error, dict) else None
        return plain(message, 300) if isinstance(message, str) else ""

    def prepare_command(self, start: AgentStart) -> tuple[str, ...]:
        roots = {"writable_roots": [".git", start.state_dir], "network_access": True}
        command = hook.hook_command(start.package_dir.python, start.package_dir.hook)
        handlers = {
            name: [{"hooks": [{"type": "command", "command": command, "timeout": seconds}]}]
            for name, seconds in (("PermissionRequest", hook.WAIT_SECONDS), *((name, 10) for name in _HOOKS))
        }
        ours = {"sandbox_workspace_write": roots, "hooks": handlers}
        words = tuple(word for key, value in ours.items() for word in ("-c", f"{key}={toml_value(value)}"))
        return (*words, *self._with_settings(start.arguments, os.environ))

    def read_login(
        self, code: int, output: str, environment: Mapping[str, str], arguments: Sequence[str] = ()
    ) -> Login:
        if "Logged in using ChatGPT" in output:
            return Login(True, is_subscription=True)
        if code == 0:
            return Login(True)
        used = codex_settings.with_overrides(codex_settings.read_settings(environment), arguments)
        provider = codex_settings.provider_of(used)
        if provider is not None and provider.get("requires_openai_auth") is not True:
            variable = codex_settings.key_variable(used)
            return Login(not variable or variable in environment)
        if "OPENAI_API_KEY" in environment:
            return Login(True)
        # A wrapper, or a version without this command: it may still be logged in.
        return Login(False if "Not logged in" in output else None)

    def new_observer(self) -> AgentObserver:
        from swarm_tui.agents.types.codex.observer import CodexObserver

        return CodexObserver()

    def _with_settings(self, arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
        """Return arguments after those for the user's own settings, which mngr does not give to agents."""
        return (*codex_settings.kept_arguments(codex_settings.read_settings(environment)), *arguments)


_POLICY_KEYS = ("approval_policy", "sandbox_mode", "default_permissions")

AGENT_TYPE = CodexType
