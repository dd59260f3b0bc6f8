"""Runs all checks of the doctor, and puts right what swarm-tui may put right by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import chain

from swarm_tui.adapters.provision import find_mngr, install_mngr
from swarm_tui.agents.kinds import DEFAULT_AGENT_TYPE, kind_of
from swarm_tui.doctor.checks import CHECKS, Check, Surroundings, Wishes
from swarm_tui.errors import ProgramMissing, UsageError


async def examine(wishes: Wishes, surroundings: Surroundings) -> list[Check]:
    """Return all findings, in the order of the checks."""
    return list(chain.from_iterable(await asyncio.gather(*(check(wishes, surroundings) for check in CHECKS))))


async def put_right(wishes: Wishes, surroundings: Surroundings, progress: Callable[[str], None]) -> None:
    """Put mngr, and the plugins that are wished for, into the private environment where they are missing."""
    plugin = kind_of(DEFAULT_AGENT_TYPE).plugin
    wanted = (plugin, "modal") if wishes.provider == "modal" else (plugin,)
    try:
        found = await find_mngr(wishes.mngr, surroundings.environment)
    except ProgramMissing as error:
        if wishes.mngr or surroundings.environment.get("SWARM_MNGR"):
            raise UsageError(error.message, "name another one, or none: then swarm-tui puts one in place") from error
        await install_mngr(progress, plugins=wanted, environment=surroundings.environment)
        return
    if found.origin != "private":
        return
    missing = {check.name for check in await examine(wishes, surroundings) if not check.ok}
    if any(f"mngr plugin {plugin}" in missing for plugin in wanted):
        await install_mngr(progress, plugins=wanted, environment=surroundings.environment)
