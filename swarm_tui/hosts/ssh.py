"""Host reached by ssh."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from swarm_tui.adapters import cast_writer
from swarm_tui.adapters.cast_writer import CastWriter
from swarm_tui.adapters.mngr_settings import AgentTypes
from swarm_tui.adapters.processes.run import Finished
from swarm_tui.adapters.tmux import AGENT_WINDOW, Pane, Tmux, is_without_server, parse_panes
from swarm_tui.errors import AdapterError, ProgramMissing
from swarm_tui.files import read_regular, replacing
from swarm_tui.hosts.attach import Attacher
from swarm_tui.hosts.link import PROBE_WORDS, SshLink
from swarm_tui.hosts.mirror import parse_found, path_of
from swarm_tui.hosts.processes import decide_state, expected_process, is_at_prompt, parse_processes
from swarm_tui.hosts.protocol import (
    AgentAddress,
    AgentFile,
    AgentStatus,
    AgentStatuses,
    FileSlice,
    FoundFile,
    HostReport,
    HostUnreachable,
    ReadRequest,
)
from swarm_tui.model.hosts import HostSettings
from swarm_tui.model.spec import MngrSettings

if TYPE_CHECKING:
    from swarm_tui.adapters.git import Repository


_CHUNK: Final = 1 << 18
_CONNECTING: Final = "it is being connected"


class SshHost:
    """The agents of one host."""

    def __init__(self, access: HostSettings, settings: MngrSettings, repository: Path | None, link: SshLink) -> None:
        self.access = access
        self.link = link
        self.tmux = FarTmux(link)
        self._settings = settings
        self._repository = repository
        home = Path(settings.home or Path.home())
        host_dir = Path(settings.host_dir).expanduser() if settings.host_dir else home / ".mngr"
        self._agent_types = AgentTypes(host_dir, repository)
        self._last_probe: tuple[dict[str, Any], AgentStatuses] | None = None

    def host_dir_of(self, host: str) -> str:
        return self.access.host_dir

    async def has_mngr(self) -> bool:
        return (await self.link.run(["test", "-d", self.access.host_dir])).code == 0

    def reports(self) -> tuple[HostReport, ...]:
        link = self.link
        reason = link.reason if not link.is_there else ""
        return (HostReport(self.access.name, link.is_there, reason, link.heard_at, link.load, link.processors),)

    # What agents do.

    async def agent_statuses(self) -> AgentStatuses:
        return self._statuses_in(await self.link.ask("probe", agents=f"{self.access.host_dir}/agents", **PROBE_WORDS))

    async def latest_statuses(self) -> AgentStatuses:
        self.link.watch()
        probe = self.link.mirror.probe
        if not self.link.is_there or probe is None:
            return AgentStatuses({}, lost={self.access.name: self.link.reason or _CONNECTING})
        if self._last_probe is None or self._last_probe[0] is not probe:
            try:
                self._last_probe = probe, self._statuses_in(probe)
            except HostUnreachable as error:
                return AgentStatuses({}, lost={self.access.name: error.message})
        return self._last_probe[1]

    def _statuses_in(self, probe: Mapping[str, Any]) -> AgentStatuses:
        if probe.get("processes") is None:
            raise HostUnreachable(f"what runs on {self.access.name} cannot be listed", "it needs ps and tmux")
        try:
            return self._parse_statuses(probe)
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise HostUnreachable(f"{self.access.name} says of its agents what makes no sense") from error

    def _parse_statuses(self, probe: Mapping[str, Any]) -> AgentStatuses:
        panes: dict[str, Pane] = {}
        if probe["panes_code"] != 0 and not is_without_server(probe["panes_error"]):
            raise HostUnreachable(f"tmux failed on {self.access.name}: {probe['panes_error']}")
        for pane in parse_panes(base64.b64decode(probe["panes"])) if probe["panes_code"] == 0 else ():
            if pane.is_agent_pane:
                panes.setdefault(pane.session, pane)
                if pane.agent_id:
                    panes.setdefault(pane.agent_id, pane)
        processes, parent_types = parse_processes(probe["processes"]), self._agent_types.parents()
        agents = {}
        for folder, (record, is_active) in probe["agents"].items():
            session = f"{self._settings.prefix}{record['name']}"
            pane_of = panes.get(str(record["id"])) or panes.get(session)
            expected = expected_process(str(record.get("type")), str(record.get("command") or ""), parent_types)
            state, process_id = decide_state(pane_of, processes, expected, is_active=bool(is_active))
            labels = record.get("labels")
            address = AgentAddress(
                name=str(record["name"]),
                agent_id=str(record["id"]),
                session=pane_of.session if pane_of is not None else session,
                state_dir=f"{self.access.host_dir}/agents/{folder}",
                work_dir=str(record.get("work_dir") or ""),
                host=self.access.name,
            )
            agents[address.agent_id] = AgentStatus(
                address,
                state,
                process_id,
                branch=record.get("created_branch_name"),
                labels=labels if isinstance(labels, dict) else {},
                is_at_prompt=is_at_prompt(pane_of, processes),
            )
        return AgentStatuses(agents, tuple(map(str, probe["unreadable"])))

    # Their files.

    def on_news(self, tell: Callable[[str], object]) -> None:
        self.link.mirror.tell = tell

    def tells_all_news(self) -> bool:
        return True

    async def latest_files(self, requests: Sequence[ReadRequest]) -> list[FileSlice | None]:
        slices = self.link.mirror.files(requests)
        self.link.watch()
        return slices

    async def latest_found(self, agents: Sequence[AgentAddress], patterns: Sequence[str]) -> list[list[FoundFile]]:
        found = self.link.mirror.found(agents, patterns)
        self.link.watch()
        return found

    async def read_files(self, requests: Sequence[ReadRequest]) -> list[FileSlice | None]:
        if not requests:
            return []
        wanted = [[path_of(request.file), request.offset, request.limit] for request in requests]
        return await self._read(wanted)

    async def find_files(self, agents: Sequence[AgentAddress], patterns: Sequence[str]) -> list[list[FoundFile]]:
        folders = [agent.state_dir for agent in agents]
        answer = await self.link.ask("find", folders=folders, patterns=list(patterns))
        try:
            return [list(parse_found(files)) for files in answer["found"]]
        except (KeyError, ValueError, TypeError) as error:
            raise self.link.unreachable("it says of its files what makes no sense") from error

    async def fetch_file(self, file: AgentFile, target: Path, *, limit: int) -> bool:
        return await self.fetch_path(path_of(file), target, limit=limit)

    async def fetch_path(self, path: str, target: Path, *, limit: int) -> bool:
        """Copy at most the first `limit` bytes of any file to this machine; False when there is none."""
        (known,) = await self._read([[path, 0, 0]])
        if known is None:
            return False
        with replacing(target, is_synced=False) as copy:
            offset = 0
            while offset < limit:
                # Some parts at once: a line of 300 ms would else carry one part in that time.
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

    async def write_file(self, file: AgentFile, content: bytes, *, is_new: bool = False) -> None:
        await self.write_path(path_of(file), content, is_new=is_new)

    async def write_path(self, path: str, content: bytes, *, mode: int = 0o644, is_new: bool = False) -> None:
        """Write a file whole, over no other where it is to be new; its folder is made."""
        await self.link.ask("write", path=path, data=base64.b64encode(content).decode(), mode=mode, is_new=is_new)

    async def _read(self, wanted: Sequence[Sequence[Any]]) -> list[FileSlice | None]:
        answer = await self.link.ask("read", files=wanted)
        try:
            return [
                None if said is None else FileSlice(int(said[0]), int(said[1]), base64.b64decode(said[2])[: asked[2]])
                for said, asked in zip(answer["files"], wanted, strict=True)
            ]
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise self.link.unreachable("it says of its files what makes no sense") from error

    # Their copies.

    async def run(self, agent: AgentAddress, words: Sequence[str], *, timeout: float = 60.0) -> Finished:
        return await self.link.run(words, cwd=agent.work_dir, timeout=timeout)

    async def fetch_commits(self, agent: AgentAddress, repository: Repository, *, base: str, tip: str, ref: str) -> str:
        from swarm_tui.hosts.copies import fetch_from_far_copy

        return await fetch_from_far_copy(self, agent.work_dir, repository, base=base, tip=tip, ref=ref)

    async def uncommitted_paths(self, agent: AgentAddress, *, without: str) -> tuple[str, ...]:
        from swarm_tui.hosts.copies import far_uncommitted_paths

        return await far_uncommitted_paths(self.link, agent.work_dir, without)

    async def uncommitted_patch(self, agent: AgentAddress, *, without: str, limit: int) -> bytes:
        from swarm_tui.hosts.copies import far_uncommitted_patch

        return await far_uncommitted_patch(self.link, agent.work_dir, without, limit)

    # Their terminals.

    async def capture_screens(self, agents: Sequence[AgentAddress], *, history: int = 0) -> dict[str, str | None]:
        return await self.tmux.capture([agent.session for agent in agents], history=history)

    async def protect_session(self, agent: AgentAddress) -> None:
        await self.tmux.protect_session(agent.session)

    async def forget_variables(self, agent: AgentAddress, names: Sequence[str]) -> None:
        await self.tmux.forget_variables(names)

    async def record_terminal(self, agent: AgentAddress, cast: Path) -> None:

        await record_far_terminal(self, agent, cast)

    def attacher(self, host: str, own: Mapping[str, str] | None = None) -> Attacher:
        return Attacher(self, self.tmux, self._settings, self._repository, own, access=self.access)

    async def close(self) -> None:
        await self.link.close()


class FarTmux(Tmux):
    """The tmux server of a host, asked over our connection."""

    def __init__(self, link: SshLink) -> None:
        super().__init__({})
        self._link = link

    async def _call(self, *words: str, stdin: bytes | None = None) -> Finished:
        try:
            return await self._link.run(["tmux", "-u", *words], stdin=stdin, timeout=10.0)
        except ProgramMissing as error:
            raise AdapterError(error.message, "install tmux there") from error


RECORDER: Final = "plugin/swarm/recorder.py"
RECORDING: Final = "plugin/swarm/terminal.cast"
"""In the agent's state folder; it is pulled with the agent's work."""


async def record_far_terminal(place: SshHost, agent: AgentAddress, cast: Path) -> None:
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
        raise AdapterError(f"{cast} cannot be written: {error.strerror or error}") from error
    # A python that is too old for the recorder ends at once: then there is no more than the beginning.
    await place.tmux.pipe_pane(agent.session, ["python3", "-I", "-S", recorder, recording])
