"""Actions on one agent from every screen: attach, open its transcript, send a message, work in its pane."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final

from swarm_tui.errors import SwarmError
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.requests import RequestKind
from swarm_tui.model.formatting import counted
from swarm_tui.model.results import State
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.room.actions import action
from swarm_tui.room.dialog import ConfirmScreen
from swarm_tui.room.external import lend_terminal
from swarm_tui.room.inbox.session import deliver_answer
from swarm_tui.room.store import EVERYTHING_CHANGED

if TYPE_CHECKING:
    from swarm_tui.hosts.attach import Attacher, AttachPlan, PreparedAttach
    from swarm_tui.room.screen import RoomScreen

LAST_LINES: Final = 12


def why_no_record(screen: RoomScreen) -> str:
    return "" if screen.current_record() is not None else f"no {screen.store.noun} under the cursor"


@action("t", "room.transcript", "transcript", "Open the end of the agent's transcript", why_no_record, rank=11)
def open_transcript(screen: RoomScreen) -> None:
    record = screen.current_record()
    if record is not None:
        screen.room.show_transcript(record.test)


@action("d", "room.changes", "changes", "Show the agent's changes, committed or not", why_no_record, rank=12)
def open_changes(screen: RoomScreen) -> None:
    record = screen.current_record()
    if record is not None:
        screen.room.show_changes(record.test)


def why_not_attach(screen: RoomScreen) -> str:
    record = screen.current_record()
    if record is None:
        return f"no {screen.store.noun} under the cursor"
    return "" if record.launched_at is not None else f"no agent yet: the test is {record.state.value}"


@action("a", "room.attach", "attach", "Attach to the agent's terminal; detach to come back", why_not_attach,
        rank=10, is_of_now=True)  # fmt: skip
def attach(screen: RoomScreen) -> None:
    """Attach to the tmux session of the current test's agent. The room continues when the user detaches."""
    record = screen.current_record()
    if record is not None:
        _start_with_terminal(screen, _attach_to(screen, record), "attaching …")


def _start_with_terminal(screen: RoomScreen, work: Coroutine[Any, Any, None], message: str) -> None:
    """Start a task that needs the terminal or a pane, unless such a task is running."""
    if any(worker.group == "attach" and not worker.is_finished for worker in screen.room.workers):
        work.close()
        screen.show_message("another agent's terminal is being opened", "warning")
        return
    screen.show_message(message)
    screen.room.key_queue.hold()
    screen.room.run_worker(_with_keys_held(screen, work), group="attach", name=message)


