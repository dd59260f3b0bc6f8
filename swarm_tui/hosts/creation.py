"""Finds out before a sweep whether mngr can make hosts by a provider, so that nothing half made stays if it cannot."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Final

from swarm_tui.adapters.mngr import MngrAdapter
from swarm_tui.adapters.mngr_messages import is_agent_name
from swarm_tui.adapters.mngr_settings import provider_settings
from swarm_tui.errors import AdapterError, UsageError
from swarm_tui.model.hosts import LOCAL_HOST
from swarm_tui.model.options import RunOptions
from swarm_tui.model.text import plain

_HOST_DIRS: Final = {"docker": "/mngr", "modal": "/mngr"}
"""mngr's own folder on hosts of providers whose settings name none."""


def check_provider_options(options: RunOptions) -> None:
    """Raise UsageError for options that cannot go together."""
    if options.provider == LOCAL_HOST:
        if options.build_arguments or options.start_arguments:
            flag = "--build-arg" if options.build_arguments else "--start-arg"
            raise UsageError(
                f"{flag} is for hosts that are made", "name who makes them: --provider docker, for example"
            )
        return
    if not is_agent_name(options.provider):
        raise UsageError(f"{plain(options.provider, 80)!r} is no name of a provider", "docker and modal are")
    if options.hosts:
        raise UsageError("--host and --provider exclude each other", "either hosts that are there, or new ones")
    if options.transfer != "mirror":
        raise UsageError("--transfer worktree needs the repository itself", "leave it out: hosts get copies")


async def check_provider(mngr: MngrAdapter, provider: str, host_dir: Path, project: Path | None) -> str:
    """Return mngr's folder on the hosts of a provider; raise an error when mngr cannot make hosts by it now."""
    settings = provider_settings(host_dir, project, provider) or {}
    backend = str(settings.get("backend") or provider)
    if backend == "ssh":
        raise UsageError(
            f"the provider {provider} makes no hosts: its machines are there already", "name them by --host"
        )
    plugins = sorted(plugin.name for plugin in await mngr.plugins() if plugin.is_enabled)
    if backend not in plugins:
        raise UsageError(
            f"mngr has no provider {provider!r}",
            f"install its plugin beside mngr, such as imbue-mngr-{backend}; `mngr plugin list` shows what there is",
        )
    problems = (await mngr.list_agents(provider)).errors
    if problems:
        hint = plain(problems[0].help_text or "", 300)
        raise AdapterError(plain(problems[0].message, 400).rstrip("."), hint)
    folder = str(settings.get("host_dir") or _HOST_DIRS.get(backend, ""))
    if not posixpath.isabs(folder):
        raise UsageError(
            f"mngr's settings name no folder for the hosts of {provider}",
            f"`mngr config set --scope user providers.{provider}.host_dir /mngr`",
        )
    return folder
