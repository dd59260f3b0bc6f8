"""Asks a machine once, by one script over ssh, for everything that the doctor judges."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from swarm_tui.adapters.ssh import SshTarget, run_script
from swarm_tui.errors import AdapterError
from swarm_tui.model.text import plain

# What a profile prints of its own, or a banner, is told from the answers by this.
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
    """What a machine answered."""

    found: Mapping[str, str]
    greeting: str
    """What the shell prints before any command."""
    seconds: float
    """The round trip, connection and all."""
    asked_at: float
    """When the answer was on its way, by the clock here."""

    def __getitem__(self, name: str) -> str:
        return self.found.get(name, "")


async def probe_host(target: SshTarget, folder: str = "", program: str = "", login: Sequence[str] = ()) -> HostAnswers:
    """Ask a machine; raise AdapterError when it cannot be reached or runs no commands.

    `folder` is where mngr is to keep its agents, `program` and `login` are those of an agent.
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
        said = plain((finished.error_text or finished.text).strip(), 200) or f"it ended with code {finished.code}"
        raise AdapterError(
            f"{target.shown} lets you in, but runs no command: {said}", "its user needs a shell, such as /bin/sh"
        )
    greeting = plain(finished.text.partition(_MARK)[0].strip(), 80)
    return HostAnswers(found, greeting, seconds, begun + seconds / 2)
