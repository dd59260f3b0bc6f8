"""Checks of this machine."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git.command import OLDEST_VERSION
from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.mngr_messages import ListProblem
from swarm_tui.adapters.mngr_settings import current_settings, find_host, mngr_environment, read_hosts
from swarm_tui.adapters.processes.confinement import BWRAP, check_confinement
from swarm_tui.adapters.processes.environment import scrubbed_environment
from swarm_tui.adapters.processes.group import how_to_get
from swarm_tui.adapters.processes.run import run_process
from swarm_tui.adapters.provision import NEEDED_PYTHON, PLUGIN_PACKAGES, FoundMngr, find_mngr, install_mngr
from swarm_tui.adapters.python_env import find_interpreter
from swarm_tui.adapters.tmux import Tmux
from swarm_tui.agents.login import check_home, check_login, check_program, version_advice
from swarm_tui.agents.types import DEFAULT_AGENT_TYPE, AgentType, agent_type_of
from swarm_tui.doctor.host_checks import Check, check_host
from swarm_tui.errors import AdapterError, ProgramMissing, SwarmError, UsageError
from swarm_tui.hosts.local import list_processes
from swarm_tui.model.run_limits import Confinement
from swarm_tui.model.text import plain

NEEDED_TMUX: Final = (3, 2)
NEEDED_SCREEN: Final = (80, 24)

_NUMBERS: Final = re.compile(r"(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Requirements:
    """The planned use of this machine: the mngr, agent type, provider and hosts to check."""

    mngr: str | None = None
    """The path of a mngr, if the user names one."""
    agent: str | None = None
    provider: str = "local"
    hosts: tuple[str, ...] = ()
    """The names of hosts in the settings of mngr."""

    @property
    def kind(self) -> AgentType | None:
        return agent_type_of(self.agent) if self.agent is not None else None


@dataclass(frozen=True, slots=True)
class Machine:
    """The environment and the terminal to check."""

    environment: Mapping[str, str]
    screen: tuple[int, int] | None
    """Columns and lines; None without a terminal."""


async def check_python(_: Requirements, __: Machine) -> list[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    return [Check("python", sys.version_info >= (3, 11), f"{version} ({sys.executable})", "3.11 or newer")]


async def check_git(_: Requirements, machine: Machine) -> list[Check]:
    check = await _version_check("git", ["git", "--version"], OLDEST_VERSION, machine)
    return [check, await _check_identity(machine)] if check.ok else [check]


async def check_tmux(_: Requirements, machine: Machine) -> list[Check]:
    return [await _version_check("tmux", ["tmux", "-V"], NEEDED_TMUX, machine)]


async def check_ps(_: Requirements, machine: Machine) -> list[Check]:
    needed = "a ps that lists all processes (otherwise mngr reports running agents as done)"
    try:
        is_fit = await list_processes(_environment(machine)) is not None
    except ProgramMissing as error:
        return [Check("ps", False, "not installed", needed, error.hint)]
    found = "lists all processes" if is_fit else "missing options (busybox?)"
    return [Check("ps", is_fit, found, needed, "" if is_fit else how_to_get("ps"))]


async def check_rsync(requirements: Requirements, machine: Machine) -> list[Check]:
    is_remote = requirements.provider != "local" or bool(requirements.hosts)
    elsewhere = ", ".join(requirements.hosts) or requirements.provider
    needed = f"to copy files from and to {plain(elsewhere, 60)}" if is_remote else "only for remote providers"
    try:
        finished = await run_process(["rsync", "--version"], environment=_environment(machine))
    except AdapterError as error:
        return [Check("rsync", not is_remote, "not installed", needed, error.hint if is_remote else "")]
    return [Check("rsync", True, plain(finished.text.split("\n")[0].replace("  ", " "), 60), needed)]


async def check_bwrap(_: Requirements, machine: Machine) -> list[Check]:
    needed = "only for --confine"
    if shutil.which(BWRAP, path=machine.environment.get("PATH")) is None:
        return [Check(BWRAP, True, "not installed", needed, how_to_get(BWRAP))]
    try:
        await check_confinement(Confinement())
    except SwarmError as error:
        return [Check(BWRAP, True, plain(error.message, 200), needed, error.hint)]
    return [Check(BWRAP, True, "confines test runs", needed)]


async def check_mngr(requirements: Requirements, machine: Machine) -> list[Check]:
    try:
        found = await find_mngr(requirements.mngr, machine.environment)
    except ProgramMissing as error:
        fix = await _how_to_get_mngr(machine)
        return [Check("mngr", False, error.message, "0.3", fix)]
    check = Check("mngr", True, f"{found.version} at {found.path} ({found.origin})", "0.3", found.warning)
    settings = current_settings(found.path, machine.environment)
    adapter = Mngr(found.path, mngr_environment(settings, _tokens(machine)))
    try:
        plugins = {plugin.name for plugin in await adapter.plugins() if plugin.is_enabled}
        is_asked = "modal" in plugins or requirements.provider in plugins
        problems = (await adapter.list_agents(provider=None)).errors if is_asked else ()
    except AdapterError as error:
        fix = error.hint or f"for details, run `{found.path} list`"
        return [replace(check, ok=False, found=plain(error.message, 300), fix=fix)]
    is_modal_dirty = any(problem.provider_name == "modal" for problem in problems)
    problem = next((problem for problem in problems if problem.provider_name == requirements.provider), None)
    return [
        check,
        *(_plugin_check(plugin, requirements, plugins, found) for plugin in _agent_plugins(requirements)),
        _modal_check(requirements, plugins, found, is_dirty=is_modal_dirty),
        *_unusual_checks(requirements, plugins, found, problem),
    ]


async def check_hosts(requirements: Requirements, machine: Machine) -> list[Check]:
    """Check the named hosts concurrently."""
    if not requirements.hosts:
        return []
    settings = current_settings("mngr", machine.environment)
    known = read_hosts(Path(settings.host_dir or ""), Path.cwd())
    hosts = [find_host(known, name) for name in dict.fromkeys(requirements.hosts)]
    rows = await asyncio.gather(*(check_host(host, requirements.kind, machine.environment) for host in hosts))
    return list(chain.from_iterable(rows))


async def check_agent_program(requirements: Requirements, machine: Machine) -> list[Check]:
    """Check the agent's program itself, because mngr reports a failed download as "installed successfully"."""
    kind = requirements.kind
    if kind is None or not kind.program:
        return []
    program, needed = kind.program, f"for {kind.title} agents"
    given = machine.environment
    settings = current_settings("mngr", given)
    passed = {name: given[name] for name in (*kind.needed_variables(given), "PATH", "HOME") if name in given}
    environment = mngr_environment(settings, passed)
    try:
        version = await check_program(kind, environment)
        check_home(kind, environment)
        login = await check_login(kind, environment)
    except SwarmError as error:
        return [Check(program, False, plain(error.message, 200), needed, error.hint)]
    state = {True: ", logged in", False: "", None: ", login unknown"}[login.is_logged_in]
    found = f"{version}{state if kind.login_command else ''}"
    return [Check(program, True, found, needed, version_advice(kind, version))]