async def _with_keys_held(screen: RoomScreen, work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    finally:
        screen.room.key_queue.drop_held()


async def _attach_to(screen: RoomScreen, record: TestRecord) -> None:
    try:
        attacher = screen.room.agents.attacher(record)
        approach = await attacher.examine(record.agent)
        is_started = False
        if not approach.is_there:
            if not await _confirm_start(screen, record):
                screen.show_message("nothing was started")
                return
            is_started = True
            screen.show_message(f"starting {record.agent} …")
        prepared = await attacher.prepare(approach, is_started=is_started)
        try:
            problem = _connect(screen, attacher, prepared, record)
        finally:
            screen.room.key_queue.drop_held()
            await attacher.clean_up(prepared)
        screen.apply_change(EVERYTHING_CHANGED)
        after = _agent_condition(await attacher.examine(record.agent))
    except SwarmError as error:
        screen.store.note("error", f"attaching to {record.agent}: {error}", record.test)
        screen.show_message(str(error), "error")
        return
    if problem:
        screen.store.note("error", f"attaching to {record.agent}: {problem}", record.test)
    screen.show_message(problem or f"back from {record.agent}: {after}", "error" if problem else "info")


async def _confirm_start(screen: RoomScreen, record: TestRecord) -> bool:
    last_screen = plain_lines(screen.room.agents.kept_screen(record) or "").rstrip()
    details = ["its command runs again, from the beginning"]
    if record.is_finished:
        details.append("its pulled result does not change")
    if last_screen:
        details += ["", "its last screen:", *last_screen.split("\n")[-LAST_LINES:]]
    question = ConfirmScreen(f"{record.agent} is stopped. Start it?", details)
    # Text typed before the question was shown is not an answer to it.
    screen.room.key_queue.drop()
    return await screen.room.push_screen(question, wait_for_dismiss=True)


def _connect(screen: RoomScreen, attacher: Attacher, prepared: PreparedAttach, record: TestRecord) -> str:
    """Run mngr in the terminal until the user detaches. Return the error, or ""."""

    def connect() -> str:
        _print_way_back(prepared, record, screen.room.key_queue.drop())
        code = attacher.run(prepared)
        if not code:
            return ""
        problem = f"attaching failed with code {code}"
        _wait_for_enter(f"{problem}. Press Enter to return to the room. ")
        return problem

    return lend_terminal(screen.room, connect)


def why_no_receiver(screen: RoomScreen) -> str:
    if not screen.current_tests():
        return f"no {screen.store.noun} is marked or under the cursor"
    if _receivers(screen):
        return ""
    record = screen.current_record()
    if len(screen.current_tests()) == 1 and record is not None and record.needs_terminal:
        return "a dialog is open in its terminal: press a to attach and answer there"
    tests, store = screen.current_tests(), screen.store
    marked = len(screen.room.view.marks.tests & set(tests))
    is_one = not marked and len(tests) == 1
    all_of = f"none of the {marked} marked {store.noun}s" if marked else "none of them"
    who = f"this {store.noun}" if is_one else all_of
    if store.is_watch:
        return f"{who} {'is not running' if is_one else 'is running'}"
    return f"{who} has {'no' if is_one else 'a'} running or waiting agent"


def _receivers(screen: RoomScreen) -> list[TestRecord]:
    records = screen.store.records_of(screen.current_tests())
    living = [record for record in records if record.state in (State.RUNNING, State.WAITING)]
    # Typed text would answer an open dialog. A text for many agents is not an answer to their questions.
    return [
        record for record in living if not record.needs_terminal and (len(records) == 1 or not record.open_questions)
    ]


@action("m", "room.message", "message", "Write to this agent, or to all marked ones", why_no_receiver,
        rank=12, is_of_now=True, opens_box=True)  # fmt: skip
def write_message(screen: RoomScreen) -> None:
    """Send text to the agents. For an agent that asks through its hook, the text answers exactly that question."""
    receivers = _receivers(screen)
    open_questions = (
        [each for each in receivers[0].open_questions if each.answered_at is None] if len(receivers) == 1 else []
    )

    async def answer(text: str) -> str:
        return await deliver_answer(screen.store, [(open_questions[0].item, open_questions[0].question)], text)

    async def send(text: str) -> str:
        return await _send_message(screen, [record.test for record in receivers], text)

    if open_questions:
        screen.write_text(receivers, answer, "nothing was answered", question=open_questions[0].question)
    else:
        screen.write_text(receivers, send, "nothing was sent", left_out=len(screen.current_tests()) - len(receivers))


async def _send_message(screen: RoomScreen, tests: Sequence[str], text: str) -> str:
    """Send a message to agents. Return why no agent received it, or ""."""
    if screen.store.why_no_requests():
        return await _send_directly(screen, tests, text)
    try:
        screen.store.send_request(RequestKind.MESSAGE, tests=tests, text=text)
    except SwarmError as error:
        screen.store.note("error", f"cannot send the message: {error}")
        return str(error)
    screen.show_message(f"message to {counted(len(tests), 'agent')}: sending")
    return ""


async def _send_directly(screen: RoomScreen, tests: Sequence[str], text: str) -> str:
    """Send without an engine, one message after another. Return why no agent received it, or ""."""
    async with screen.room.sending:
        records = screen.store.records_of(tests)
        try:
            outcome = await screen.room.agents.send(records, text)
        except SwarmError as error:
            outcome = {record.test: str(error) for record in records}
    for test, problem in outcome.items():
        level, what = ("error", f"message not sent: {problem}") if problem else ("info", "message sent")
        screen.store.note(level, what, test)
    problems = [problem for problem in outcome.values() if problem]
    if problems and len(problems) == len(outcome):
        return f"not sent: {problems[0]}" if len(outcome) == 1 else f"sent to 0 of {len(outcome)}: {problems[0]}"
    if problems:
        sent = f"sent to {len(outcome) - len(problems)} of {len(outcome)}"
        screen.show_message(f"{sent}: {problems[0]} (details: 6)", "error")
    else:
        screen.show_message(f"sent to {counted(len(outcome), 'agent')}", "good")
    return ""


@action("i", "room.interact", "", "Work in the agent's pane in place; Ctrl+\\ leaves it", why_not_attach,
        is_of_now=True)  # fmt: skip
def open_pane(screen: RoomScreen) -> None:
    record = screen.current_record()
    if record is not None:
        _start_with_terminal(screen, _show_pane(screen, record), "opening the pane …")


async def _show_pane(screen: RoomScreen, record: TestRecord) -> None:
    # Late: 200 ms, for the emulator.
    from swarm_tui.room.agent.terminal import PaneScreen

    try:
        attacher = screen.room.agents.attacher(record)
        approach = await attacher.examine(record.agent)
        if not approach.is_there:
            screen.show_message(f"{record.agent} is stopped: press a to start it and attach", "warning")
            return
        prepared = await attacher.prepare(approach)
    except SwarmError as error:
        screen.store.note("error", f"pane of {record.agent}: {error}", record.test)
        screen.show_message(str(error), "error")
        return
    try:
        pane = PaneScreen(attacher, prepared, record, screen.room.key_queue.release)
        message = await screen.room.push_screen(pane, wait_for_dismiss=True)
    finally:
        await attacher.clean_up(prepared)
    screen.apply_change(EVERYTHING_CHANGED)
    screen.show_message(message or f"back from {record.agent}")


def _agent_condition(approach: AttachPlan) -> str:
    if not approach.is_there:
        return "it is stopped"
    return "its program has exited" if approach.is_ended else "it is running"


def _print_way_back(prepared: PreparedAttach, record: TestRecord, dropped_keys: int) -> None:
    approach = prepared.approach
    lines = [f"attaching to {approach.agent} ({plain(record.test, 200)})"]
    lines.append(f"  press {approach.way_back} to return to the room")
    if approach.outer is not None:
        where = (
            "on the agent's tmux server" if approach.outer.is_same_server else "on another tmux server than the agent"
        )
        lines.append(f"  the room itself runs inside tmux, {where}")
    if approach.is_ended:
        lines.append("  the program has exited; this is its last output")
    if prepared.warning:
        lines.append(f"  {prepared.warning}")
    if dropped_keys:
        lines.append(f"  dropped {counted(dropped_keys, 'key')} typed before the terminal was ready")
    print("\n".join(lines), flush=True)


def _wait_for_enter(prompt: str) -> None:
    with contextlib.suppress(EOFError, KeyboardInterrupt, OSError):
        print(prompt, end="", flush=True)
        sys.stdin.readline()


ACTIONS: Final = (attach, open_transcript, open_changes, write_message, open_pane)
