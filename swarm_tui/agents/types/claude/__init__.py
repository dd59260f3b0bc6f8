"""Plug-in: Claude Code."""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from swarm_tui.agents.types import AgentStart, AgentType, HomeLeftovers, Login, Permission
from swarm_tui.files import read_regular
from swarm_tui.model.text import parse_json, parse_object
from swarm_tui.transcripts.locate import TranscriptSources

if TYPE_CHECKING:
    from swarm_tui.agents.observer import AgentObserver
    from swarm_tui.agents.summary import TranscriptSummary


MEMORY_PATHS: Final = ("CLAUDE.md", ".claude/CLAUDE.md")
FILES_LIMIT: Final = 50
_IMPORT: Final = re.compile(r"(?:^|\s)@((?:[^\s\\]|\\ )+)")
_PATH: Final = re.compile(r"[\w.][\w./ +-]*")


def outside_imports(read: Callable[[str], bytes]) -> tuple[str, ...]:
    """Return the imported paths outside of a project, as written; `read` returns a file of the project."""
    outside: dict[str, None] = {}
    waiting = deque(MEMORY_PATHS)
    seen = set(waiting)
    while waiting:
        path = waiting.popleft()
        for found in _IMPORT.findall(read(path).decode("utf-8", "replace")):
            name = found.replace("\\ ", " ")
            if name.startswith(("/", "~/")):
                outside[name] = None
                continue
            inside = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
            # There is nothing outside of an agent's copy that could be imported.
            if not inside.startswith("../") and _PATH.fullmatch(inside) and inside not in seen:
                seen.add(inside)
                if len(seen) <= FILES_LIMIT:
                    waiting.append(inside)
    return tuple(outside)


def exclusion_patterns(imports: tuple[str, ...]) -> list[str]:
    """Return the patterns that make Claude Code exclude these files, on this machine and on others."""
    patterns: list[str] = []
    for name in imports:
        if name.startswith("~/"):
            patterns += [str(Path.home() / name[2:]), f"/{{root,home/*,Users/*}}/{name[2:]}"]
        else:
            patterns.append(name)
    return patterns


SERVERS_PATH: Final = ".mcp.json"
SETTINGS_PATH: Final = ".claude/settings.json"


