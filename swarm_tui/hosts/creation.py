"""Check before a sweep that mngr can create hosts with a provider."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Final, NamedTuple

from swarm_tui.adapters.mngr import MngrAdapter
from swarm_tui.adapters.mngr_messages import is_agent_name
from swarm_tui.adapters.mngr_settings import provider_settings
from swarm_tui.agents.types import AgentType
from swarm_tui.errors import AdapterError, UsageError
from swarm_tui.model.options import RunOptions
from swarm_tui.model.spec import LOCAL_HOST
from swarm_tui.model.text import plain

_HOST_DIRS: Final = {"docker": "/mngr", "modal": "/mngr"}
"""mngr's folder on hosts, by provider, if the settings have none."""


_PACKAGES: Final = (
    "ca-certificates curl git jq openssh-server procps python3 python3-pytest python3-venv rsync tmux util-linux xxd"
)
"""What mngr installs into its default image, and what agents and test runs of swarm-tui need besides."""


class NewHosts(NamedTuple):
    """The hosts that a provider of mngr creates."""

    host_dir: str
    """mngr's folder on the hosts."""
    backend: str
    has_image: bool
    """Whether the settings of mngr name an image."""


def default_dockerfile(kind: AgentType) -> str:
    """Return the Dockerfile of new containers without `--build-arg`: mngr's default image has no Python."""
    lines = ["FROM debian:bookworm-slim"]
    lines += ["RUN apt-get update && apt-get install -y --no-install-recommends \\", f"    {_PACKAGES} \\"]
    lines += ["    && rm -rf /var/lib/apt/lists/*", *([f"RUN {kind.install_command}"] if kind.install_command else [])]
    return "\n".join(lines) + "\n"


def check_provider_options(options: RunOptions) -> None:
    """Raise UsageError for options that conflict."""
    if options.provider == LOCAL_HOST:
        if options.build_arguments or options.start_arguments:
            flag = "--build-arg" if options.build_arguments else "--start-arg"
            raise UsageError(
                f"{flag} requires hosts that are created", "use it with --provider, for example --provider docker"
            )
        return
    if not is_agent_name(options.provider):
        raise UsageError(f"invalid name of a provider: {plain(options.provider, 80)!r}", "use docker or modal")
    if options.hosts:
        raise UsageError("--host conflicts with --provider", "use existing hosts or new ones")
    if options.transfer != "mirror":
        raise UsageError("--transfer worktree conflicts with --provider", "leave it out, because hosts get copies")


async def check_provider(mngr: MngrAdapter, provider: str, host_dir: Path, project: Path | None) -> NewHosts:
    """Return the facts of a provider; raise an error if mngr cannot create hosts now."""
    settings = provider_settings(host_dir, project, provider)
    backend = str(settings.get("backend") or provider)
    if backend == "ssh":
        raise UsageError(
            f"the provider {provider} creates no hosts",
            "use its hosts with --host",
        )
    plugins = sorted(plugin.name for plugin in await mngr.plugins() if plugin.is_enabled)
    if backend not in plugins:
        raise UsageError(
            f"unknown provider: {provider}",
            f"install its plugin with mngr, for example imbue-mngr-{backend}; list plugins with `mngr plugin list`",
        )
    problems = (await mngr.list_agents(provider)).errors
    if problems:
        hint = plain(problems[0].help_text or "", 300)
        raise AdapterError(plain(problems[0].message, 400).rstrip("."), hint)
    folder = str(settings.get("host_dir") or _HOST_DIRS.get(backend, ""))
    if not posixpath.isabs(folder):
        raise UsageError(
            f"no folder for the hosts of {provider} in the settings of mngr",
            f"run `mngr config set --scope user providers.{provider}.host_dir /mngr`",
        )
    return NewHosts(folder, backend, bool(settings.get("default_image")))
