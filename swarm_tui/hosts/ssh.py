"""Host reached by ssh."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from swarm_tui.adapters import cast_writer
from swarm_tui.adapters.cast_writer import CastWriter
from swarm_tui.adapters.mngr_settings import AgentTypes, host_dir_of
from swarm_tui.adapters.processes.run import OUTPUT_LIMIT, Finished
from swarm_tui.adapters.tmux import AGENT_WINDOW, Tmux, is_without_server, parse_panes
from swarm_tui.errors import AdapterError, ProgramMissing
from swarm_tui.files import read_regular, replacing
from swarm_tui.hosts.link import PROBE_WORDS, SshLink
from swarm_tui.hosts.mirror import parse_found
from swarm_tui.hosts.processes import AgentTable, agent_panes, parse_processes
from swarm_tui.hosts.protocol import (
    AgentAddress,
    AgentStatuses,
    FileSlice,
    FoundFile,
    HostReport,
    HostUnreachable,
    ReadRequest,
)
from swarm_tui.model.spec import HostSettings, MngrSettings

_CHUNK: Final = 1 << 18
_CONNECTING: Final = "it is being connected"


RECORDER: Final = "plugin/swarm/recorder.py"
RECORDING: Final = "plugin/swarm/terminal.cast"
"""In the agent's state folder."""


