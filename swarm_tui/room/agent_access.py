"""What the room does with living agents beside the engine: attach, look at their screens, talk to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from swarm_tui.adapters.attach import Attacher
from swarm_tui.adapters.mngr import Mngr, mngr_environment
from swarm_tui.adapters.mngr_messages import is_agent_name
from swarm_tui.adapters.process import stream_process
from swarm_tui.agents.kinds import kind_of
from swarm_tui.errors import AdapterError, SwarmError
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.state import TestRecord
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.model.text import plain
from swarm_tui.transcripts.locate import SCREEN_NAME
from swarm_tui.transcripts.window import MemorySource

SCREEN_BYTES = 1 << 20
REMOTE_BYTES = 1 << 26
RECORDS_FOLLOWED = 2_000
REMOTE_CAPTURE = "tmux capture-pane -p -e -t '={session}:agent'"


class AgentAccess:
    """The agents of one sweep."""

    def __init__(self, spec: SweepSpec, folder: SweepFolder) -> None:
        self.spec = spec
        self.folder = folder
        self.kind = kind_of(spec.agent_type)
        self.is_local = spec.provider == "local"
        self.attacher = Attacher(spec.mngr, spec.provider, Path(spec.repository))
        self._environment = mngr_environment(spec.mngr)
        self._mngr = Mngr(spec.mngr.path, self._environment)

    def session_of(self, record: TestRecord) -> str:
        return f"{self.spec.mngr.prefix}{record.agent}"

    async def capture(self, records: Sequence[TestRecord]) -> dict[str, str | None]:
        """Return the screens of these tests' agents as they are now, in one call; None for those without one."""
        sessions = {record.test: self.session_of(record) for record in records}
        if self.is_local:
            screens = await self.attacher.tmux.capture(list(sessions.values()))
            return {test: screens.get(session) for test, session in sessions.items()}
        return {record.test: await self._capture_remote(record) for record in records}

    async def follow_transcript(self, record: TestRecord, source: MemorySource) -> None:
        """Add what the agent on another host writes to `source`, from its last records on, until cancelled."""
        if not is_agent_name(record.agent):
            return
        stream = f"{self.kind.transcript_emitters[0]}/common_transcript"
        words = [self.spec.mngr.path, "event", record.agent, "--source", stream]
        words += ["--tail", str(RECORDS_FOLLOWED), "--follow", "--format", "jsonl"]
        rest = b""

        def add_records(piece: bytes) -> None:
            nonlocal rest
            *lines, rest = (rest + piece).split(b"\n")
            kept = [line for line in lines if line.startswith(b"{") and b'"source":"event_watcher"' not in line]
            if kept and len(source.content) < REMOTE_BYTES:
                source.append(b"\n".join(kept) + b"\n")

        await stream_process(words, environment=self._environment, on_output=add_records)

    def kept_screen(self, record: TestRecord) -> str | None:
        """Return the last screen of an agent as it was kept at its end; None without one."""
        try:
            path = self.folder.agent(record.agent) / SCREEN_NAME
            return path.read_bytes()[-SCREEN_BYTES:].decode("utf-8", "replace")
        except (OSError, ValueError):
            return None

    async def send(self, records: Sequence[TestRecord], text: str) -> dict[str, str]:
        """Type a text into the living ones of these agents; give for each test what went wrong, or ""."""
        why_not = await self._without_a_reader(records)
        living = [record for record in records if not why_not.get(record.test)]
        outcome = {record.test: why_not.get(record.test, "") for record in records}
        if not living:
            return outcome
        try:
            report = await self._mngr.message([record.agent for record in living], text)
        except SwarmError as error:
            return outcome | {record.test: str(error) for record in living}
        errors = {failure.agent: failure.error for failure in (*report.failed, *report.blocked)}
        errors |= dict.fromkeys(report.missing, "mngr does not know it any more")
        return outcome | {record.test: errors.get(record.agent, "") for record in living}

    async def _without_a_reader(self, records: Sequence[TestRecord]) -> Mapping[str, str]:
        """Return the agents that nobody would hear: mngr would start them anew to deliver a message."""
        if not self.is_local:
            listing = await self._mngr.list_agents(provider=self.spec.provider)
            states = {agent.name: agent.state for agent in listing.agents}
        else:
            states = {name: agent.state for name, agent in (await self.attacher.probe()).agents.items()}
        reasons = {}
        for record in records:
            state = states.get(record.agent)
            if state not in ("RUNNING", "WAITING"):
                reasons[record.test] = {
                    None: "mngr knows no such agent any more",
                    "STOPPED": "its agent is stopped",
                    "REPLACED": "another program runs in its terminal",
                }.get(state, "its agent has ended")
        return reasons

    async def _capture_remote(self, record: TestRecord) -> str | None:
        if not is_agent_name(record.agent):
            return None
        command = REMOTE_CAPTURE.format(session=self.session_of(record))
        report = await self._mngr.exec_command([record.agent], command)
        if report.failed:
            raise AdapterError(f"its host did not answer: {plain(report.failed[0].error, 200)}")
        return next((result.stdout for result in report.results if result.is_success), None)
