"""The checks of a host that agents are to run on: one row each, with what to do about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.mngr_hosts import MngrHost
from swarm_tui.adapters.ssh import FOREIGN_SHELLS, OTHER_SHELL, SILENT_SHELL
from swarm_tui.agents.kinds import AgentKind
from swarm_tui.doctor.check import Check
from swarm_tui.doctor.host_probe import HostAnswers, probe_host
from swarm_tui.errors import AdapterError
from swarm_tui.model.formatting import counted

NEEDED_GIT: Final = (2, 25)
NEEDED_TMUX: Final = (3, 2)
NEEDED_PYTHON: Final = (3, 8)
NEEDED_FREE_KB: Final = 1_000_000
FREE_KB_AN_AGENT: Final = 200_000
NEEDED_STARTS: Final = 10
CLOCK_TOLERANCE: Final = 5.0
CLOCK_LIMIT: Final = 300.0

_NEEDED_HOST: Final = "a machine that can be reached by ssh"
_VERSION: Final = re.compile(r"(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class HostVisit:
    """A host, and what it answered."""

    host: MngrHost
    answers: HostAnswers
    kind: AgentKind | None
    environment: Mapping[str, str]
    """The variables of the person, of which an agent may get those that it logs in with."""

    def check(self, name: str, ok: bool, found: str, needed: str, fix: str = "") -> Check:
        return Check(f"{self.host.shown} {name}", ok, found, needed, fix)


async def check_host(host: MngrHost, kind: AgentKind | None, environment: Mapping[str, str]) -> list[Check]:
    """Visit a host and judge it; a host that cannot be reached gives one row."""
    program = kind.program if kind is not None else ""
    login = kind.login_command if kind is not None else ()
    try:
        answers = await probe_host(host.target, host.host_dir, program, login)
    except AdapterError as error:
        return [Check(host.shown, False, error.message, _NEEDED_HOST, error.hint)]
    return judge_host(host, answers, kind, environment)


def judge_host(
    host: MngrHost, answers: HostAnswers, kind: AgentKind | None, environment: Mapping[str, str]
) -> list[Check]:
    """Return the rows about a host that has answered."""
    visit = HostVisit(host, answers, kind, environment)
    cores = f", {counted(int(answers['cores']), 'core')}" if answers["cores"].isdecimal() else ""
    found = f"{host.target.shown} answers in {answers.seconds:.1f} s{cores}"
    reached = Check(host.shown, True, found, _NEEDED_HOST)
    return [reached, *(check for each in _ROWS for check in each(visit))]


def _check_shell(visit: HostVisit) -> Iterator[Check]:
    if visit.answers.greeting:
        found = f"prints {visit.answers.greeting!r} before every command"
        needed = "one that is silent: git takes what it prints for an answer"
        yield visit.check("shell", False, found, needed, SILENT_SHELL)
    shell = visit.answers["shell"]
    if shell in FOREIGN_SHELLS:
        yield visit.check("shell", False, shell, "one like sh, in which mngr says what is to be done", OTHER_SHELL)


def _check_programs(visit: HostVisit) -> Iterator[Check]:
    yield _version_check(visit, "git", visit.answers["git_version"], NEEDED_GIT)
    yield _version_check(visit, "tmux", visit.answers["tmux_version"], NEEDED_TMUX)
    yield _version_check(visit, "python3", visit.answers["python_version"], NEEDED_PYTHON)
    for program, package, why in (
        ("ps", "procps", "without it mngr takes live agents for done"),
        ("bash", "bash", "mngr starts agents with it"),
        ("jq", "jq", "mngr's hooks of Claude need it"),
        ("rsync", "rsync", "mngr copies files with it"),
    ):
        has_it = bool(visit.answers[program])
        yield visit.check(program, has_it, "there" if has_it else "not there", why, "" if has_it else _get(package))


def _version_check(visit: HostVisit, program: str, said: str, needed: tuple[int, int]) -> Check:
    version = _VERSION.search(said)
    shown = ".".join(map(str, needed))
    if version is None:
        return visit.check(program, False, "not there", f"{shown} or newer", _get(program))
    is_fit = (int(version[1]), int(version[2])) >= needed
    found = said[version.start() :].split(" ")[0]
    return visit.check(program, is_fit, found, f"{shown} or newer", "" if is_fit else f"upgrade it: {_get(program)}")


def _check_agent(visit: HostVisit) -> Iterator[Check]:
    kind = visit.kind
    if kind is None or not kind.program:
        return
    answers, needed = visit.answers, f"for {kind.title} agents"
    version = answers["agent_version"]
    if not version:
        fix = f"install {kind.program} there, in a folder of the PATH that ssh gives ({kind.program} --version)"
        yield visit.check(kind.program, False, "not there", needed, fix)
        return
    goes_along = kind.needed_variables(visit.environment)
    code = answers["login_code"]
    login = kind.read_login(int(code) if code.isdecimal() else 1, answers["login"], visit.environment)
    if goes_along:
        yield visit.check(kind.program, True, f"{version}, logged in by {', '.join(goes_along)} from here", needed)
    elif login.is_logged_in is False:
        fix = f"log in there (`{kind.program}`), or set here what it logs in with: it goes along"
        yield visit.check(kind.program, False, f"{version}, not logged in there", needed, fix)
    else:
        state = "logged in there" if login.is_logged_in else "its login is not known"
        yield visit.check(kind.program, True, f"{version}, {state}", needed)


def _check_folder(visit: HostVisit) -> Iterator[Check]:
    answers, folder = visit.answers, visit.host.host_dir
    needed = f"a folder for mngr on the host, {folder}"
    if not Path(folder).is_absolute():
        fix = f"give host_dir as a whole path in {visit.host.settings}: mngr does not expand it"
        yield visit.check("folder", False, f"{folder} is no whole path", needed, fix)
        return
    if not answers["writable"]:
        fix = "make it there, or name another as host_dir in mngr's settings"
        yield visit.check("folder", False, f"{answers['folder']} cannot be written", needed, fix)
    free, inodes = answers["free_kb"], answers["free_inodes"]
    if not free.isdecimal():
        yield visit.check("disk", True, "its room is not known", "1 GB, and 0.2 GB an agent")
        return
    is_enough = int(free) >= NEEDED_FREE_KB and not (inodes.isdecimal() and 0 < int(inodes) < 10_000)
    agents = int(free) // FREE_KB_AN_AGENT
    found = f"{int(free) / 1e6:.1f} GB free at {answers['folder']}, enough for some {agents:,} agents"
    fix = "" if is_enough else "make room there, or name another disk as host_dir in mngr's settings"
    yield visit.check("disk", is_enough, found, "1 GB, and 0.2 GB an agent", fix)


def _check_clock(visit: HostVisit) -> Iterator[Check]:
    answers = visit.answers
    if not answers["begin"].isdecimal():
        return
    # Its clock is told in whole seconds, somewhere within the round trip.
    off = abs(int(answers["begin"]) + 0.5 - answers.asked_at)
    off = max(0.0, off - 0.5 - answers.seconds / 2)
    found = f"{off:.0f} s off" if off >= 1 else "the same as here"
    fix = "" if off <= CLOCK_TOLERANCE else "set it there: `timedatectl set-ntp true`"
    yield visit.check("clock", off <= CLOCK_LIMIT, found, f"at most {CLOCK_TOLERANCE:.0f} s off", fix)


def _check_connections(visit: HostVisit) -> Iterator[Check]:
    starts = visit.answers["starts"].partition(":")[0]
    if not starts.isdecimal():
        return
    is_enough = int(starts) >= NEEDED_STARTS
    fix = (
        "" if is_enough else f"`MaxStartups {NEEDED_STARTS}:30:100` in its /etc/ssh/sshd_config: logins may be refused"
    )
    found = f"{starts} logins at once (MaxStartups {visit.answers['starts']})"
    yield visit.check("sshd", True, found, f"{NEEDED_STARTS} logins at once", fix)


def _check_neighbours(visit: HostVisit) -> Iterator[Check]:
    host = visit.host
    if host.neighbours:
        found = f"shares the provider {host.provider} with {', '.join(host.neighbours[:5])}"
        fix = "when one of them is down mngr refuses all: give each a provider of its own (`swarm-tui hosts add` does)"
        yield visit.check("provider", True, found, "a provider of its own", fix)
    if host.target.known_hosts_file is None:
        fix = f'known_hosts_file = "/home/..." in its entry in {host.settings}: without it mngr refuses the host key'
        yield visit.check("host key", False, "its entry names no known_hosts_file", "a known_hosts file", fix)


_ROWS: Final[tuple[Callable[[HostVisit], Iterator[Check]], ...]] = (
    _check_shell,
    _check_programs,
    _check_agent,
    _check_folder,
    _check_clock,
    _check_connections,
    _check_neighbours,
)


def _get(program: str) -> str:
    package = {"ps": "procps"}.get(program, program)
    return f"install it there (apt-get install {package}, apk add {package}, dnf install {package})"
