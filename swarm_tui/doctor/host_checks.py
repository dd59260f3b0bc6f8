"""Checks of a host."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.mngr_settings import MngrHost
from swarm_tui.adapters.ssh import FOREIGN_SHELLS, OTHER_SHELL, SILENT_SHELL, SshTarget, run_script
from swarm_tui.agents.types import AgentType
from swarm_tui.errors import AdapterError
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a check. If `ok` is set, `fix` is only advice."""

    name: str
    ok: bool
    found: str
    needed: str
    fix: str = ""


# Separates the answers from the output of profiles and banners.
_MARK: Final = "swarm-tui:"
_ANSWER: Final = re.compile(rf"^{_MARK}([a-z_]+) ?(.*)$", re.MULTILINE)
_LIMIT: Final = 'limit() { if command -v timeout >/dev/null; then timeout 10 "$@"; else "$@"; fi; }'
_SCRIPT: Final = """
say() {{ printf '{mark}%s %s\\n' "$1" "$(printf %s "$2" | head -n 1)"; }}
{limit}
say begin "$(date +%s)"
say home "$HOME"
say shell "${{SHELL##*/}}"
for program in git tmux rsync jq bash; do
  command -v "$program" >/dev/null && say "$program" there
done
say git_version "$(git --version 2>&1)"
say tmux_version "$(tmux -V 2>&1)"
say python_version "$(python3 -c 'import sys; print(*sys.version_info[:3], sep=".")' 2>/dev/null)"
ps -A -o pid=,ppid=,comm= >/dev/null 2>&1 && say ps there
folder={folder}
case $folder in '') folder=$HOME;; esac
while ! [ -e "$folder" ] && [ "$folder" != / ]; do folder=$(dirname -- "$folder"); done
say folder "$folder"
[ -d "$folder" ] && [ -w "$folder" ] && say writable yes
say free_kb "$(df -Pk -- "$folder" 2>/dev/null | awk 'NR == 2 {{ print $4 }}')"
say free_inodes "$(df -Pi -- "$folder" 2>/dev/null | awk 'NR == 2 {{ print $4 }}')"
say cores "$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null)"
configured() {{ sshd -T || /usr/sbin/sshd -T || cat /etc/ssh/sshd_config; }}
say starts "$(configured 2>/dev/null </dev/null | awk 'tolower($1) == "maxstartups" {{ print $2; exit }}')"
{agent}
say end ok
"""


@dataclass(frozen=True, slots=True)
class HostAnswers:
    """The answers of a host."""

    found: Mapping[str, str]
    greeting: str
    """The output of the shell before the first command."""
    seconds: float
    """The round trip, including the connection."""
    asked_at: float
    """The local time in the middle of the round trip."""

    def __getitem__(self, name: str) -> str:
        return self.found.get(name, "")


async def probe_host(target: SshTarget, folder: str = "", program: str = "", login: Sequence[str] = ()) -> HostAnswers:
    """Return the answers of a host; raise AdapterError if it is unreachable or cannot run commands.

    `folder` is mngr's folder on the host; `program` and `login` are the commands of an agent.
    """
    agent = ""
    if program:
        agent = f'say agent_version "$(limit {shlex.quote(program)} --version 2>/dev/null </dev/null)"\n'
    if login:
        agent += f"answer=$(limit {shlex.join(login)} 2>/dev/null </dev/null)\n"
        agent += 'say login_code "$?"\nsay login "$(printf %s "$answer" | tr "\\n" " ")"'
    script = _SCRIPT.format(mark=_MARK, limit=_LIMIT, folder=shlex.quote(folder), agent=agent)
    begun = time.time()
    started = time.monotonic()
    finished = await run_script(target, script, timeout=45.0)
    seconds = time.monotonic() - started
    found = {name: plain(answer, 2_000) for name, answer in _ANSWER.findall(finished.text)}
    if "end" not in found:
        reason = plain((finished.error_text or finished.text).strip(), 200) or f"exit code {finished.code}"
        raise AdapterError(
            f"cannot run commands on {target.shown}: {reason}", "give its user a login shell such as /bin/sh"
        )
    greeting = plain(finished.text.partition(_MARK)[0].strip(), 80)
    return HostAnswers(found, greeting, seconds, begun + seconds / 2)


