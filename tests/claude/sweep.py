"""A sweep of the program in a lab of Claude Code, followed and answered by a test."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from swarm_tui.journal.events import AgentStateChanged
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import SweepState
from tests.claude.lab import ClaudeLab
from tests.sweep.sweeping import Program
from tests.waiting import until

LONGEST: Final = 1000.0
"""Time limit in seconds for steps of a sweep that take a minute on an idle machine."""


class AgentSweep:
    """A sweep that runs in the background."""

    def __init__(self, program: Program, agent: str, *words: str) -> None:
        self.program = program
        # On a busy machine, the throttle would run fewer agents than a test needs.
        self.process = program.start("run", "--headless", "--agent", agent, "--ignore-load", *words)

    def state(self) -> SweepState:
        return self.program.opened().state

    def record(self, name: str) -> TestRecord:
        return next(record for record in self.state().tests() if record.test.endswith(f"::test_{name}"))

    def wait_for(self, name: str, condition: Callable[[TestRecord], object]) -> TestRecord:
        def has_come() -> TestRecord | None:
            try:
                record = self.record(name)
            except (IndexError, StopIteration):
                return None
            return record if condition(record) else None

        found = until(has_come, f"test_{name}", seconds=LONGEST, describe=self.story)
        assert found is not None
        return found

    def wait_until_seen(self, name: str, condition: str) -> AgentStateChanged:
        """Wait until the journal has an observation of a test's agent with this condition, even if it is over now."""

        def seen() -> AgentStateChanged | None:
            try:
                events = self.program.newest_events()
            except IndexError:
                return None
            found = (
                event
                for event in events
                if isinstance(event, AgentStateChanged) and event.test.endswith(f"::test_{name}")
            )
            return next((event for event in found if event.status_detail.startswith(condition)), None)

        found = until(seen, f"test_{name} to be seen with {condition!r}", seconds=LONGEST, describe=self.story)
        assert found is not None
        return found

    def answer(self, name: str, text: str) -> None:
        """Answer the current question of a test's agent."""
        listed = json.loads(self.program.call("pending", "--json").stdout)
        items = [item for group in listed["groups"] for item in group["items"]]
        (item,) = [item["id"] for item in items if item["test"].endswith(f"::test_{name}")]
        done = self.program.call("answer", item, text)
        assert done.returncode == 0, done.stderr

    def end(self) -> int:
        return self.process.wait(timeout=LONGEST)

    def close(self) -> None:
        """Stop everything that a failed test has left running."""
        if self.process.poll() is None:
            self.program.call("stop")
            self.process.wait(timeout=LONGEST)

    def story(self) -> str:
        try:
            return json.dumps(json.loads(self.program.call("status", "--json").stdout), indent=1)
        except ValueError:
            return "no sweep yet"


class Sweep(AgentSweep):
    """A sweep of Claude agents in their lab."""

    def __init__(self, lab: ClaudeLab, *words: str) -> None:
        super().__init__(lab.program, "claude", *words)
        self.lab = lab
