"""Records an agent's terminal on its host, where the recorder lives as long as the terminal does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from swarm_tui.adapters import cast_writer
from swarm_tui.adapters.cast_writer import CastWriter
from swarm_tui.adapters.tmux import AGENT_WINDOW
from swarm_tui.errors import AdapterError
from swarm_tui.places.place import AgentAddress
from swarm_tui.regular_file import read_regular

if TYPE_CHECKING:
    from swarm_tui.places.ssh import SshPlace

RECORDER: Final = "plugin/swarm/recorder.py"
RECORDING: Final = "plugin/swarm/terminal.cast"
"""In the agent's state folder; it is pulled with the agent's work."""


async def record_far_terminal(place: SshPlace, agent: AgentAddress, cast: Path) -> None:
    """Begin a recording on the agent's host, with its present screen; `cast` gets that beginning."""
    panes = await place.tmux.list_panes()
    pane = next((pane for pane in panes if pane.session == agent.session and pane.window == AGENT_WINDOW), None)
    if pane is None:
        raise AdapterError(f"{agent.session} has no pane to record")
    screen = (await place.tmux.capture([agent.session])).get(agent.session) or ""
    try:
        writer = CastWriter.begin(cast, pane.width, pane.height, agent.session)
        writer.output(screen.rstrip("\n").replace("\n", "\r\n").encode())
        writer.close()
        recorder, recording = f"{agent.state_dir}/{RECORDER}", f"{agent.state_dir}/{RECORDING}"
        await place.write_path(recorder, Path(cast_writer.__file__).read_bytes())
        await place.write_path(recording, read_regular(cast), mode=0o600)
    except OSError as error:
        raise AdapterError(f"{cast} cannot be written", error.strerror or str(error)) from error
    # A python that is too old for the recorder ends at once: then there is no more than the beginning.
    await place.tmux.pipe_pane(agent.session, ["python3", "-I", "-S", recorder, recording])
