"""What can be done with one agent from every screen: attach, read its transcript, write to it, work in its pane."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from swarm_tui.errors import SwarmError
from swarm_tui.model.formatting import counted
from swarm_tui.model.requests import RequestKind
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import State
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.room.suspend import step_aside

if TYPE_CHECKING:
    from swarm_tui.adapters.attach import Approach, Attacher, Prepared
    from swarm_tui.room.app import RoomApp
    from swarm_tui.room.store import Changes, Store

LAST_LINES = 12


class AgentActions:
    """Mixed into every screen of the room; acts on the test under its cursor, messages on all marked ones."""

    NAME: ClassVar[str]

    if TYPE_CHECKING:

        @property
        def room(self) -> RoomApp: ...

        @property
        def store(self) -> Store: ...

        def current_tests(self) -> tuple[str, ...]: ...

        def say(self, text: str, level: str = "info") -> None: ...

        def take_in(self, changes: Changes) -> None: ...

    def _agent_record(self) -> TestRecord | None:
        """Return the test that is meant when only one can be."""
        tests = self.current_tests()
        here = self.room.current_test if self.NAME in ("sweep", "agent") else None
        return self.store.record(here or (tests[0] if tests else None))

    def _why_no_agent(self) -> str:
        record = self._agent_record()
        if record is None:
            return "no test is under the cursor"
        return "" if record.launched_at is not None else f"it has no agent yet: it is {record.state.value}"

    # Reading.

    def why_not_transcript(self) -> str:
        return "" if self._agent_record() is not None else "no test is under the cursor"

    def do_transcript(self) -> None:
        self._open_agent("transcript")

    def _open_agent(self, tab: str) -> None:
        from swarm_tui.room.screens.agent import AgentScreen

        record = self._agent_record()
        if record is None:
            return
        self.room.current_test = record.test
        self.room.open_screen("agent")
        screen = self.room.get_screen("agent")
        assert isinstance(screen, AgentScreen)
        screen.show_tab(tab)
        screen.transcript.follow()

    # Attaching.

    def why_not_attach(self) -> str:
        return self._why_no_agent()

    def do_attach(self) -> None:
        record = self._agent_record()
        if record is not None:
            self._take_terminal(self._go_attached(record), "attaching …")

    def _take_terminal(self, work: Coroutine[Any, Any, None], said: str) -> None:
        """Begin what takes the terminal or a pane, unless something of that kind is under way."""
        if any(worker.group == "attach" and not worker.is_finished for worker in self.room.workers):
            work.close()
            self.say("one moment: another agent's terminal is being opened", "warning")
            return
        self.say(said)
        self.room.run_worker(work, group="attach", name=said)

    async def _go_attached(self, record: TestRecord) -> None:
        attacher = self.room.agents.attacher
        try:
            approach = await attacher.look(record.agent)
            is_started = False
            if not approach.is_there:
                if not await self._agrees_to_start(record):
                    self.say("nothing was started")
                    return
                is_started = True
                self.say(f"starting {record.agent} …")
            prepared = await attacher.prepare(approach, is_started=is_started)
            try:
                problem = self._step_aside(attacher, prepared, record)
            finally:
                await attacher.clean_up(prepared)
            self.take_in(_everything())
            after = "" if not approach.is_local else f" {_standing(await attacher.look(record.agent))}"
        except SwarmError as error:
            self.store.note("error", f"attaching to {record.agent}: {error}", record.test)
            self.say(str(error), "error")
            return
        if problem:
            self.store.note("error", f"attaching to {record.agent}: {problem}", record.test)
        self.say(
            problem or f"back from {record.agent}:{after or ' it was left as it was'}", "error" if problem else "info"
        )

    async def _agrees_to_start(self, record: TestRecord) -> bool:
        from swarm_tui.room.screens.dialog import ConfirmScreen

        screen = plain_lines(self.room.agents.kept_screen(record) or "").rstrip()
        details = ["its command runs again, from the beginning"]
        if record.is_finished:
            details.append("the harvested result stays as it is")
        if screen:
            details += ["", "its last screen:", *screen.split("\n")[-LAST_LINES:]]
        question = ConfirmScreen(f"{record.agent} is stopped. Start it?", details)
        return await self.room.push_screen(question, wait_for_dismiss=True)

    def _step_aside(self, attacher: Attacher, prepared: Prepared, record: TestRecord) -> str:
        """Hand the terminal to mngr until the person detaches; return what went wrong, or ""."""

        def hand_over() -> str:
            _say_way_back(prepared, record)
            code = attacher.run(prepared)
            if not code:
                return ""
            problem = f"`mngr connect` ended with code {code}"
            if not prepared.approach.is_local:
                problem += f"; if it is stopped, `swarm-tui attach {record.agent} --start` starts it"
            _wait_for_enter(f"{problem}. Enter leads back to the room. ")
            return problem

        return step_aside(self.room, hand_over)

    # Writing.

    def why_not_message(self) -> str:
        if not self.current_tests():
            return "no test is marked or under the cursor"
        if self._hearers():
            return ""
        marked = len(self.room.marks.tests & set(self.current_tests()))
        who = (
            f"none of the {marked} marked tests"
            if marked
            else "this test"
            if len(self.current_tests()) == 1
            else "none of them"
        )
        return f"{who} has {'no ' if who == 'this test' else 'an '}agent that is at work or waits"

    def _hearers(self) -> list[TestRecord]:
        records = [record for test in self.current_tests() if (record := self.store.record(test)) is not None]
        return [record for record in records if record.state in (State.RUNNING, State.WAITING)]

    def do_message(self) -> None:
        from swarm_tui.room.screens.message import MessageScreen

        hearers = self._hearers()
        left_out = len(self.current_tests()) - len(hearers)

        def written(text: str | None) -> None:
            if text:
                self._send([record.test for record in hearers], text)
            else:
                self.say("nothing was sent")

        self.room.push_screen(MessageScreen(hearers, left_out), written)

    def _send(self, tests: Sequence[str], text: str) -> None:
        if not self.store.why_not_ask():
            try:
                self.store.ask(RequestKind.MESSAGE, tests, text=text)
            except SwarmError as error:
                self.store.note("error", f"the message could not be handed over: {error}")
                self.say(str(error), "error")
                return
            self.say(f"message to {counted(len(tests), 'agent')}: handed to the engine")
            return
        self.say(f"sending to {counted(len(tests), 'agent')} …")
        self.room.run_worker(self._send_directly(tests, text), group="message")

    async def _send_directly(self, tests: Sequence[str], text: str) -> None:
        """Send without an engine, one message after the other."""
        async with self.room.sending:
            records = [record for test in tests if (record := self.store.record(test)) is not None]
            try:
                outcome = await self.room.agents.send(records, text)
            except SwarmError as error:
                outcome = {record.test: str(error) for record in records}
        for test, problem in outcome.items():
            level, what = ("error", f"message not sent: {problem}") if problem else ("info", "message sent")
            self.store.note(level, what, test)
        problems = [problem for problem in outcome.values() if problem]
        if not problems:
            self.say(f"sent to {counted(len(outcome), 'agent')}", "good")
        else:
            sent = f"sent to {len(outcome) - len(problems)} of {len(outcome)}" if len(outcome) > 1 else "not sent"
            self.say(f"{sent}: {problems[0]} (6 tells more)", "error")

    # Working in the pane.

    def why_not_interact(self) -> str:
        return self._why_no_agent()

    def do_interact(self) -> None:
        record = self._agent_record()
        if record is not None:
            self._take_terminal(self._interact(record), "opening its pane …")

    async def _interact(self, record: TestRecord) -> None:
        from swarm_tui.room.screens.agent_pane import PaneScreen

        attacher = self.room.agents.attacher
        try:
            approach = await attacher.look(record.agent)
            if not approach.is_local:
                self.say("its pane can be worked in here only on this machine: `a` attaches to it", "warning")
                return
            if not approach.is_there:
                self.say(f"{record.agent} is stopped: `a` starts it and attaches", "warning")
                return
            prepared = await attacher.prepare(approach)
        except SwarmError as error:
            self.store.note("error", f"the pane of {record.agent}: {error}", record.test)
            self.say(str(error), "error")
            return
        try:
            said = await self.room.push_screen(PaneScreen(attacher, prepared, record), wait_for_dismiss=True)
        finally:
            await attacher.clean_up(prepared)
        self.take_in(_everything())
        self.say(said or f"back from {record.agent}")


def _everything() -> Changes:
    from swarm_tui.room.screens.base import RESET

    return RESET


def _standing(approach: Approach) -> str:
    if not approach.is_there:
        return "it is stopped"
    return "its program has ended" if approach.is_ended else "it works on"


def _say_way_back(prepared: Prepared, record: TestRecord) -> None:
    approach = prepared.approach
    lines = [f"attaching to {approach.agent} ({plain(record.test, 200)})"]
    lines.append(f"  {approach.way_back}  brings you back to the room, which waits here")
    if approach.outer is not None:
        where = "on the agent's own server" if approach.outer.is_same_server else "on another server than the agent"
        lines.append(f"  the room runs inside tmux itself, {where}")
    if approach.is_ended:
        lines.append("  its program has ended; this is what it left")
    if prepared.warning:
        lines.append(f"  {prepared.warning}")
    print("\n".join(lines), flush=True)


def _wait_for_enter(prompt: str) -> None:
    with contextlib.suppress(EOFError, KeyboardInterrupt, OSError):
        print(prompt, end="", flush=True)
        sys.stdin.readline()
