"""The checks of the doctor: each finds one thing out and says, when it is not well, what to do about it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from swarm_tui.adapters.environment import scrubbed_environment
from swarm_tui.adapters.interpreters import find_interpreter
from swarm_tui.adapters.mngr import Mngr, current_settings, mngr_environment
from swarm_tui.adapters.packages import how_to_get
from swarm_tui.adapters.process import run_process
from swarm_tui.adapters.provision import NEEDED_PYTHON, PLUGIN_PACKAGES, MngrFound, find_mngr
from swarm_tui.adapters.tmux import Tmux
from swarm_tui.agents.kinds import DEFAULT_AGENT_TYPE, AgentKind, kind_of
from swarm_tui.errors import AdapterError, ProgramMissing
from swarm_tui.model.text import plain
from swarm_tui.places.local_agents import list_processes

NEEDED_GIT: Final = (2, 38)
NEEDED_TMUX: Final = (3, 2)
NEEDED_SCREEN: Final = (80, 24)

_NUMBERS: Final = re.compile(r"(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. With `ok` a `fix` is advice: swarm-tui works as it is."""

    name: str
    ok: bool
    found: str
    needed: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the machine is to be fit for."""

    mngr: str | None = None
    """A mngr named by the user."""
    agent: str | None = None
    provider: str = "local"

    @property
    def kind(self) -> AgentKind | None:
        return kind_of(self.agent) if self.agent is not None else None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the checks see of the place they run in."""

    environment: Mapping[str, str]
    screen: tuple[int, int] | None
    """Columns and lines of the terminal; None without one."""


