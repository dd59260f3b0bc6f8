"""What can be done with one agent from every screen: attach, read its transcript, write to it, work in its pane."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final

from swarm_tui.errors import SwarmError
from swarm_tui.model.asks import OpenAsk, answer_problem
from swarm_tui.model.formatting import counted
from swarm_tui.model.requests import RequestKind
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import State
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.room.actions import Action
from swarm_tui.room.screens.services import ScreenServices
from swarm_tui.room.store import EVERYTHING_CHANGED
from swarm_tui.room.suspend import lend_terminal

if TYPE_CHECKING:
    from swarm_tui.places.attach import Approach, Attacher, Prepared

LAST_LINES: Final = 12


class AgentCommands:
    """The actions on the agent of the current test, and on those of all marked tests."""

    def __init__(self, screen: ScreenServices) -> None:
        self._screen = screen

    def actions(self) -> tuple[Action, ...]:
        return (
            Action("room.attach", ("a",), "attach", "Attach to the agent's terminal; the room waits behind it",
                   self.attach, self.why_not_attach, rank=10, is_of_now=True),
            Action("room.transcript", ("t",), "transcript", "The agent's transcript, following", self.open_transcript,
                   self.why_not_transcript, rank=11),
            Action("room.changes", ("d",), "changes", "What the agent has changed, committed or not",
                   self.open_changes, self.why_not_transcript, rank=12),
            Action("room.message", ("m",), "message", "Write to this agent, or to all marked ones", self.write_message,
                   rank=12),
            Action("room.interact", ("i",), "", "Work in the agent's pane in place; Ctrl+\\ leaves it", self.open_pane,
                   self.why_not_attach, is_of_now=True),
        )  # fmt: skip

    # Reading.

    def why_not_transcript(self) -> str:
        return "" if self._screen.current_record() is not None else f"no {self._screen.store.noun} is under the cursor"

    def open_transcript(self) -> None:
        record = self._screen.current_record()
        if record is not None:
            self._screen.room.show_transcript(record.test)

    def open_changes(self) -> None:
        record = self._screen.current_record()
        if record is not None:
            self._screen.room.show_changes(record.test)

    # Attaching.

    def why_not_attach(self) -> str:
        record = self._screen.current_record()
        if record is None:
            return f"no {self._screen.store.noun} is under the cursor"
        return "" if record.launched_at is not None else f"it has no agent yet: it is {record.state.value}"

    def attach(self) -> None:
        """Attach to the tmux session of the current test's agent; the room waits behind it."""
        record = self._screen.current_record()
        if record is not None:
            self._start_with_terminal(self._attach_to(record), "attaching …")

    def _start_with_terminal(self, work: Coroutine[Any, Any, None], message: str) -> None:
        """Start what needs the terminal or a pane, unless something of that kind is under way."""
        if any(worker.group == "attach" and not worker.is_finished for worker in self._screen.room.workers):
            work.close()
            self._screen.show_message("one moment: another agent's terminal is being opened", "warning")
            return
        self._screen.show_message(message)
        self._screen.room.run_worker(work, group="attach", name=message)

    async def _attach_to(self, record: TestRecord) -> None:
        try:
            attacher = self._screen.room.agents.attacher(record)
            approach = await attacher.examine(record.agent)
            is_started = False
            if not approach.is_there:
                if not await self._confirm_start(record):
                    self._screen.show_message("nothing was started")
                    return
                is_started = True
                self._screen.show_message(f"starting {record.agent} …")
            prepared = await attacher.prepare(approach, is_started=is_started)
            try:
                problem = self._connect(attacher, prepared, record)
            finally:
                await attacher.clean_up(prepared)
            self._screen.apply_change(EVERYTHING_CHANGED)
            after = _agent_condition(await attacher.examine(record.agent))
        except SwarmError as error:
            self._screen.store.note("error", f"attaching to {record.agent}: {error}", record.test)
            self._screen.show_message(str(error), "error")
            return
        if problem:
            self._screen.store.note("error", f"attaching to {record.agent}: {problem}", record.test)
        self._screen.show_message(problem or f"back from {record.agent}: {after}", "error" if problem else "info")

    async def _confirm_start(self, record: TestRecord) -> bool:
        from swarm_tui.room.screens.dialog import ConfirmScreen

        screen = plain_lines(self._screen.room.agents.kept_screen(record) or "").rstrip()
        details = ["its command runs again, from the beginning"]
        if record.is_finished:
            details.append("the harvested result stays as it is")
        if screen:
            details += ["", "its last screen:", *screen.split("\n")[-LAST_LINES:]]
        question = ConfirmScreen(f"{record.agent} is stopped. Start it?", details)
        return await self._screen.room.push_screen(question, wait_for_dismiss=True)

    def _connect(self, attacher: Attacher, prepared: Prepared, record: TestRecord) -> str:
        """Hand the terminal to mngr until the person detaches; return what went wrong, or ""."""

        def connect() -> str:
            _print_way_back(prepared, record)
            code = attacher.run(prepared)
            if not code:
                return ""
            problem = f"attaching ended with code {code}"
            _wait_for_enter(f"{problem}. Enter leads back to the room. ")
            return problem

        return lend_terminal(self._screen.room, connect)

    # Writing.

    def why_nobody_hears(self) -> str:
        if not self._screen.current_tests():
            return f"no {self._screen.store.noun} is marked or under the cursor"
        if self._receivers():
            return ""
        record = self._screen.current_record()
        if len(self._screen.current_tests()) == 1 and record is not None and record.needs_terminal:
            return "a dialog stands in its terminal: a attaches, and there it is answered"
        tests, store = self._screen.current_tests(), self._screen.store
        marked = len(self._screen.room.marks.tests & set(tests))
        is_one = not marked and len(tests) == 1
        all_of = f"none of the {marked} marked {store.noun}s" if marked else "none of them"
        who = f"this {store.noun}" if is_one else all_of
        if store.is_watch:
            return f"{who} {'does not run' if is_one else 'runs'} any more"
        return f"{who} has {'no' if is_one else 'an'} agent that is at work or waits"

    def _receivers(self) -> list[TestRecord]:
        records = self._screen.store.records_of(self._screen.current_tests())
        living = [record for record in records if record.state in (State.RUNNING, State.WAITING)]
        # Typed text would answer a dialog, and words for many are no answer to what each of them asks.
        return [record for record in living if not record.needs_terminal and (len(records) == 1 or not record.asks)]

    def write_message(self) -> None:
        """Write to the agents; to one that asks something through its hook, the answer to that very ask."""
        from swarm_tui.room.screens.message import MessageScreen

        receivers, only_now = self._receivers(), self._screen.store.why_only_now()
        if (
            not only_now
            and len(receivers) == 1
            and (open_asks := [asked for asked in receivers[0].asks if asked.answered_at is None])
        ):
            self._write_answer(receivers[0], open_asks[0])
            return
        left_out = len(self._screen.current_tests()) - len(receivers) if receivers else 0

        def send(text: str | None) -> None:
            if text:
                self._send_message([record.test for record in receivers], text)
            else:
                self._screen.show_message("nothing was sent")

        drafts, why_nobody = self._screen.room.drafts, only_now or self.why_nobody_hears()
        self._screen.room.push_screen(MessageScreen(receivers, drafts, left_out, why_nobody=why_nobody), send)

    def _write_answer(self, record: TestRecord, asked: OpenAsk) -> None:
        from swarm_tui.room.screens.message import MessageScreen

        def send(text: str | None) -> None:
            store, drafts = self._screen.store, self._screen.room.drafts
            problem = (store.why_no_requests() or answer_problem(asked.ask, text)) if text else "nothing was answered"
            if text and problem:
                drafts[record.test] = text
            if problem or text is None:
                self._screen.show_message(problem, "warning")
                return
            store.send_request(RequestKind.ANSWER, text=text, items=[asked.item])
            self._screen.show_message("1 answer: on its way")

        shown = record._replace(question=asked.ask.text, options=asked.ask.options)
        self._screen.room.push_screen(MessageScreen([shown], self._screen.room.drafts), send)

    def _send_message(self, tests: Sequence[str], text: str) -> None:
        if not self._screen.store.why_no_requests():
            try:
                self._screen.store.send_request(RequestKind.MESSAGE, tests=tests, text=text)
            except SwarmError as error:
                self._screen.store.note("error", f"the message could not be handed over: {error}")
                self._screen.show_message(str(error), "error")
                return
            self._screen.show_message(f"message to {counted(len(tests), 'agent')}: on its way")
            return
        self._screen.show_message(f"sending to {counted(len(tests), 'agent')} …")
        self._screen.room.run_worker(self._send_directly(tests, text), group="message")

    async def _send_directly(self, tests: Sequence[str], text: str) -> None:
        """Send without an engine, one message after the other."""
        async with self._screen.room.sending:
            records = self._screen.store.records_of(tests)
            try:
                outcome = await self._screen.room.agents.send(records, text)
            except SwarmError as error:
                outcome = {record.test: str(error) for record in records}
        for test, problem in outcome.items():
            level, what = ("error", f"message not sent: {problem}") if problem else ("info", "message sent")
            self._screen.store.note(level, what, test)
        problems = [problem for problem in outcome.values() if problem]
        if not problems:
            self._screen.show_message(f"sent to {counted(len(outcome), 'agent')}", "good")
        else:
            sent = f"sent to {len(outcome) - len(problems)} of {len(outcome)}" if len(outcome) > 1 else "not sent"
            self._screen.show_message(f"{sent}: {problems[0]} (6 tells more)", "error")

    # Working in the pane.

    def open_pane(self) -> None:
        record = self._screen.current_record()
        if record is not None:
            self._start_with_terminal(self._show_pane(record), "opening its pane …")

    async def _show_pane(self, record: TestRecord) -> None:
        from swarm_tui.room.screens.agent_pane import PaneScreen

        try:
            attacher = self._screen.room.agents.attacher(record)
            approach = await attacher.examine(record.agent)
            if not approach.is_there:
                self._screen.show_message(f"{record.agent} is stopped: `a` starts it and attaches", "warning")
                return
            prepared = await attacher.prepare(approach)
        except SwarmError as error:
            self._screen.store.note("error", f"the pane of {record.agent}: {error}", record.test)
            self._screen.show_message(str(error), "error")
            return
        try:
            message = await self._screen.room.push_screen(PaneScreen(attacher, prepared, record), wait_for_dismiss=True)
        finally:
            await attacher.clean_up(prepared)
        self._screen.apply_change(EVERYTHING_CHANGED)
        self._screen.show_message(message or f"back from {record.agent}")


def _agent_condition(approach: Approach) -> str:
    if not approach.is_there:
        return "it is stopped"
    return "its program has ended" if approach.is_ended else "it works on"


def _print_way_back(prepared: Prepared, record: TestRecord) -> None:
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