async def check_keys(_: Requirements, machine: Machine) -> list[Check]:
    """Check whether mngr's ctrl+q and ctrl+t are bound on the tmux server that agents run on."""
    needed = "ctrl+q and ctrl+t not bound by mngr"
    settings = current_settings("mngr", machine.environment)
    tmux = Tmux(mngr_environment(settings))
    try:
        bound = await tmux.bound_destructive_keys()
        prefix = await tmux.prefix_key() if bound else ""
    except AdapterError:
        bound, prefix = (), ""
    if not bound:
        return [Check("keys", True, "not bound", needed)]
    is_inside = bool(machine.environment.get("TMUX"))
    where = "in every session of this tmux server" + (", and you are in tmux now" if is_inside else "")
    keys = " and ".join(f"ctrl+{key.removeprefix('C-')}" for key in bound)
    advice = f"swarm-tui disables these keys for the agents of its sweeps; elsewhere, detach with {prefix} d"
    return [Check("keys", True, f"{keys} destroy or stop an agent immediately, {where}", needed, advice)]


async def check_terminal(_: Requirements, machine: Machine) -> list[Check]:
    needed = f"{NEEDED_SCREEN[0]}x{NEEDED_SCREEN[1]}, UTF-8, colours"
    variables = machine.environment
    if machine.screen is None:
        return [Check("terminal", True, "not a terminal", needed)]
    columns, lines = machine.screen
    locale = variables.get("LC_ALL") or variables.get("LC_CTYPE") or variables.get("LANG") or ""
    is_unicode = "utf" in locale.lower()
    colours = (
        "24 bit"
        if variables.get("COLORTERM") in ("truecolor", "24bit")
        else "256"
        if "256" in variables.get("TERM", "")
        else "16"
    )
    advice = []
    if columns < NEEDED_SCREEN[0] or lines < NEEDED_SCREEN[1]:
        advice.append("use a larger window")
    if not is_unicode:
        advice.append("set a UTF-8 locale, or use `swarm-tui open --ascii`")
    is_usable = variables.get("TERM", "dumb") != "dumb"
    fix = "; ".join(advice) if is_usable else "set TERM to the type of your terminal, such as xterm-256color"
    found = f"{columns}x{lines}, {variables.get('TERM') or 'no TERM'}, {colours} colours, {locale or 'no locale'}"
    return [Check("terminal", is_usable, plain(found, 200), needed, fix)]


