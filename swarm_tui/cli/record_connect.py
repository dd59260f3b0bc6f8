"""`swarm-tui record-connect`: attach to an agent and record the terminal (called by mngr)."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Final

from swarm_tui.adapters.recorder import record_program
from swarm_tui.cli.sweeps import chosen_sweep, repository_root
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.journal.folder import list_sweeps

DESCRIPTION = """Attach to an agent and record the terminal. mngr runs this command as its connect_command; do not
run it directly. The recording (asciicast v2) is stored with the agent in its sweep, for the room and the report. For an
agent without a sweep, it is stored in ~/.local/state/swarm-tui/recordings. Typed text is recorded only if the program
shows it."""
EXAMPLES = """\
  mngr connect AGENT --connect-command 'swarm-tui record-connect'
  mngr config set --scope user connect_command 'swarm-tui record-connect'    record all connections
  mngr connect AGENT --connect-command 'swarm-tui record-connect -o demo.cast'"""

AGENT_VARIABLE: Final = "MNGR_AGENT_NAME"
SESSION_VARIABLE: Final = "MNGR_SESSION_NAME"
LOCAL_VARIABLE: Final = "MNGR_HOST_IS_LOCAL"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sweep", metavar="SWEEP", help="the agent's sweep (default: search this repository)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="record to this new file")


def run(arguments: argparse.Namespace) -> int:
    agent = os.environ.get(AGENT_VARIABLE, "")
    if not agent:
        raise UsageError(
            f"{AGENT_VARIABLE} is not set",
            "run this command with mngr: mngr connect AGENT --connect-command 'swarm-tui record-connect'",
        )
    cast = arguments.output or recording_path(agent, arguments.sweep, Path.cwd())
    environment = {name: value for name, value in os.environ.items() if name not in ("TMUX", "TMUX_PANE")}
    code = record_program(connect_command(agent, environment), cast, environment=environment, title=agent)
    if cast.is_file():
        print(f"recorded: {cast}", file=sys.stderr)
    return code


def connect_command(agent: str, environment: dict[str, str]) -> list[str]:
    """Return the command that attaches: tmux on this machine, mngr for other hosts."""
    session = environment.get(SESSION_VARIABLE, "")
    if environment.get(LOCAL_VARIABLE) == "true" and session:
        return ["tmux", "attach-session", "-t", f"={session}"]
    # mngr has set MNGR_CONNECT_COMMAND_ACTIVE, so this does not call this command again.
    return ["mngr", "connect", agent]


def recording_path(agent: str, sweep: str | None, folder: Path) -> Path:
    """Return the path of a new recording: in the agent's folder of its sweep, or in the user's state folder."""
    name = f"connect-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.cast"
    kept = _recordings_of_agent(agent, sweep, folder)
    if kept is not None:
        return kept / name
    state = os.environ.get("XDG_STATE_HOME", "")
    home = Path(state) if os.path.isabs(state) else Path.home() / ".local/state"
    return home / "swarm-tui" / "recordings" / agent.replace("/", "_") / name


def _recordings_of_agent(agent: str, sweep: str | None, folder: Path) -> Path | None:
    candidates = [chosen_sweep(sweep, folder)] if sweep else reversed(list_sweeps(repository_root(folder)))
    for candidate in candidates:
        try:
            kept = candidate.recordings(agent)
        except ValueError as error:
            raise SwarmError(f"invalid agent name: {agent!r}") from error
        if sweep or kept.parent.is_dir() or agent.startswith(f"swarm-{candidate.name}-"):
            return kept
    return None
