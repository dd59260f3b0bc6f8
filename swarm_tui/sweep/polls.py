"""Periodic polls of copies and terminals of living agents."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from swarm_tui.adapters.git.copy_view import VIEW_SCRIPT
from swarm_tui.agents.contract import OUTPUT_FOLDER
from swarm_tui.errors import SwarmError
from swarm_tui.hosts.protocol import AgentAddress
from swarm_tui.hosts.registry import Hosts
from swarm_tui.journal.work_events import FileEdit, FilesEdited, parse_edits
from swarm_tui.model.event import INTEGRATOR_KEY
from swarm_tui.sweep.agent_context import AgentWatches
from swarm_tui.sweep.context import SweepContext

PATIENCE: Final = 0.2


class DoubtfulScreens:
    """Reads the terminals of agents whose state is uncertain."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._reading: asyncio.Task[dict[str, str | None]] | None = None

    async def read(self, agents: Sequence[AgentAddress]) -> Mapping[str, str | None]:
        """Return screens by session. Screens that take longer are returned by the next call."""
        if self._reading is None:
            if not agents:
                return {}
            self._reading = asyncio.ensure_future(self._hosts.capture_screens(agents))
        done, _ = await asyncio.wait({self._reading}, timeout=PATIENCE)
        if not done:
            return {}
        reading, self._reading = self._reading, None
        try:
            return reading.result()
        except SwarmError:
            return {}


INTERVAL: Final = 30.0
TIMEOUT: Final = 60.0
# Only headers leave the copy, so the output is small even if the agents write a lot.
SCRIPT: Final = (
    VIEW_SCRIPT
    + r"""
base=$1; output=$2; shift 2
for copy in "$@"; do
  if look_into "$copy"; then
    git diff -U0 --no-color --no-ext-diff --no-textconv --no-renames \
      --src-prefix=a/ --dst-prefix=b/ --ignore-submodules=all "$base" -- . ":(exclude)$output" 2>/dev/null |
      LC_ALL=C grep -a -E '^(diff --git |--- a/|\+\+\+ b/|@@ )' | LC_ALL=C cut -c 1-400 | head -n 2000
    git ls-files --others --exclude-standard -- . \
      ":(exclude)$output" 2>/dev/null | head -n 50 | sed 's/^/?? /'
  fi
  printf '\0'
done
"""
)


@dataclass(slots=True)
class EditWatch:
    """The edited lines in the copies of one sweep's agents."""

    context: SweepContext
    agents: AgentWatches
    _due: float = 0.0
    _task: asyncio.Task[None] | None = None

    def work(self, group: asyncio.TaskGroup, now: float) -> None:
        """Start a poll if it is due and the last one is done."""
        if now < self._due or (self._task is not None and not self._task.done()):
            return
        self._due = now + INTERVAL
        living = {test: watch.address for test, watch in self.agents.watches.items() if test != INTEGRATOR_KEY}
        # A single agent cannot overlap with another.
        if len(living) > 1:
            self._task = group.create_task(self._look(living))

    async def _look(self, living: dict[str, AgentAddress]) -> None:
        by_host: dict[str, list[str]] = {}
        for test, address in living.items():
            by_host.setdefault(address.host, []).append(test)
        answers = await asyncio.gather(*(self._ask([living[test] for test in tests]) for tests in by_host.values()))
        for tests, found in zip(by_host.values(), answers, strict=True):
            for test, edits in zip(tests, found, strict=False):
                record = self.context.state.records.get(test)
                if record is not None and record.edits != edits and not record.is_finished:
                    self.context.record(FilesEdited(test=test, edits=edits))

    async def _ask(self, agents: Sequence[AgentAddress]) -> list[tuple[FileEdit, ...]]:
        """Return the edits of agents on one host; nothing if the host does not answer."""
        copies = [agent.work_dir for agent in agents]
        words = ["sh", "-c", SCRIPT, "edits", self.context.spec.base, OUTPUT_FOLDER, *copies]
        try:
            finished = await self.context.hosts[agents[0].host].run(words, timeout=TIMEOUT)
        except (SwarmError, OSError):
            return []
        parts = finished.stdout.decode("utf-8", "replace").split("\0")
        return [parse_edits(part) for part in parts[: len(agents)]] if len(parts) > len(agents) else []