CHECKS: Final[tuple[Callable[[Requirements, Machine], Awaitable[list[Check]]], ...]] = (
    check_python,
    check_git,
    check_tmux,
    check_ps,
    check_mngr,
    check_agent_program,
    check_rsync,
    check_bwrap,
    check_keys,
    check_terminal,
    check_hosts,
)


async def _version_check(name: str, words: list[str], needed: tuple[int, int], machine: Machine) -> Check:
    shown = f"{needed[0]}.{needed[1]} or newer"
    try:
        finished = await run_process(words, environment=_environment(machine), timeout=20)
    except AdapterError as error:
        return Check(name, False, plain(error.message, 200), shown, error.hint)
    version = _NUMBERS.search(finished.text)
    found = plain(finished.text.removeprefix(f"{name} ").removeprefix("version "), 60)
    is_fit = version is not None and (int(version.group(1)), int(version.group(2))) >= needed
    return Check(name, is_fit, found or "no version", shown, "" if is_fit else f"upgrade it: {how_to_get(name)}")


async def _check_identity(machine: Machine) -> Check:
    """Check that git has a user name, which agents need to commit."""
    finished = await run_process(["git", "var", "GIT_AUTHOR_IDENT"], environment=_environment(machine))
    has_name = finished.code == 0
    fix = (
        ""
        if has_name
        else "git config --global user.name NAME; git config --global user.email ADDRESS (not needed for the demo)"
    )
    found = plain(finished.text.rpartition(" <")[0], 80) if has_name else "none"
    return Check("git identity", True, found, "name and email address for commits", fix)


async def _how_to_get_mngr(machine: Machine) -> str:
    try:
        interpreter = await find_interpreter(NEEDED_PYTHON, machine.environment, may_install=False)
    except ProgramMissing as error:
        return str(error)
    return f"to install it privately with Python {interpreter.shown_version}, run `swarm-tui doctor --fix`"


def _agent_plugins(requirements: Requirements) -> tuple[str, ...]:
    """Return the known mngr plugins for the default agent type and the required one."""
    required = requirements.kind.plugin if requirements.kind is not None else ""
    names = (agent_type_of(DEFAULT_AGENT_TYPE).plugin, *((required,) if required in PLUGIN_PACKAGES else ()))
    return tuple(dict.fromkeys(names))


def _plugin_check(plugin: str, requirements: Requirements, plugins: set[str], mngr: FoundMngr) -> Check:
    has_it = plugin in plugins
    is_required = requirements.kind is not None and requirements.kind.plugin == plugin
    needed = f"for {plugin} agents" if is_required else f"only for {plugin} agents"
    fix = _how_to_get_plugin(plugin, f"--agent {plugin}", mngr) if is_required and not has_it else ""
    return Check(
        f"mngr plugin {plugin}", has_it or not is_required, "installed" if has_it else "not installed", needed, fix
    )