class SshHost:
    """A host that is reached by ssh."""

    def __init__(self, settings: HostSettings, mngr: MngrSettings, repository: Path | None, link: SshLink) -> None:
        self.name, self.host_dir, self.settings = settings.name, settings.host_dir, settings
        self.link = link
        self.tmux = RemoteTmux(link)
        self._prefix = mngr.prefix
        self._agent_types = AgentTypes(host_dir_of(mngr), repository)
        self._last_probe: tuple[dict[str, Any], AgentStatuses] | None = None

    def report(self) -> HostReport:
        link = self.link
        reason = link.reason if not link.is_there else ""
        return HostReport(self.name, link.is_there, reason, link.heard_at, link.load, link.processors, link.greeting)

    async def close(self) -> None:
        await self.link.close()

    # States of agents.

    async def statuses(self, *, follow: bool = False) -> AgentStatuses:
        if not follow:
            return self._statuses_in(await self.link.ask("probe", agents=f"{self.host_dir}/agents", **PROBE_WORDS))
        self.link.watch()
        probe = self.link.mirror.probe
        if not self.link.is_there or probe is None:
            return AgentStatuses({}, lost={self.name: self.link.reason or _CONNECTING})
        if self._last_probe is None or self._last_probe[0] is not probe:
            try:
                self._last_probe = probe, self._statuses_in(probe)
            except HostUnreachable as error:
                return AgentStatuses({}, lost={self.name: error.message})
        return self._last_probe[1]

    def _statuses_in(self, probe: Mapping[str, Any]) -> AgentStatuses:
        if probe.get("processes") is None:
            raise HostUnreachable(f"cannot list the processes on {self.name}", "install ps and tmux there")
        try:
            return self._parse_statuses(probe)
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise HostUnreachable(f"invalid answer of {self.name} about its agents") from error

    def _parse_statuses(self, probe: Mapping[str, Any]) -> AgentStatuses:
        if probe["panes_code"] != 0 and not is_without_server(probe["panes_error"]):
            raise HostUnreachable(f"tmux failed on {self.name}: {probe['panes_error']}")
        panes = parse_panes(base64.b64decode(probe["panes"])) if probe["panes_code"] == 0 else ()
        processes, types = parse_processes(probe["processes"]), self._agent_types.parents()
        table = AgentTable(self.name, f"{self.host_dir}/agents", self._prefix, agent_panes(panes), processes, types)
        found = probe["agents"].items()
        statuses = [table.status(folder, record, is_active=bool(is_active)) for folder, (record, is_active) in found]
        return AgentStatuses({one.address.agent_id: one for one in statuses}, tuple(map(str, probe["unreadable"])))

    # Files.

    def on_change(self, tell: Callable[[str], object]) -> None:
        self.link.mirror.tell = tell

    def reports_changes(self) -> bool:
        return True

    async def read_files(self, requests: Sequence[ReadRequest], *, follow: bool = False) -> list[FileSlice | None]:
        if follow:
            slices = self.link.mirror.files(requests)
            self.link.watch()
            return slices
        if not requests:
            return []
        return await self._read([[request.file.full_path, request.offset, request.limit] for request in requests])

    async def find_files(
        self, agents: Sequence[AgentAddress], patterns: Sequence[str], *, follow: bool = False
    ) -> list[list[FoundFile]]:
        if follow:
            mirrored = self.link.mirror.found(agents, patterns)
            self.link.watch()
            return mirrored
        folders = [agent.state_dir for agent in agents]
        answer = await self.link.ask("find", folders=folders, patterns=list(patterns))
        try:
            found = [list(parse_found(files)) for files in answer["found"]]
        except (KeyError, ValueError, TypeError) as error:
            raise self.link.unreachable("invalid answer about its files") from error
        if len(found) != len(agents):
            raise self.link.unreachable("incomplete answer about its files")
        return found

    async def fetch_file(self, path: str, target: Path, *, limit: int) -> bool:
        (first,) = await self._read([[path, 0, 0]])
        if first is None:
            return False
        with replacing(target, is_synced=False) as copy:
            offset = 0
            while offset < limit:
                # Several parts at a time, because a connection may have a round trip of 300 ms.
                starts = range(offset, min(limit, offset + 4 * _CHUNK), _CHUNK)
                parts = await self._read([[path, start, min(_CHUNK, limit - start)] for start in starts])
                content = b"".join(
                    part.content for part, start in zip(parts, starts, strict=True) if part and part.offset == start
                )
                copy.write(content)
                offset += len(content)
                if len(content) < min(4 * _CHUNK, limit - (offset - len(content))):
                    break
        return True

    async def write_file(self, path: str, content: bytes, *, mode: int = 0o600, is_new: bool = False) -> None:
        await self.link.ask("write", path=path, data=base64.b64encode(content).decode(), mode=mode, is_new=is_new)

    async def _read(self, wanted: Sequence[Sequence[Any]]) -> list[FileSlice | None]:
        answer = await self.link.ask("read", files=wanted)
        try:
            return [
                None if part is None else FileSlice(int(part[0]), int(part[1]), base64.b64decode(part[2])[: asked[2]])
                for part, asked in zip(answer["files"], wanted, strict=True)
            ]
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise self.link.unreachable("invalid answer about its files") from error

    # Programs.

    async def run(
        self,
        words: Sequence[str],
        *,
        cwd: str | None = None,
        stdin: bytes | None = None,
        timeout: float = 60.0,
        output_limit: int = OUTPUT_LIMIT,
    ) -> Finished:
        return await self.link.run(words, cwd=cwd, stdin=stdin, timeout=timeout, output_limit=output_limit)

    async def record_terminal(self, agent: AgentAddress, cast: Path) -> None:
        """Start a recorder on the host. `cast` gets the present screen; the rest is pulled with the agent's work."""
        panes = await self.tmux.list_panes()
        pane = next((pane for pane in panes if pane.session == agent.session and pane.window == AGENT_WINDOW), None)
        if pane is None:
            raise AdapterError(f"no pane to record: {agent.session}")
        screen = (await self.tmux.capture([agent.session])).get(agent.session) or ""
        recorder, recording = f"{agent.state_dir}/{RECORDER}", f"{agent.state_dir}/{RECORDING}"
        try:
            writer = CastWriter.begin(cast, pane.width, pane.height, agent.session)
            writer.output(screen.rstrip("\n").replace("\n", "\r\n").encode())
            writer.close()
            await self.write_file(recorder, Path(cast_writer.__file__).read_bytes())
            await self.write_file(recording, read_regular(cast))
        except OSError as error:
            raise AdapterError(f"cannot write {cast}: {error.strerror or error}") from error
        # If python3 is too old for the recorder, the recording ends here.
        await self.tmux.pipe_pane(agent.session, ["python3", "-I", "-S", recorder, recording])


class RemoteTmux(Tmux):
    """The tmux server of a host, called through the connection to the host."""

    def __init__(self, link: SshLink) -> None:
        super().__init__({})
        self._link = link

    async def _call(self, *words: str, stdin: bytes | None = None) -> Finished:
        try:
            return await self._link.run(["tmux", "-u", *words], stdin=stdin, timeout=10.0)
        except ProgramMissing as error:
            raise AdapterError(error.message, "install tmux on that host") from error
