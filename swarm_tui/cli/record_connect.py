"""`swarm-tui record-connect`: attaches to an agent and records its terminal; mngr calls it."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Final

from swarm_tui.errors import SwarmError, UsageError

DESCRIPTION = """Attach to an agent and record the terminal. Not called by hand: it is a connect_command of mngr, which
tells it the agent. The recording (asciicast v2) goes to what is kept of the agent in its sweep, where the room plays it
back and the report shows it; for an agent of no sweep it goes to ~/.local/state/swarm-tui/recordings. What is typed is
recorded only as far as the program shows it."""
EXAMPLES = """\
  mngr connect AGENT --connect-command 'swarm-tui record-connect'
  mngr config set --scope user connect_command 'swarm-tui record-connect'    from now on, whenever you connect
  mngr connect AGENT --connect-command 'swarm-tui record-connect -o demo.cast'"""

AGENT_VARIABLE: Final = "MNGR_AGENT_NAME"
SESSION_VARIABLE: Final = "MNGR_SESSION_NAME"
LOCAL_VARIABLE: Final = "MNGR_HOST_IS_LOCAL"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sweep", metavar="SWEEP", help="the agent's sweep; else it is looked for in this repository")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="record into this new file")


def run(arguments: argparse.Namespace) -> int:
    from swarm_tui.adapters.recorder import record_program

    agent = os.environ.get(AGENT_VARIABLE, "")
    if not agent:
        raise UsageError(
            "there is no agent to connect to",
            f"mngr names it in {AGENT_VARIABLE}: mngr connect AGENT --connect-command 'swarm-tui record-connect'",
        )
    cast = arguments.output or recording_path(agent, arguments.sweep, Path.cwd())
    environment = {name: value for name, value in os.environ.items() if name not in ("TMUX", "TMUX_PANE")}
    code = record_program(connect_command(agent, environment), cast, environment=environment, title=agent)
    if cast.is_file():
        print(f"recorded: {cast}", file=sys.stderr)
    return code


def connect_command(agent: str, environment: dict[str, str]) -> list[str]:
    """Return the command that attaches: tmux itself on this machine, mngr for another one."""
    session = environment.get(SESSION_VARIABLE, "")
    if environment.get(LOCAL_VARIABLE) == "true" and session:
        return ["tmux", "attach-session", "-t", f"={session}"]
    # mngr has set MNGR_CONNECT_COMMAND_ACTIVE, so this attaches instead of calling us again.
    return ["mngr", "connect", agent]


def recording_path(agent: str, sweep: str | None, folder: Path) -> Path:
    """Return the path of a new recording: in the agent's folder of its sweep, else in the user's state folder."""
    name = f"connect-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.cast"
    kept = _recordings_of_agent(agent, sweep, folder)
    if kept is not None:
        return kept / name
    state = os.environ.get("XDG_STATE_HOME", "")
    home = Path(state) if os.path.isabs(state) else Path.home() / ".local/state"
    return home / "swarm-tui" / "recordings" / agent.replace("/", "_") / name


def _recordings_of_agent(agent: str, sweep: str | None, folder: Path) -> Path | None:
    from swarm_tui.cli.sweeps import chosen_sweep, repository_root
    from swarm_tui.journal.folder import list_sweeps

    candidates = [chosen_sweep(sweep, folder)] if sweep else reversed(list_sweeps(repository_root(folder)))
    for candidate in candidates:
        try:
            kept = candidate.recordings(agent)
        except ValueError as error:
            raise SwarmError(f"{agent!r} is no name of an agent") from error
        if sweep or kept.parent.is_dir() or agent.startswith(f"swarm-{candidate.name}-"):
            return kept
    return None
