"""Checks that an agent's program works and is logged in, in the very environment that the agents get."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from swarm_tui.adapters.packages import how_to_get
from swarm_tui.adapters.process import run_process
from swarm_tui.agents.kinds import AgentKind, Login
from swarm_tui.errors import AdapterError, ProgramMissing, UsageError
from swarm_tui.model.text import plain

CHECK_TIMEOUT: Final = 60.0
_NUMBERS: Final = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


async def check_program(kind: AgentKind, environment: Mapping[str, str]) -> str:
    """Return the version of a kind's program; raise ProgramMissing or UsageError when it cannot be used."""
    try:
        finished = await run_process([kind.program, "--version"], environment=environment, timeout=CHECK_TIMEOUT)
    except ProgramMissing as error:
        way_out = f"{how_to_get(kind.program)}; or try it without: `--agent offline` only runs the tests"
        raise ProgramMissing(error.message, way_out) from error
    except AdapterError as error:
        raise UsageError(f"{kind.program} does not work: {error.message}", how_to_get(kind.program)) from error
    said = (finished.text or finished.error_text).strip()
    if finished.code != 0:
        last_line = plain(said.splitlines()[-1], 200) if said else f"it ends with code {finished.code}"
        raise UsageError(f"{kind.program} does not work: {last_line}", f"run `{kind.program}` to see what it wants")
    found = _NUMBERS.search(said)
    if found and kind.needed_version > tuple(int(number or 0) for number in found.groups()):
        needed = ".".join(map(str, kind.needed_version))
        raise UsageError(f"{kind.program} {found[0]} is too old: {needed} or newer is needed", how_to_get(kind.program))
    return plain(said.splitlines()[0], 100) if said else "no version"


def check_home(kind: AgentKind, environment: Mapping[str, str]) -> None:
    """Raise UsageError when the person's home keeps a kind's agents from beginning."""
    if problem := kind.home_problem(environment):
        raise UsageError(problem, "make it writable, or set HOME to a folder that is")


async def check_login(kind: AgentKind, environment: Mapping[str, str]) -> Login:
    """Return whether a kind's program is logged in; raise UsageError when it says that it is not."""
    if not kind.login_command:
        return Login(None)
    try:
        finished = await run_process(kind.login_command, environment=environment, timeout=CHECK_TIMEOUT)
    except AdapterError:
        return Login(None)
    login = kind.read_login(finished.code, finished.text, environment)
    if login.is_logged_in is False:
        raise UsageError(f"{kind.title or kind.program} is not logged in here", kind.login_hint)
    return login
