"""Plug-in: opencode."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from swarm_tui.agents.types import AgentStart, AgentType, Login, Permission
from swarm_tui.files import read_regular
from swarm_tui.model.text import parse_object

if TYPE_CHECKING:
    from swarm_tui.agents.observer import AgentObserver

FREE_PROVIDER: Final = "opencode"
"""The provider whose free online models opencode uses if no other one is configured."""
_VARIABLE: Final = re.compile(rb"\{env:(\w+)\}")
_COUNT: Final = re.compile(r"([1-9]\d*) (?:credential|environment variable)")
_POLICIES: Final[Mapping[str, Mapping[str, object]]] = {
    "allow": {"*": "allow", "external_directory": "ask"},
    "ask": {"*": "allow", "bash": "ask", "edit": "ask", "webfetch": "ask", "external_directory": "ask"},
    "skip": {"*": "allow"},
}


class OpenCodeType(AgentType):
    """opencode agents."""

    AGENT_TYPES = ("opencode",)
    title = "opencode"
    says_cost = True
    program = "opencode"
    process = "opencode"
    # Its server starts npm, which takes long on a busy machine.
    ready_within = 30.0
    environment_patterns = (
        *("ANTHROPIC_*", "OPENAI_*", "OPENROUTER_*", "AZURE_*", "AWS_*", "GOOGLE_*", "GEMINI_API_KEY", "GROQ_API_KEY"),
        *("MISTRAL_API_KEY", "DEEPSEEK_API_KEY", "XAI_API_KEY", "TOGETHER_API_KEY", "CEREBRAS_API_KEY"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR", "npm_config_*", "NPM_CONFIG_*"),
    )
    permissions: ClassVar[Mapping[str, Permission]] = {
        "allow": Permission("do anything in their copies, and ask before they use files outside of them"),
        "ask": Permission("ask before they edit files, run commands or fetch pages"),
        "skip": Permission("do anything without asking"),
    }
    needed_version = (1, 18)
    login_hint = (
        'run `opencode auth login`, or set "model" in ~/.config/opencode/opencode.json: without a login, opencode '
        "sends your code to its free online models"
    )
    login_command = ("sh", "-c", "opencode auth list && OPENCODE_DISABLE_PROJECT_CONFIG=1 opencode debug config")

    def needed_variables(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        named = {name.decode() for name in _VARIABLE.findall(_user_config(environment))}
        return tuple(sorted({*super().needed_variables(environment), *(named & environment.keys())}))

    def read_login(
        self, code: int, output: str, environment: Mapping[str, str], arguments: Sequence[str] = ()
    ) -> Login:
        listed, brace, config = output.partition("\n{")
        if code != 0 or not brace:
            # A wrapper, or a version without these commands: it may still be logged in.
            return Login(None)
        settings = parse_object(f"{{{config}".encode())
        has_provider = bool(settings.get("provider")) or isinstance(settings.get("model"), str)
        return Login(has_provider or _COUNT.search(listed) is not None)

    def argument_problem(self, arguments: Sequence[str]) -> tuple[str, str]:
        if "-m" in arguments or any(word.startswith("--model") for word in arguments):
            return "opencode ignores --model in agents", 'set "model" in ~/.config/opencode/opencode.json'
        return "", ""

    def create_arguments(self, start: AgentStart, permissions: str) -> tuple[str, ...]:
        from swarm_tui.agents.packaged import write_shared

        write_shared(start.package_dir.folder / "opencode-plugin.js", read_regular(_PLUGIN).decode())
        user = parse_object(_user_config(os.environ))
        plugins = user.get("plugin")
        overrides: dict[str, Any] = {
            "plugin": [
                *(plugins if isinstance(plugins, list) else ()),
                f"file://{start.package_dir.path('opencode-plugin.js')}",
            ],
            "permission": _POLICIES.get(permissions, {}),
            "autoupdate": False,
            "share": "disabled",
        }
        chosen = (user.get("model"), user.get("small_model"))
        if not any(isinstance(model, str) and model.startswith(f"{FREE_PROVIDER}/") for model in chosen):
            disabled = user.get("disabled_providers")
            overrides["disabled_providers"] = [*(disabled if isinstance(disabled, list) else ()), FREE_PROVIDER]
        return ("-S", f"agent_types.{self.mngr_type}.config_overrides={json.dumps(overrides)}")

    def variables(self, arguments: Sequence[str], *, is_root: bool) -> dict[str, str]:
        # The project's settings would take precedence over --permissions, and its plugins run in the server.
        return {"OPENCODE_DISABLE_PROJECT_CONFIG": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}

    def message(self, prompt: str) -> str:
        # Without the project's settings, opencode does not read these files.
        return f"{super().message(prompt)} Also follow AGENTS.md or CLAUDE.md of the repository, if there is one."

    def new_observer(self) -> AgentObserver:
        from swarm_tui.agents.types.opencode.observer import OpenCodeObserver

        return OpenCodeObserver()


_PLUGIN: Final = Path(__file__).with_name("plugin.js")


def _user_config(environment: Mapping[str, str]) -> bytes:
    """Return the user's configuration; empty if there is none."""
    home = Path(environment.get("HOME") or Path.home())
    folder = Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "opencode"
    for name in ("opencode.json", "opencode.jsonc"):
        try:
            return read_regular(folder / name)
        except OSError:
            continue
    return b""


AGENT_TYPE = OpenCodeType
