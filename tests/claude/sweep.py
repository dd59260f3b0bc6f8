"""A sweep of the program in a lab of Claude Code, followed and answered by a test."""

from __future__ import annotations

import json
from collections.abc import Callable

from swarm_tui.journal.fold import SweepState
from swarm_tui.model.state import TestRecord
from tests.claude.lab import ClaudeLab
from tests.waiting import until


class Sweep:
    """A sweep that runs in the background."""

    def __init__(self, lab: ClaudeLab, *words: str) -> None:
        self.lab = lab
        # A machine with much to do would have fewer agents at work than a test needs.
        self.process = lab.program.start("run", "--headless", "--agent", "claude", "--ignore-load", *words)

    def state(self) -> SweepState:
        return self.lab.program.opened().state

    def record(self, name: str) -> TestRecord:
        return next(record for record in self.state().tests() if record.test.endswith(f"::test_{name}"))

    def wait_for(self, name: str, condition: Callable[[TestRecord], object]) -> TestRecord:
        def has_come() -> TestRecord | None:
            try:
                record = self.record(name)
            except (IndexError, StopIteration):
                return None
            return record if condition(record) else None

        found = until(has_come, f"test_{name}", seconds=400.0, describe=self.story)
        assert found is not None
        return found

    def answer(self, name: str, text: str) -> None:
        """Answer what the agent of a test asks now."""
        listed = json.loads(self.lab.program.call("pending", "--json").stdout)
        items = [item for group in listed["groups"] for item in group["items"]]
        (item,) = [item["id"] for item in items if item["test"].endswith(f"::test_{name}")]
        done = self.lab.program.call("answer", item, text)
        assert done.returncode == 0, done.stderr

    def end(self) -> int:
        return self.process.wait(timeout=500)

    def close(self) -> None:
        """Stop what a test that failed has left."""
        if self.process.poll() is None:
            self.lab.program.call("stop")
            self.process.wait(timeout=500)

    def story(self) -> str:
        try:
            return json.dumps(json.loads(self.lab.program.call("status", "--json").stdout), indent=1)
        except ValueError:
            return "no sweep yet"
