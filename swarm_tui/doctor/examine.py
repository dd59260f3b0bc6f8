"""Runs all checks of the doctor, and installs what swarm-tui may install by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import chain

from swarm_tui.adapters.provision import find_mngr, install_mngr
from swarm_tui.agents.kinds import DEFAULT_AGENT_TYPE, kind_of
from swarm_tui.doctor.checks import CHECKS, Check, Machine, Requirements
from swarm_tui.errors import ProgramMissing, UsageError


async def run_checks(requirements: Requirements, machine: Machine) -> list[Check]:
    """Return all findings, in the order of the checks."""
    return list(chain.from_iterable(await asyncio.gather(*(check(requirements, machine) for check in CHECKS))))


async def install_missing(requirements: Requirements, machine: Machine, progress: Callable[[str], None]) -> None:
    """Install mngr and the required plugins into the private environment where they are missing."""
    plugin = kind_of(DEFAULT_AGENT_TYPE).plugin
    wanted = (plugin, "modal") if requirements.provider == "modal" else (plugin,)
    try:
        found = await find_mngr(requirements.mngr, machine.environment)
    except ProgramMissing as error:
        if requirements.mngr or machine.environment.get("SWARM_MNGR"):
            raise UsageError(error.message, "name another one, or none: then swarm-tui puts one in place") from error
        await install_mngr(progress, plugins=wanted, environment=machine.environment)
        return
    if found.origin != "private":
        return
    missing = {check.name for check in await run_checks(requirements, machine) if not check.ok}
    if any(f"mngr plugin {plugin}" in missing for plugin in wanted):
        await install_mngr(progress, plugins=wanted, environment=machine.environment)
