"""The Dockerfile of new containers without `--build-arg`."""

from __future__ import annotations

from swarm_tui.agents.types import agent_type_of
from swarm_tui.hosts.creation import default_dockerfile


def test_default_image_has_python_and_program_of_agent() -> None:
    lines = default_dockerfile(agent_type_of("offline")).splitlines()
    assert lines[0] == "FROM debian:bookworm-slim"
    assert {"git", "openssh-server", "procps", "python3", "python3-pytest", "rsync", "tmux"} <= set(lines[2].split())
    assert sum(line.startswith("RUN") for line in lines) == 1
    claude = agent_type_of("claude")
    version = ".".join(map(str, claude.tested_version))
    assert f"@anthropic-ai/claude-code@{version} " in default_dockerfile(claude).splitlines()[-1]
