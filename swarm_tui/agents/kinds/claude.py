"""Claude: Claude Code, and the types of mngr that run it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from swarm_tui.agents.kinds import AgentKind
from swarm_tui.agents.transcript_summary import TranscriptSummary

_SKIPS_PERMISSIONS: Final = "--dangerously-skip-permissions"


class ClaudeKind(AgentKind):
    """Agents that are Claude Code."""

    AGENT_TYPES = ("claude", "code-guardian", "fixme-fairy")
    title = "Claude"
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
    permissions: ClassVar[Mapping[str, tuple[str, ...]]] = {
        # Without a mode Claude begins in auto mode, whose check fails behind any other server than Anthropic's.
        "ask": ("--permission-mode", "default"),
        "tools": ("--permission-mode", "default", "--allowedTools", "Bash,Edit,Write,Read"),
        "skip": (_SKIPS_PERMISSIONS,),
    }
    dialog_signs = (
        r"Esc to cancel",
        r"Enter to (?:select|continue|confirm)",
        r"Do you want to (?:proceed|use this API key)\?",
        r"Ready to code\?",
        r"Yes, I (?:trust this folder|accept)",
    )
    limit_signs = (
        r"You've hit your limit",
        r"continuing automatically at",
        r"API [Ee]rror\b",
        r"Retrying in \d+s",
        r"Credit balance is too low",
        r"Please run /login",
    )

    @property
    def plugin(self) -> str:
        return "claude"

    @property
    def transcript_emitters(self) -> tuple[str, ...]:
        return ("claude",)

    def variables(self, arguments: Sequence[str], *, is_root: bool) -> dict[str, str]:
        # Claude refuses this option to root, unless the variable says that the machine is a sandbox.
        return {"IS_SANDBOX": "1"} if is_root and _SKIPS_PERMISSIONS in arguments else {}

    def new_summary(self) -> TranscriptSummary:
        from swarm_tui.agents.claude.session_log import ClaudeSummary

        return ClaudeSummary()


KIND = ClaudeKind
