"""The process that plays a simulated sweep into a folder: `python -m swarm_tui.simulate.feeder FOLDER ...`."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import platform
import random
import sys
import time
from pathlib import Path
from typing import Any

from swarm_tui.files import replacing
from swarm_tui.model.spec import FORMAT_VERSION
from swarm_tui.simulate.play import SimulatedSweep, TimedEvent
from swarm_tui.simulate.script import make_tests

TICK = 0.02
REQUESTS_EVERY = 0.1


def main(arguments: list[str]) -> int:
    """Play one sweep and return the exit code."""
    parser = argparse.ArgumentParser(prog="swarm_tui.simulate.feeder", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tests", type=int, default=120)
    parser.add_argument("--rate", type=float, default=20.0)
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--slots", type=int, default=24)
    parser.add_argument("--budget", type=float, default=None)
    parser.add_argument("--hosts", type=int, default=0)
    parser.add_argument("--ahead", type=float, default=0.0)
    parser.add_argument("--at", type=float, default=None)
    Feeder(parser.parse_args(arguments)).run()
    return 0


class Feeder:
    """Writes the journal of a simulated sweep and answers the requests to its engine."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.folder: Path = arguments.folder
        tests = make_tests(arguments.tests, random.Random(arguments.seed))
        self.play = SimulatedSweep(
            self.folder.name, tests, arguments.slots, arguments.seed, arguments.budget, arguments.hosts
        )
        self.parent = os.getppid()
        self.seq = 0
        self.requests_read = 0
        self.folder.mkdir(parents=True, exist_ok=True)
        self.lock = os.open(self.folder / "engine.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(self.lock, 0)
        os.pwrite(self.lock, f"{os.getpid()}\n".encode(), 0)

    def run(self) -> None:
        """Write the past events, then further events at the configured rate."""
        history = self._history()
        end = time.time() if self.arguments.at is None else self.arguments.at
        begin = end - (history[-1].at if history else 0.0)
        with open(self.folder / "events.jsonl", "w", encoding="utf-8") as journal:
            opening = self.play.opening(os.getpid(), platform.node())
            journal.writelines(self._line(event, begin) for event in opening)
            journal.writelines(self._line(event.fields, begin + event.at) for event in history)
            journal.flush()
            self._write_spec(begin)
            self._run_live(journal)
        os.close(self.lock)

    def _history(self) -> list[TimedEvent]:
        target = self.arguments.ahead * self.arguments.tests
        history = []
        while self.play.done < target and (event := self.play.next_event()) is not None:
            history.append(event)
        return history

    def _run_live(self, journal: Any) -> None:
        start = time.monotonic()
        seconds = self.arguments.seconds
        emitted, next_requests = 0, start
        while seconds is None or time.monotonic() - start < seconds:
            now = time.monotonic()
            lines = []
            if now >= next_requests:
                next_requests = now + REQUESTS_EVERY
                events = [*self._answers(), *self.play.rule_answers()]
                lines += [self._line(event, time.time()) for event in events]
            due = int((now - start) * self.arguments.rate) - emitted
            emitted += due
            for _ in range(due):
                event = self.play.next_event()
                if event is None:
                    break
                lines.append(self._line(event.fields, time.time()))
            if lines:
                journal.write("".join(lines))
                journal.flush()
            # The parent may have exited without stopping this process, such as when its terminal was closed.
            if self.play.is_over or os.getppid() != self.parent:
                break
            time.sleep(TICK)
        if self.play.is_over:
            journal.writelines(self._line(event, time.time()) for event in self._ending())
        elif seconds:
            # After `--seconds` the engine reports that it stopped. With 0 seconds only the history is written.
            journal.write(self._line({"type": "engine_ended", "why": "stopped"}, time.time()))

    def _line(self, event: dict[str, Any], at: float) -> str:
        self.seq += 1
        return json.dumps({"seq": self.seq, "at": round(at, 3), **event}, ensure_ascii=False) + "\n"

    def _ending(self) -> list[dict[str, Any]]:
        return [
            {"type": "integration_started", "by": "builtin", "branches": len(self.play.tests) // 3},
            {
                "type": "integrated",
                "branch": f"swarm/{self.play.sweep}/integrated",
                "tip": f"{self.arguments.seed:040x}",
                "fixes": max(1, len(self.play.tests) // 12),
            },
            {"type": "engine_ended", "why": "finished"},
        ]

    def _answers(self) -> list[dict[str, Any]]:
        try:
            with open(self.folder / "requests.jsonl", "rb") as file:
                file.seek(self.requests_read)
                block = file.read()
        except FileNotFoundError:
            return []
        whole = block[: block.rfind(b"\n") + 1]
        self.requests_read += len(whole)
        events: list[dict[str, Any]] = []
        for line in whole.splitlines():
            try:
                request = json.loads(line)
                events += self.play.answer_request(request)
            except (ValueError, KeyError, TypeError):
                continue
        return events

    def _write_spec(self, created_at: float) -> None:
        spec = {
            "version": FORMAT_VERSION,
            "sweep": self.folder.name,
            "repository": os.getcwd(),
            "base": f"{random.Random(self.arguments.seed).getrandbits(160):040x}",
            "base_name": "main",
            "created_at": created_at,
            "title": "simulated",
            "agent_type": "simulated",
            "slots": self.arguments.slots,
            "verifies": True,
            "mngr": {"path": "mngr"},
        }
        if self.play.hosts is not None:
            hosts = self.play.hosts
            spec |= {"hosts": hosts.names, "per_host": hosts.per_host, "access": hosts.access()}
        with replacing(self.folder / "sweep.json", is_synced=False) as draft:
            draft.write(json.dumps(spec, indent=2).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
