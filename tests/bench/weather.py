"""Sweeps by the real Claude Code, or by small programs, under a model with a limit or a login that dies.

    python -m tests.bench.weather limit --tests 40 --slots 24 --at-once 8
    python -m tests.bench.weather limit --agent command
    python -m tests.bench.weather login --tests 20 --slots 4 --dies-at 10

Prints how the dial was turned, and what became of the tests. A person is needed once, in the second.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from swarm_tui.adapters.provision import find_mngr
from swarm_tui.journal.events import Harvested, MessageSent, Queued
from swarm_tui.journal.recover import recover_journal
from swarm_tui.limits.events import DialTurned, LoginLost, LoginRestored, time_of_day
from swarm_tui.model.event import Event
from tests.bench import asking_agent
from tests.claude.installed import claude_folder
from tests.claude.lab import ClaudeLab, claude_lab
from tests.claude.scripted_model import Refusal, Request, ScriptedModel, Turn
from tests.isolation import isolate_mngr
from tests.waiting import until

PATIENCE = 3_600.0
# Of a small program, each answered after so many seconds: one that works for a minute and a half.
REQUESTS, SECONDS = 9, 10.0


def bear_only(model: ScriptedModel, at_once: int) -> None:
    """Have a model refuse what goes beyond so many requests at once."""

    def guard(request: Request) -> Refusal | None:
        return Refusal(429, "Too many requests at once") if model.in_flight > at_once else None

    model.guard = guard


class DyingLogin:
    """Refuses every request from the one of the n-th agent on, until it is mended."""

    def __init__(self, dies_at: int) -> None:
        self._dies_at = dies_at
        self._agents: set[str] = set()
        self._lock = threading.Lock()
        self.is_dead = False
        self.is_mended = False
        self.refused = 0

    def guard(self, request: Request) -> Refusal | None:
        with self._lock:
            # A small program begins with its number, Claude Code with its own prompt.
            self._agents.add(request.user_texts[0].partition(":")[0] if request.user_texts else "")
            self.is_dead = self.is_dead or len(self._agents) >= self._dies_at
            if not self.is_dead or self.is_mended:
                return None
            self.refused += 1
        return Refusal(403, "OAuth token has been revoked")


def try_limit(lab: ClaudeLab, arguments: argparse.Namespace) -> None:
    bear_only(lab.model, arguments.at_once)
    process = lab.program.start(*_words(lab, arguments))
    process.wait(timeout=PATIENCE)


def try_login(lab: ClaudeLab, arguments: argparse.Namespace) -> None:
    login = DyingLogin(arguments.dies_at)
    lab.model.guard = login.guard
    process = lab.program.start(*_words(lab, arguments))
    until(lambda: login.is_dead, "the end of the login", seconds=PATIENCE)
    until(lambda: lab.program.opened().state.access.lost, "the notice", seconds=60.0)
    died = time.monotonic()
    # The others meet it too.
    time.sleep(arguments.mended_after)
    state = lab.program.opened().state
    print(f"after {time.monotonic() - died:.0f} s: {dict(+state.counts)}, {login.refused} requests were refused")
    login.is_mended = True
    done = lab.program.call("request", "release")
    print(f"one request: {done.stdout.strip() or done.stderr.strip()}")
    process.wait(timeout=PATIENCE)


def _words(lab: ClaudeLab, arguments: argparse.Namespace) -> list[str]:
    words = ["run", "--headless", "--slots", str(arguments.slots), "--integrator", "none", "--ignore-load"]
    if arguments.agent == "claude":
        return [*words, "--agent", "claude"]
    command = (sys.executable, asking_agent.__file__, lab.model.url, str(REQUESTS))
    return [*words, "--agent", "command", *(f"--agent-argument={word}" for word in command)]


def print_story(events: list[Event]) -> None:
    """Print what was told of the model, and the ends of the tests."""
    start = events[0].at
    for event in events:
        match event:
            case DialTurned():
                slots = "as many as asked for" if event.slots is None else event.slots
                until_when = f" until {time_of_day(event.until, event.at)}" if event.until else ""
                print(f"{event.at - start:7.1f} s  dial {slots}  ({event.cause}{until_when})")
            case LoginLost():
                print(f"{event.at - start:7.1f} s  login lost: {event.reason[:70]}")
            case LoginRestored():
                print(f"{event.at - start:7.1f} s  released")
    dials = [event for event in events if isinstance(event, DialTurned)]
    results = Counter(event.result.value for event in events if isinstance(event, Harvested))
    told = sum(isinstance(event, MessageSent) for event in events)
    again = sum(isinstance(event, Queued) and bool(event.reason) for event in events)
    lost = sum(isinstance(event, LoginLost) for event in events)
    print(f"{events[-1].at - start:7.1f} s  the end: {dict(results)}")
    print(f"dial turned {len(dials)} times, halved {sum(event.is_halved for event in dials)} times")
    print(f"notices of a lost login: {lost}; told to go on: {told}; launched again: {again}")


def main() -> None:
    """Run one sweep and print its story."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["limit", "login"])
    parser.add_argument("--tests", type=int, default=40)
    parser.add_argument("--slots", type=int, default=24)
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--dies-at", type=int, default=10)
    parser.add_argument("--mended-after", type=float, default=60.0)
    parser.add_argument("--play", default="slow")
    parser.add_argument("--agent", choices=["claude", "command"], default="claude")
    arguments = parser.parse_args()
    claude = claude_folder()
    if claude is None:
        parser.exit(1, "Claude Code cannot be installed here\n")
    tests = [f"vat_{number}_{arguments.play}" for number in range(arguments.tests)]
    path = asyncio.run(find_mngr()).path
    with isolate_mngr(path) as mngr, claude_lab(mngr, claude, Path(mngr.root) / "shop", tests) as lab:
        if arguments.agent == "command":
            lab.model.play = lambda request: [Turn("Yes.", seconds=SECONDS)]
        (try_limit if arguments.what == "limit" else try_login)(lab, arguments)
        events = recover_journal(lab.program.newest().events).events
    print(f"{arguments.tests} tests, {arguments.slots} slots, load {os.getloadavg()[0]:.1f}")
    print_story(list(events))


if __name__ == "__main__":
    main()
