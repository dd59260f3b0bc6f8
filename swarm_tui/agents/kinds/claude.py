"""Claude: Claude Code, and the types of mngr that run it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from swarm_tui.agents.kinds import AgentKind, AgentStart, Login, Permission
from swarm_tui.regular_file import read_regular
from swarm_tui.transcripts.locate import TranscriptSources

if TYPE_CHECKING:
    from swarm_tui.agents.observation import AgentObserver
    from swarm_tui.agents.transcript_summary import TranscriptSummary

_SESSION_LOGS: Final = (
    "plugin/claude/anthropic/projects/*/*.jsonl",
    "plugin/claude/anthropic/projects/*/*/subagents/*.jsonl",
)
_NOTED_BY_MNGR: Final = (".claude.json", ".claude.json.lock")
_SKIPS_PERMISSIONS: Final = "--dangerously-skip-permissions"


class ClaudeKind(AgentKind):
    """Agents that are Claude Code."""

    AGENT_TYPES = ("claude", "code-guardian", "fixme-fairy")
    title = "Claude"
    says_cost = True
    program = "claude"
    process = "claude"
    environment_patterns = (
        *("ANTHROPIC_*", "CLAUDE_CODE_*", "CLAUDE_CONFIG_DIR", "API_TIMEOUT_MS", "DISABLE_*"),
        # Bedrock, Vertex and Foundry log in with what their clouds' own programs use.
        *("AWS_*", "GOOGLE_*", "CLOUDSDK_*", "CLOUD_ML_REGION", "GCLOUD_PROJECT", "VERTEX_REGION_*", "AZURE_*"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    )
    # A Claude from whose terminal swarm-tui was started sets these for its own children.
    withheld_environment = ("CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_SSE_PORT")
    # Without a mode Claude begins in auto mode, whose check fails behind any other server than Anthropic's.
    permissions: ClassVar[Mapping[str, Permission]] = {
        "allow": Permission(
            "read, edit and run in their copies without asking",
            ("--permission-mode", "default", "--allowedTools", "Bash,Edit,Write,Read,NotebookEdit,Glob,Grep"),
        ),
        "ask": Permission("ask before they edit or run anything", ("--permission-mode", "default")),
        "skip": Permission("do anything, and Claude checks nothing", (_SKIPS_PERMISSIONS,)),
    }
    permission_flags = (_SKIPS_PERMISSIONS, "--permission-mode", "--allowedTools", "--allowed-tools")
    needed_version = (2, 1)
    login_hint = "run `claude` and log in, or export ANTHROPIC_API_KEY: it reaches the agents and nobody else"
    login_command = ("claude", "auth", "status")
    dialog_signs = (
        r"Esc to cancel",
        r"Enter to (?:select|continue|confirm)",
        r"Do you want to (?:proceed|use this API key)\?",
        r"Ready to code\?",
        r"Yes, I (?:trust this folder|accept)",
    )

    start_dialog_hint = (
        "run `claude` in your checkout and answer it, agents take that answer over; what it says of settings, mend "
        "and commit"
    )

    @property
    def plugin(self) -> str:
        return "claude"

    @property
    def transcript_sources(self) -> TranscriptSources:
        return TranscriptSources(("claude",), _SESSION_LOGS)

    def home_problem(self, environment: Mapping[str, str]) -> str:
        home = Path(environment.get("HOME") or Path.home())
        needed = [home, *(path for name in _NOTED_BY_MNGR if (path := home / name).exists())]
        closed = next((path for path in needed if not os.access(path, os.W_OK)), None)
        is_noted_there = "CLAUDE_CONFIG_DIR" not in environment
        problem = f"{closed} cannot be written: mngr notes in ~/.claude.json that Claude may work in the agents' copies"
        return problem if closed is not None and is_noted_there else ""

    def project_problem(self, read: Callable[[str], bytes]) -> str:
        from swarm_tui.agents.claude.project_settings import SETTINGS_PATHS, settings_problem

        found = ((path, settings_problem(read(path))) for path in SETTINGS_PATHS)
        return next(
            (f"{path}: {problem}, and Claude would stop at its start" for path, problem in found if problem), ""
        )

    def unapproved_servers(self, read: Callable[[str], bytes]) -> tuple[str, ...]:
        from swarm_tui.agents.claude.project_servers import SERVERS_PATH, SETTINGS_PATH, unapproved_servers

        servers = read(SERVERS_PATH)
        own = Path(os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude").expanduser() / "settings.json"
        return unapproved_servers(servers, (read(SETTINGS_PATH), _content(own))) if servers else ()

    def outside_imports(self, read: Callable[[str], bytes]) -> tuple[str, ...]:
        from swarm_tui.agents.claude.outside_imports import outside_imports

        return outside_imports(read)

    def prepare_command(self, start: AgentStart) -> tuple[str, ...]:
        from swarm_tui.agents.claude.observer import DEBUG_PATH
        from swarm_tui.agents.claude.outside_imports import exclusion_patterns
        from swarm_tui.agents.shipped import write_hook_settings

        given = {word.partition("=")[0] for word in start.arguments}
        words = start.arguments
        if "--settings" not in given:
            # Each of these would have Claude stop at its start and ask.
            answers: dict[str, object] = {
                "disabledMcpjsonServers": start.unapproved_servers,
                "claudeMdExcludes": exclusion_patterns(start.outside_imports),
                "skipDangerousModePermissionPrompt": _SKIPS_PERMISSIONS in start.arguments,
            }
            words += ("--settings", write_hook_settings(start.shelf, answers))
        if "--debug-file" not in given:
            words += ("--debug-file", f"{start.state_dir}/{DEBUG_PATH}")
        return words

    def read_login(self, code: int, output: str, environment: Mapping[str, str]) -> Login:
        try:
            status = json.loads(output)
            is_logged_in, method = bool(status["loggedIn"]), status.get("authMethod")
        except (ValueError, KeyError, TypeError, RecursionError):
            # A wrapper, or a version that has no such command: it may be logged in all the same.
            return Login(None)
        has_token = method == "oauth_token" and "CLAUDE_CODE_OAUTH_TOKEN" in environment
        return Login(is_logged_in, is_subscription=method == "claude.ai" or has_token)

    def variables(self, arguments: Sequence[str], *, is_root: bool) -> dict[str, str]:
        # Claude refuses this option to root, unless the variable says that the machine is a sandbox.
        return {"IS_SANDBOX": "1"} if is_root and _SKIPS_PERMISSIONS in arguments else {}

    def new_observer(self) -> AgentObserver:
        from swarm_tui.agents.claude.observer import ClaudeObserver

        return ClaudeObserver()

    def new_summary(self) -> TranscriptSummary:
        from swarm_tui.agents.claude.session_log import ClaudeSummary

        return ClaudeSummary()


def _content(path: Path) -> bytes:
    try:
        return read_regular(path)
    except OSError:
        return b""


KIND = ClaudeKind
