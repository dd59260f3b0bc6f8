"""Checks that an agent's program works and is logged in, in the same environment as the agents."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from swarm_tui.adapters.processes.group import how_to_get
from swarm_tui.adapters.processes.run import run_process
from swarm_tui.agents.types import AgentType, Login
from swarm_tui.errors import AdapterError, ProgramMissing, UsageError
from swarm_tui.model.text import plain

CHECK_TIMEOUT: Final = 60.0
_NUMBERS: Final = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


async def check_program(agent: AgentType, environment: Mapping[str, str]) -> str:
    """Return the version of an agent type's program. Raise ProgramMissing or UsageError if the program is unusable."""
    try:
        finished = await run_process([agent.program, "--version"], environment=environment, timeout=CHECK_TIMEOUT)
    except ProgramMissing as error:
        way_out = f"{how_to_get(agent.program)}, or use `--agent offline`, which only runs the tests"
        raise ProgramMissing(error.message, way_out) from error
    except AdapterError as error:
        raise UsageError(f"{agent.program} does not work: {error.message}", how_to_get(agent.program)) from error
    output = (finished.text or finished.error_text).strip()
    if finished.code != 0:
        last_line = plain(output.splitlines()[-1], 200) if output else f"exit code {finished.code}"
        raise UsageError(f"{agent.program} does not work: {last_line}", f"run `{agent.program}` and fix the problem")
    found = _NUMBERS.search(output)
    if found and agent.needed_version > _numbers_of(found):
        needed = ".".join(map(str, agent.needed_version))
        raise UsageError(
            f"{agent.program} {found[0]} is too old: {needed} or newer is needed", how_to_get(agent.program)
        )
    return plain(output.splitlines()[0], 100) if output else "no version"


def version_advice(agent: AgentType, version: str) -> str:
    """Return advice about a version that is newer than the tested one, or ""."""
    found = _NUMBERS.search(version)
    if not agent.tested_version or found is None or _numbers_of(found) <= agent.tested_version:
        return ""
    tested = ".".join(map(str, agent.tested_version))
    return f"newer than {tested}, whose dialogs mngr recognizes; if agents stop at a dialog, answer it with `a`"


def _numbers_of(found: re.Match[str]) -> tuple[int, ...]:
    return tuple(int(number or 0) for number in found.groups())


def check_home(agent: AgentType, environment: Mapping[str, str]) -> None:
    """Raise UsageError if the user's home folder prevents agents of this type from starting."""
    if problem := agent.home_problem(environment):
        raise UsageError(problem, "make it writable, or set HOME to a writable folder")


async def check_arguments(agent: AgentType, environment: Mapping[str, str], arguments: Sequence[str]) -> None:
    """Raise UsageError if the program rejects these arguments. mngr would report only that it does not start."""
    command = agent.argument_check(arguments)
    if not command:
        return
    try:
        finished = await run_process(command, environment=environment, timeout=CHECK_TIMEOUT)
    except AdapterError:
        return
    if finished.code != 0 and (reason := agent.read_refusal(finished.text)):
        raise UsageError(f"{agent.title} rejects its arguments: {reason}", "correct --agent-argument")


async def check_login(agent: AgentType, environment: Mapping[str, str], arguments: Sequence[str] = ()) -> Login:
    """Return whether an agent type's program is logged in. Raise UsageError if it reports that it is not.

    `arguments` are those of the user.
    """
    if not agent.login_command:
        return Login(None)
    try:
        finished = await run_process(agent.login_command, environment=environment, timeout=CHECK_TIMEOUT)
    except AdapterError:
        return Login(None)
    login = agent.read_login(finished.code, finished.text, environment, arguments)
    if login.is_logged_in is False:
        raise UsageError(f"{agent.title or agent.program} is not logged in on this machine", agent.login_hint)
    return login