NEEDED_GIT: Final = (2, 25)
NEEDED_TMUX: Final = (3, 2)
NEEDED_PYTHON: Final = (3, 8)
NEEDED_FREE_KB: Final = 1_000_000
FREE_KB_AN_AGENT: Final = 200_000
NEEDED_STARTS: Final = 10
CLOCK_TOLERANCE: Final = 5.0
CLOCK_LIMIT: Final = 300.0

_NEEDED_HOST: Final = "a host reachable by ssh"
_VERSION: Final = re.compile(r"(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class HostVisit:
    """A host with its answers."""

    host: MngrHost
    answers: HostAnswers
    kind: AgentType | None
    environment: Mapping[str, str]
    """The user's variables; an agent may get those for its login."""

    def check(self, name: str, ok: bool, found: str, needed: str, fix: str = "") -> Check:
        return Check(f"{self.host.shown} {name}", ok, found, needed, fix)


async def check_host(host: MngrHost, kind: AgentType | None, environment: Mapping[str, str]) -> list[Check]:
    """Return the checks of a host; a single one if the host is unreachable."""
    program = kind.program if kind is not None else ""
    login = kind.login_command if kind is not None else ()
    try:
        answers = await probe_host(host.target, host.host_dir, program, login)
    except AdapterError as error:
        return [Check(host.shown, False, error.message, _NEEDED_HOST, error.hint)]
    return judge_host(host, answers, kind, environment)


def judge_host(
    host: MngrHost, answers: HostAnswers, kind: AgentType | None, environment: Mapping[str, str]
) -> list[Check]:
    """Return the checks of a host from its answers."""
    visit = HostVisit(host, answers, kind, environment)
    cores = f", {counted(int(answers['cores']), 'core')}" if answers["cores"].isdecimal() else ""
    found = f"{host.target.shown} answers in {answers.seconds:.1f} s{cores}"
    reached = Check(host.shown, True, found, _NEEDED_HOST)
    return [reached, *(check for each in _ROWS for check in each(visit))]


def _check_shell(visit: HostVisit) -> Iterator[Check]:
    if visit.answers.greeting:
        found = f"prints {visit.answers.greeting!r} before each command"
        needed = "a shell that prints nothing: git would read the output as an answer"
        yield visit.check("shell", False, found, needed, SILENT_SHELL)
    shell = visit.answers["shell"]
    if shell in FOREIGN_SHELLS:
        yield visit.check("shell", False, shell, "a shell like sh, for the commands of mngr", OTHER_SHELL)


def _check_programs(visit: HostVisit) -> Iterator[Check]:
    yield _version_check(visit, "git", visit.answers["git_version"], NEEDED_GIT)
    yield _version_check(visit, "tmux", visit.answers["tmux_version"], NEEDED_TMUX)
    yield _version_check(visit, "python3", visit.answers["python_version"], NEEDED_PYTHON)
    for program, package, why in (
        ("ps", "procps", "without it, mngr reports running agents as done"),
        ("bash", "bash", "for mngr to start agents"),
        ("jq", "jq", "for the Claude hooks of mngr"),
        ("rsync", "rsync", "for mngr to copy files"),
    ):
        has_it = bool(visit.answers[program])
        yield visit.check(
            program, has_it, "installed" if has_it else "not installed", why, "" if has_it else _get(package)
        )


def _version_check(visit: HostVisit, program: str, output: str, needed: tuple[int, int]) -> Check:
    version = _VERSION.search(output)
    shown = ".".join(map(str, needed))
    if version is None:
        return visit.check(program, False, "not installed", f"{shown} or newer", _get(program))
    is_fit = (int(version[1]), int(version[2])) >= needed
    found = output[version.start() :].split(" ")[0]
    return visit.check(program, is_fit, found, f"{shown} or newer", "" if is_fit else f"upgrade it: {_get(program)}")


def _check_agent(visit: HostVisit) -> Iterator[Check]:
    kind = visit.kind
    if kind is None or not kind.program:
        return
    answers, needed = visit.answers, f"for {kind.title} agents"
    version = answers["agent_version"]
    if not version:
        fix = f"install {kind.program} on the host, in a folder on the PATH of ssh sessions"
        yield visit.check(kind.program, False, "not installed", needed, fix)
        return
    passed_variables = kind.needed_variables(visit.environment)
    code = answers["login_code"]
    login = kind.read_login(int(code) if code.isdecimal() else 1, answers["login"], visit.environment)
    if passed_variables:
        yield visit.check(
            kind.program, True, f"{version}, logged in by {', '.join(passed_variables)} from here", needed
        )
    elif login.is_logged_in is False:
        fix = f"log in on the host (`{kind.program}`), or set the login variables here, which are passed on"
        yield visit.check(kind.program, False, f"{version}, not logged in", needed, fix)
    else:
        state = "logged in" if login.is_logged_in else "login unknown"
        yield visit.check(kind.program, True, f"{version}, {state}", needed)


def _check_folder(visit: HostVisit) -> Iterator[Check]:
    answers, folder = visit.answers, visit.host.host_dir
    needed = f"a folder for mngr on the host, {folder}"
    if not Path(folder).is_absolute():
        fix = f"set host_dir to an absolute path in {visit.host.settings}: mngr does not expand it"
        yield visit.check("folder", False, f"{folder} is not an absolute path", needed, fix)
        return
    if not answers["writable"]:
        fix = "make it writable, or set another host_dir in the settings of mngr"
        yield visit.check("folder", False, f"{answers['folder']} is not writable", needed, fix)
    free, inodes = answers["free_kb"], answers["free_inodes"]
    if not free.isdecimal():
        yield visit.check("disk", True, "free space unknown", "1 GB, and 0.2 GB per agent")
        return
    is_enough = int(free) >= NEEDED_FREE_KB and not (inodes.isdecimal() and 0 < int(inodes) < 10_000)
    agents = int(free) // FREE_KB_AN_AGENT
    found = f"{int(free) / 1e6:.1f} GB free at {answers['folder']}, enough for about {agents:,} agents"
    fix = "" if is_enough else "free some space, or set host_dir to another disk in the settings of mngr"
    yield visit.check("disk", is_enough, found, "1 GB, and 0.2 GB per agent", fix)


def _check_clock(visit: HostVisit) -> Iterator[Check]:
    answers = visit.answers
    if not answers["begin"].isdecimal():
        return
    # The host reports whole seconds, at some time within the round trip.
    off = abs(int(answers["begin"]) + 0.5 - answers.asked_at)
    off = max(0.0, off - 0.5 - answers.seconds / 2)
    found = f"{off:.0f} s off" if off >= 1 else "correct"
    fix = "" if off <= CLOCK_TOLERANCE else "set the clock of the host: `timedatectl set-ntp true`"
    yield visit.check("clock", off <= CLOCK_LIMIT, found, f"at most {CLOCK_TOLERANCE:.0f} s off", fix)


def _check_connections(visit: HostVisit) -> Iterator[Check]:
    starts = visit.answers["starts"].partition(":")[0]
    if not starts.isdecimal():
        return
    is_enough = int(starts) >= NEEDED_STARTS
    fix = (
        ""
        if is_enough
        else f"set `MaxStartups {NEEDED_STARTS}:30:100` in its /etc/ssh/sshd_config, otherwise logins may be refused"
    )
    found = f"{starts} concurrent logins (MaxStartups {visit.answers['starts']})"
    yield visit.check("sshd", True, found, f"{NEEDED_STARTS} concurrent logins", fix)


def _check_neighbours(visit: HostVisit) -> Iterator[Check]:
    host = visit.host
    if host.neighbours:
        found = f"shares the provider {host.provider} with {', '.join(host.neighbours[:5])}"
        fix = "if one of them is down, mngr rejects all: add each as a separate provider with `swarm-tui hosts add`"
        yield visit.check("provider", True, found, "a separate provider", fix)
    if host.target.known_hosts_file is None:
        fix = f'set known_hosts_file = "/home/..." in {host.settings}, otherwise mngr rejects the host key'
        yield visit.check("host key", False, "known_hosts_file not set", "a known_hosts file", fix)


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
    return f"install it on the host (apt-get install {package}, apk add {package}, dnf install {package})"