def _modal_check(requirements: Requirements, plugins: set[str], mngr: FoundMngr, *, is_dirty: bool) -> Check:
    is_required = requirements.provider == "modal"
    name, needed = "mngr plugin modal", "to run agents on Modal" if is_required else "only to run agents on Modal"
    if "modal" not in plugins:
        fix = _how_to_get_plugin("modal", "--provider modal", mngr) if is_required else ""
        return Check(name, not is_required, "not installed", needed, fix)
    if not is_dirty:
        return Check(name, True, "installed, with a token", needed)
    fix = (
        "run `modal token new`, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET"
        if is_required
        else f"run `{mngr.path} config set --scope user providers.modal.is_enabled false`; "
        "otherwise each `mngr list` ends with an error"
    )
    return Check(name, not is_required, "installed, but without a valid Modal token", needed, fix)


def _unusual_checks(
    requirements: Requirements, plugins: set[str], mngr: FoundMngr, problem: ListProblem | None
) -> Iterator[Check]:
    """Yield the checks of an agent type or a provider without a specific check."""
    known = plugins | {plugin.replace("_", "-") for plugin in plugins}
    if requirements.agent is not None and agent_type_of(requirements.agent).plugin not in ("", *PLUGIN_PACKAGES):
        # The user's settings can define agent types, so a missing plugin is not an error.
        found = "installed" if requirements.agent in known else "not a plugin; possibly defined in the settings of mngr"
        yield Check(f"agent {plain(requirements.agent, 40)}", True, found, "the agent type to run")
    provider, needed = requirements.provider, "the provider to run agents on"
    name = f"provider {plain(provider, 40)}"
    if provider in ("local", "modal"):
        return
    if provider not in known and provider in PLUGIN_PACKAGES:
        fix = _how_to_get_plugin(provider, f"--provider {provider}", mngr)
        yield Check(f"mngr plugin {provider}", False, "not installed", needed, fix)
    elif provider not in known:
        yield Check(name, False, "mngr plugin not found", needed, f"to list the plugins, run `{mngr.path} plugin list`")
    elif problem is not None:
        yield Check(name, False, plain(problem.message, 300), needed, plain(problem.help_text or "", 300))
    else:
        yield Check(name, True, "installed", needed)


def _how_to_get_plugin(plugin: str, options: str, mngr: FoundMngr) -> str:
    if mngr.origin == "private":
        return f"to install it, run `swarm-tui doctor --fix {options}`"
    return f"install '{PLUGIN_PACKAGES[plugin]}' in the environment of {mngr.path} (swarm-tui does not change it)"


def _environment(machine: Machine) -> dict[str, str]:
    """Return the scrubbed environment with PATH and HOME of the machine."""
    names = {name: machine.environment[name] for name in ("PATH", "HOME") if name in machine.environment}
    return scrubbed_environment(names)


def _tokens(machine: Machine) -> dict[str, str]:
    return {name: value for name, value in machine.environment.items() if name.startswith("MODAL_TOKEN")}


def current_machine() -> Machine:
    try:
        size = os.get_terminal_size(sys.__stderr__.fileno() if sys.__stderr__ is not None else 2)
    except OSError:
        return Machine(dict(os.environ), None)
    return Machine(dict(os.environ), (size.columns, size.lines))


async def run_checks(requirements: Requirements, machine: Machine) -> list[Check]:
    return list(chain.from_iterable(await asyncio.gather(*(check(requirements, machine) for check in CHECKS))))


async def install_missing(requirements: Requirements, machine: Machine, progress: Callable[[str], None]) -> None:
    """Install mngr and the required plugins into the private environment if they are missing."""
    agents, provider = _agent_plugins(requirements), requirements.provider
    needed = (*agents, provider) if provider in PLUGIN_PACKAGES else agents
    try:
        found = await find_mngr(requirements.mngr, machine.environment)
    except ProgramMissing as error:
        if requirements.mngr or machine.environment.get("SWARM_MNGR"):
            raise UsageError(
                error.message, "name another mngr, or leave it out to let swarm-tui install one"
            ) from error
        await install_mngr(progress, plugins=needed, environment=machine.environment)
        return
    if found.origin != "private":
        return
    missing = {check.name for check in await run_checks(requirements, machine) if not check.ok}
    if any(f"mngr plugin {plugin}" in missing for plugin in needed):
        await install_mngr(progress, plugins=needed, environment=machine.environment)