async def check_python(_: Wishes, __: Surroundings) -> list[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    return [Check("python", sys.version_info >= (3, 11), f"{version} ({sys.executable})", "3.11 or newer")]


async def check_git(_: Wishes, surroundings: Surroundings) -> list[Check]:
    check = await _version_check("git", ["git", "--version"], NEEDED_GIT, surroundings)
    return [check, await _check_identity(surroundings)] if check.ok else [check]


async def check_tmux(_: Wishes, surroundings: Surroundings) -> list[Check]:
    return [await _version_check("tmux", ["tmux", "-V"], NEEDED_TMUX, surroundings)]


async def check_ps(_: Wishes, surroundings: Surroundings) -> list[Check]:
    needed = "a ps that lists all processes (without it mngr takes live agents for done)"
    try:
        is_fit = await list_processes(_environment(surroundings)) is not None
    except ProgramMissing as error:
        return [Check("ps", False, "not installed", needed, error.hint)]
    found = "lists all processes" if is_fit else "does not know the options that are needed (busybox?)"
    return [Check("ps", is_fit, found, needed, "" if is_fit else how_to_get("ps"))]


async def check_rsync(wishes: Wishes, surroundings: Surroundings) -> list[Check]:
    is_remote = wishes.provider != "local"
    needed = f"to copy files from and to {wishes.provider}" if is_remote else "only with remote providers"
    try:
        finished = await run_process(["rsync", "--version"], environment=_environment(surroundings))
    except AdapterError as error:
        return [Check("rsync", not is_remote, "not installed", needed, error.hint if is_remote else "")]
    return [Check("rsync", True, plain(finished.text.split("\n")[0].replace("  ", " "), 60), needed)]


async def check_mngr(wishes: Wishes, surroundings: Surroundings) -> list[Check]:
    try:
        found = await find_mngr(wishes.mngr, surroundings.environment)
    except ProgramMissing as error:
        fix = await _way_to_mngr(surroundings)
        return [Check("mngr", False, error.message, "0.3", fix)]
    check = Check("mngr", True, f"{found.version} at {found.path} ({found.origin})", "0.3")
    settings = current_settings(found.path, surroundings.environment)
    adapter = Mngr(found.path, mngr_environment(settings, _tokens(surroundings)))
    try:
        plugins = {plugin.name for plugin in await adapter.plugins() if plugin.is_enabled}
        problems = (await adapter.list_agents(provider=None)).errors if "modal" in plugins else ()
    except AdapterError as error:
        fix = error.hint or f"run `{found.path} list` to see more"
        return [replace(check, ok=False, found=plain(error.message, 300), fix=fix)]
    is_modal_dirty = any(problem.provider_name == "modal" for problem in problems)
    return [
        check,
        _plugin_check(kind_of(DEFAULT_AGENT_TYPE).plugin, wishes, plugins, found),
        _modal_check(wishes, plugins, found, is_dirty=is_modal_dirty),
        *_unusual_checks(wishes, plugins, found),
    ]


async def check_agent_program(wishes: Wishes, surroundings: Surroundings) -> list[Check]:
    """Look for the agent's program itself: mngr says "installed successfully" of a download that failed."""
    kind = wishes.kind
    if kind is None or not kind.program:
        return []
    program, needed = kind.program, f"for {kind.title} agents"
    try:
        finished = await run_process([program, "--version"], environment=_environment(surroundings), timeout=30)
    except AdapterError as error:
        return [Check(program, False, plain(error.message, 200), needed, error.hint)]
    is_fit = finished.code == 0
    found = plain(finished.text or finished.error_text, 100)
    return [Check(program, is_fit, found, needed, "" if is_fit else f"run `{program}` to see what it wants")]


async def check_keys(_: Wishes, surroundings: Surroundings) -> list[Check]:
    """Look whether mngr's ctrl+q and ctrl+t are armed on the tmux server that agents run on."""
    needed = "ctrl+q and ctrl+t that harm no agent"
    settings = current_settings("mngr", surroundings.environment)
    tmux = Tmux(mngr_environment(settings))
    try:
        armed = await tmux.deadly_keys()
        prefix = await tmux.prefix_key() if armed else ""
    except AdapterError:
        armed, prefix = (), ""
    if not armed:
        return [Check("keys", True, "not bound", needed)]
    is_inside = bool(surroundings.environment.get("TMUX"))
    where = "in every session of this tmux server" + (", and you are in tmux now" if is_inside else "")
    keys = " and ".join(f"ctrl+{key.removeprefix('C-')}" for key in armed)
    advice = f"swarm-tui shields the agents of its sweeps; where you attach by hand, {prefix} d brings you back"
    return [Check("keys", True, f"mngr has {keys} end or stop an agent at once, {where}", needed, advice)]


async def check_terminal(_: Wishes, surroundings: Surroundings) -> list[Check]:
    needed = f"{NEEDED_SCREEN[0]}x{NEEDED_SCREEN[1]}, UTF-8, colours"
    given = surroundings.environment
    if surroundings.screen is None:
        return [Check("terminal", True, "none here", needed)]
    columns, lines = surroundings.screen
    locale = given.get("LC_ALL") or given.get("LC_CTYPE") or given.get("LANG") or ""
    is_unicode = "utf" in locale.lower()
    colours = (
        "24 bit"
        if given.get("COLORTERM") in ("truecolor", "24bit")
        else "256"
        if "256" in given.get("TERM", "")
        else "16"
    )
    advice = []
    if columns < NEEDED_SCREEN[0] or lines < NEEDED_SCREEN[1]:
        advice.append("a larger window shows more")
    if not is_unicode:
        advice.append("without a UTF-8 locale use `swarm-tui --ascii`")
    is_usable = given.get("TERM", "dumb") != "dumb"
    fix = "; ".join(advice) if is_usable else "set TERM to what your terminal is, such as xterm-256color"
    found = f"{columns}x{lines}, {given.get('TERM') or 'no TERM'}, {colours} colours, {locale or 'no locale'}"
    return [Check("terminal", is_usable, plain(found, 200), needed, fix)]


CHECKS: Final[tuple[Callable[[Wishes, Surroundings], Awaitable[list[Check]]], ...]] = (
    check_python,
    check_git,
    check_tmux,
    check_ps,
    check_mngr,
    check_agent_program,
    check_rsync,
    check_keys,
    check_terminal,
)


async def _version_check(name: str, words: list[str], needed: tuple[int, int], surroundings: Surroundings) -> Check:
    shown = f"{needed[0]}.{needed[1]} or newer"
    try:
        finished = await run_process(words, environment=_environment(surroundings), timeout=20)
    except AdapterError as error:
        return Check(name, False, plain(error.message, 200), shown, error.hint)
    version = _NUMBERS.search(finished.text)
    found = plain(finished.text.removeprefix(f"{name} ").removeprefix("version "), 60)
    is_fit = version is not None and (int(version.group(1)), int(version.group(2))) >= needed
    return Check(name, is_fit, found or "no version", shown, "" if is_fit else f"upgrade it: {how_to_get(name)}")


async def _check_identity(surroundings: Surroundings) -> Check:
    """Look for the name that commits bear: without one, agents cannot commit their work."""
    finished = await run_process(["git", "var", "GIT_AUTHOR_IDENT"], environment=_environment(surroundings))
    has_name = finished.code == 0
    fix = "" if has_name else "git config --global user.name ... and user.email ... (the demo has its own)"
    found = plain(finished.text.rpartition(" <")[0], 80) if has_name else "none"
    return Check("git identity", True, found, "a name and an address for the commits of agents", fix)


async def _way_to_mngr(surroundings: Surroundings) -> str:
    try:
        interpreter = await find_interpreter(NEEDED_PYTHON, surroundings.environment, may_install=False)
    except ProgramMissing as error:
        return str(error)
    return f"`swarm-tui doctor --fix` puts it into an environment of its own, with Python {interpreter.shown_version}"


def _plugin_check(plugin: str, wishes: Wishes, plugins: set[str], mngr: MngrFound) -> Check:
    has_it = plugin in plugins
    is_wished = wishes.kind is not None and wishes.kind.plugin == plugin
    needed = f"for {plugin} agents" if is_wished else f"only for {plugin} agents"
    fix = _way_to_plugin(plugin, f"--agent {plugin}", mngr) if is_wished and not has_it else ""
    return Check(f"mngr plugin {plugin}", has_it or not is_wished, "there" if has_it else "not there", needed, fix)


def _modal_check(wishes: Wishes, plugins: set[str], mngr: MngrFound, *, is_dirty: bool) -> Check:
    is_wished = wishes.provider == "modal"
    name, needed = "mngr plugin modal", "to run agents on Modal" if is_wished else "only to run agents on Modal"
    if "modal" not in plugins:
        fix = _way_to_plugin("modal", "--provider modal", mngr) if is_wished else ""
        return Check(name, not is_wished, "not there", needed, fix)
    if not is_dirty:
        return Check(name, True, "there, with a token", needed)
    fix = (
        "run `modal token new`, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET"
        if is_wished
        else f"`{mngr.path} config set --scope user providers.modal.is_enabled false`: "
        "until then every `mngr list` ends with an error"
    )
    return Check(name, not is_wished, "there, but Modal takes no token of yours", needed, fix)


def _unusual_checks(wishes: Wishes, plugins: set[str], mngr: MngrFound) -> Iterator[Check]:
    """Look for a type of agent and a provider of which nothing is known but their names."""
    known = plugins | {plugin.replace("_", "-") for plugin in plugins}
    if wishes.agent is not None and kind_of(wishes.agent).plugin not in ("", *PLUGIN_PACKAGES):
        # A person's settings may define types of agents: for want of a plugin none is a fault.
        found = "there" if wishes.agent in known else "no plugin; maybe a type of mngr's settings"
        yield Check(f"agent {plain(wishes.agent, 40)}", True, found, "the type of agent that is to run")
    if wishes.provider not in ("local", "modal"):
        has_it = wishes.provider in known
        fix = "" if has_it else f"`{mngr.path} plugin list` shows what there is"
        name = f"provider {plain(wishes.provider, 40)}"
        yield Check(name, has_it, "there" if has_it else "mngr has no such plugin", "where agents are to run", fix)


def _way_to_plugin(plugin: str, wish: str, mngr: MngrFound) -> str:
    if mngr.origin == "private":
        return f"`swarm-tui doctor --fix {wish}` adds it"
    return f"install '{PLUGIN_PACKAGES[plugin]}' beside {mngr.path} (swarm-tui does not touch an environment of yours)"


def _environment(surroundings: Surroundings) -> dict[str, str]:
    """Return the scrubbed environment with the PATH that is examined."""
    names = {name: surroundings.environment[name] for name in ("PATH", "HOME") if name in surroundings.environment}
    return scrubbed_environment(names)


def _tokens(surroundings: Surroundings) -> dict[str, str]:
    return {name: value for name, value in surroundings.environment.items() if name.startswith("MODAL_TOKEN")}


def current_surroundings() -> Surroundings:
    """Return the place that swarm-tui runs in now."""
    try:
        size = os.get_terminal_size(sys.__stderr__.fileno() if sys.__stderr__ is not None else 2)
    except OSError:
        return Surroundings(dict(os.environ), None)
    return Surroundings(dict(os.environ), (size.columns, size.lines))
