"""Check before a sweep that mngr can create hosts with a provider."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Final

from swarm_tui.adapters.mngr import MngrAdapter
from swarm_tui.adapters.mngr_messages import is_agent_name
from swarm_tui.adapters.mngr_settings import provider_settings
from swarm_tui.errors import AdapterError, UsageError
from swarm_tui.model.options import RunOptions
from swarm_tui.model.spec import LOCAL_HOST
from swarm_tui.model.text import plain

_HOST_DIRS: Final = {"docker": "/mngr", "modal": "/mngr"}
"""mngr's folder on hosts, by provider, if the settings have none."""


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


async def check_provider(mngr: MngrAdapter, provider: str, host_dir: Path, project: Path | None) -> str:
    """Return mngr's folder on the hosts of a provider; raise an error if mngr cannot create hosts now."""
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
    return folder