def unapproved_servers(servers: bytes, settings: Iterable[bytes]) -> tuple[str, ...]:
    """Return the servers in `.mcp.json` that no settings approve; `settings` are the contents of settings files."""
    declared = parse_object(servers).get("mcpServers")
    approved: set[str] = set()
    for content in settings:
        found = parse_object(content)
        if found.get("enableAllProjectMcpServers") is True:
            return ()
        names = found.get("enabledMcpjsonServers")
        approved |= {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()
    return tuple(sorted(declared.keys() - approved)) if isinstance(declared, dict) else ()


SETTINGS_PATHS: Final = (".claude/settings.json", ".claude/settings.local.json")
_OBJECTS: Final = ("permissions", "hooks", "env")


def settings_problem(content: bytes) -> str:
    """Return why Claude Code rejects these settings, or "". Only common errors are checked."""
    text = content.decode("utf-8-sig", "replace").strip()
    if not text:
        return ""
    try:
        found = parse_json(text)
    except json.JSONDecodeError as error:
        return f"invalid JSON in line {error.lineno} ({error.msg})"
    except ValueError as error:
        return str(error)
    if not isinstance(found, dict):
        return "not a JSON object"
    wrong = next((name for name in _OBJECTS if not isinstance(found.get(name, {}), dict)), "")
    return f"{wrong!r} is not a JSON object" if wrong else ""


_SESSION_LOGS: Final = (
    "plugin/claude/anthropic/projects/*/*.jsonl",
    "plugin/claude/anthropic/projects/*/*/subagents/*.jsonl",
)
_WRITTEN_BY_MNGR: Final = (".claude.json", ".claude.json.lock")
_SKIPS_PERMISSIONS: Final = "--dangerously-skip-permissions"


class ClaudeType(AgentType):
    """Claude Code agents."""

    AGENT_TYPES = ("claude", "code-guardian", "fixme-fairy")
    title = "Claude"
    says_cost = True
    program = "claude"
    process = "claude"
    environment_patterns = (
        *("ANTHROPIC_*", "CLAUDE_CODE_*", "CLAUDE_CONFIG_DIR", "API_TIMEOUT_MS", "DISABLE_*"),
        # Bedrock, Vertex and Foundry use the credentials of their clouds' command line tools.
        *("AWS_*", "GOOGLE_*", "CLOUDSDK_*", "CLOUD_ML_REGION", "GCLOUD_PROJECT", "VERTEX_REGION_*", "AZURE_*"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"),
        *("BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_*", "MAX_MCP_OUTPUT_TOKENS", "MAX_THINKING_TOKENS", "MCP_*", "OTEL_*"),
        *("ENABLE_TOOL_SEARCH", "USE_BUILTIN_RIPGREP", "IS_SANDBOX"),
    )
    # Claude Code sets these for its child processes, such as a swarm-tui that was started from its terminal.
    withheld_environment = ("CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_SSE_PORT")
    # Without a mode, Claude starts in auto mode, whose check works only with Anthropic's own server.
    permissions: ClassVar[Mapping[str, Permission]] = {
        "allow": Permission(
            "read, edit and run commands in their copies without asking",
            ("--permission-mode", "default", "--allowedTools", "Bash,Edit,Write,Read,NotebookEdit,Glob,Grep"),
        ),
        "ask": Permission("ask before they edit files or run commands", ("--permission-mode", "default")),
        "skip": Permission("do anything without asking", (_SKIPS_PERMISSIONS,)),
    }
    permission_flags = (_SKIPS_PERMISSIONS, "--permission-mode", "--allowedTools", "--allowed-tools")
    needed_version = (2, 1)
    # CLAUDE_CODE_VERSION in imbue-mngr-claude 0.3
    tested_version = (2, 1, 293)
    install_command = (
        "apt-get update && apt-get install -y --no-install-recommends nodejs npm"
        " && npm install --global @anthropic-ai/claude-code@2.1.293 && rm -rf /var/lib/apt/lists/*"
    )
    login_hint = "run `claude` and log in, or export ANTHROPIC_API_KEY, which is passed only to agents"
    login_command = ("claude", "auth", "status")
    dialog_signs = (
        r"Esc to cancel",
        r"Enter to (?:select|continue|confirm)",
        r"Do you want to (?:proceed|use this API key)\?",
        r"Ready to code\?",
        r"Yes, I (?:trust this folder|accept)",
    )

    start_dialog_hint = (
        "run `claude` in your checkout and answer the dialog, agents use your answer; fix and commit settings that it "
        "complains about"
    )

    @property
    def plugin(self) -> str:
        return "claude"

    @property
    def transcript_sources(self) -> TranscriptSources:
        return TranscriptSources(("claude",), _SESSION_LOGS)

    def model(self, arguments: Sequence[str]) -> str:
        named = [word for flag, word in pairwise(arguments) if flag == "--model"]
        named += [word.removeprefix("--model=") for word in arguments if word.startswith("--model=")]
        # Claude Code chooses the version of an alias, such as opus.
        return named[-1] if named and named[-1].startswith("claude-") else ""

    def home_problem(self, environment: Mapping[str, str]) -> str:
        home = Path(environment.get("HOME") or Path.home())
        needed = [home, *(path for name in _WRITTEN_BY_MNGR if (path := home / name).exists())]
        closed = next((path for path in needed if not os.access(path, os.W_OK)), None)
        is_noted_there = "CLAUDE_CONFIG_DIR" not in environment
        problem = f"{closed} is not writable: mngr has to record trust for the agents' copies in ~/.claude.json"
        return problem if closed is not None and is_noted_there else ""

    def home_leftovers(self, copies: Sequence[str], environment: Mapping[str, str]) -> HomeLeftovers:
        from swarm_tui.agents.types.claude.home import find_leftovers

        return find_leftovers(copies, environment)

    def clean_home(self, copies: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        from swarm_tui.agents.types.claude.home import remove_leftovers

        return remove_leftovers(copies, environment)

    def project_problem(self, read: Callable[[str], bytes]) -> str:

        found = ((path, settings_problem(read(path))) for path in SETTINGS_PATHS)
        return next((f"{path}: {problem}, so Claude would stop at its start" for path, problem in found if problem), "")

    def unapproved_servers(self, read: Callable[[str], bytes]) -> tuple[str, ...]:

        servers = read(SERVERS_PATH)
        own = Path(os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude").expanduser() / "settings.json"
        return unapproved_servers(servers, (read(SETTINGS_PATH), _content(own))) if servers else ()

    def outside_imports(self, read: Callable[[str], bytes]) -> tuple[str, ...]:

        return outside_imports(read)

    def prepare_command(self, start: AgentStart) -> tuple[str, ...]:
        from swarm_tui.agents.packaged import write_hook_settings
        from swarm_tui.agents.types.claude.observer import DEBUG_PATH

        options = {word.partition("=")[0] for word in start.arguments}
        arguments = start.arguments
        if "--settings" not in options:
            # Each of these would make Claude stop at its start and ask.
            answers: dict[str, object] = {
                "disabledMcpjsonServers": start.unapproved_servers,
                "claudeMdExcludes": exclusion_patterns(start.outside_imports),
                "skipDangerousModePermissionPrompt": _SKIPS_PERMISSIONS in start.arguments,
            }
            arguments += ("--settings", write_hook_settings(start.package_dir, answers))
        if "--debug-file" not in options:
            arguments += ("--debug-file", f"{start.state_dir}/{DEBUG_PATH}")
        return arguments

    def read_login(
        self, code: int, output: str, environment: Mapping[str, str], arguments: Sequence[str] = ()
    ) -> Login:
        try:
            status = parse_json(output)
            is_logged_in, method = bool(status["loggedIn"]), status.get("authMethod")
        except (ValueError, KeyError, TypeError):
            # A wrapper, or a version without this command: it may still be logged in.
            return Login(None)
        has_token = method == "oauth_token" and "CLAUDE_CODE_OAUTH_TOKEN" in environment
        return Login(is_logged_in, is_subscription=method == "claude.ai" or has_token)

    def variables(self, arguments: Sequence[str], *, is_root: bool) -> dict[str, str]:
        # Claude rejects this option for root, unless the variable marks the machine as a sandbox.
        return {"IS_SANDBOX": "1"} if is_root and _SKIPS_PERMISSIONS in arguments else {}

    def new_observer(self) -> AgentObserver:
        from swarm_tui.agents.types.claude.observer import ClaudeObserver

        return ClaudeObserver()

    def new_summary(self) -> TranscriptSummary:
        from swarm_tui.agents.types.claude.session_log import ClaudeSummary

        return ClaudeSummary()


def _content(path: Path) -> bytes:
    try:
        return read_regular(path)
    except OSError:
        return b""


AGENT_TYPE = ClaudeType
