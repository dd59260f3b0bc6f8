"""Hostile texts of agents and test ids are shown as plain text, and the room keeps running."""

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from swarm_tui.agents.hook_questions import parse_question
from swarm_tui.failures.alerts import with_held
from swarm_tui.failures.events import Alert
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import AgentStateChanged, EngineEnded, EngineStarted, Launched, LogMessage, Pulled, Queued
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.requests import RequestKind
from swarm_tui.journal.state import SweepState
from swarm_tui.journal.work_events import AgentOutput, Try, TryFinished
from swarm_tui.model.event import LogLine
from swarm_tui.model.pulled import Escalation, PulledChange, PulledWork
from swarm_tui.model.questions import OpenQuestion
from swarm_tui.model.results import Result, State
from swarm_tui.model.spec import MngrSettings, SweepSpec
from swarm_tui.questions.inbox import find_items, group_items
from swarm_tui.room.draw.patterns_hosts import draw_pattern_detail, draw_pattern_row, draw_strip
from swarm_tui.room.draw.spans import Line, Span, text_of, width_of
from swarm_tui.room.draw.transcript import draw_log_line
from swarm_tui.room.grid.draw import Cell, draw_chips, draw_dots, draw_table_row, table_of
from swarm_tui.room.grid.draw_layout import CellRun
from swarm_tui.room.grid.side import draw_side, side_title
from swarm_tui.room.inbox.draw import draw_different, draw_group_row, draw_item_detail, draw_item_row
from swarm_tui.room.store import SweepConclusions
from tests.room.scenes import Scene, press, room_on, text_on_screen

HOSTILE = (
    "[bold red]markup[/] [/] [0] [link=file:///etc]x[/link]",
    "\x1b[2J\x1b]0;owned\x07\x1bPq\x1b\\ and \x9b31m",
    "\u202emirrored\u202c \u200b\u200d\u2066 zero",
    "日本語テスト😀👩‍👩‍👧 wide",
    "a\u0301\u0301\u0301\u0301 combined",
    "x" * 10_000,
    "tabs\tand\nnew\r\nlines\x00",
    "\ud800 lone",
    "",
    "::",
    "-rf /",
)
KEYS = (
    "plus", "plus", "w", "space", "x", "escape", "b", "c", "b", "h", "slash", "o", "escape", "Y", "4", "Y", "5", "c",
    "6", "k", "Y", "question_mark", "escape", "colon", "g", "o", "space", "x", "escape", "1",
)  # fmt: skip
hostile = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=60))


@st.composite
def records(draw: st.DrawFn) -> TestRecord:
    state = draw(st.sampled_from(State))
    return TestRecord(
        test=draw(hostile) + "::" + draw(hostile),
        agent=draw(hostile),
        file=draw(hostile),
        line=3,
        block=draw(hostile),
        state=state,
        result=draw(st.sampled_from(Result)) if state is State.DONE else None,
        reason=draw(hostile),
        source=draw(hostile),
        host=draw(hostile),
        tries=(Try(1, draw(st.booleans()), 1.0, 0.0, draw(hostile)),),
        pulled=PulledWork(
            changes=(
                PulledChange(kind=draw(hostile), status=draw(hostile), summary=draw(hostile), commit=draw(hostile)),
            ),
            escalations=(Escalation(title=draw(hostile), detail_markdown=draw(hostile)),),
            summary=draw(hostile),
        ),
        question=draw(hostile),
        last_line=draw(hostile),
        launched_at=1.0,
        foreign_imports=(draw(hostile),),
        open_questions=tuple(
            OpenQuestion(made, str(number))
            for number, event in enumerate(draw(st.lists(open_questions(), max_size=2)))
            if (made := parse_question(event)) is not None
        ),
    )


@st.composite
def open_questions(draw: st.DrawFn) -> dict[str, Any]:
    """Return a line of a hook with a question."""
    options = st.lists(st.fixed_dictionaries({"label": hostile}), max_size=3)
    questions = st.lists(st.fixed_dictionaries({"question": hostile, "options": options}), max_size=3)
    given_to = {
        "Bash": st.fixed_dictionaries({"command": hostile, "description": hostile}),
        "AskUserQuestion": st.fixed_dictionaries({"questions": questions}),
        "Edit": st.fixed_dictionaries({"file_path": hostile, "old_string": hostile}),
        "\x1b[2Jmcp": st.dictionaries(hostile, hostile, max_size=3),
    }
    tool = draw(st.sampled_from(list(given_to)))
    return {"id": "1", "kind": "PermissionRequest", "tool": tool, "input": draw(given_to[tool])}


def assert_harmless(lines: list[Line], width: int) -> None:
    for line in lines:
        text = text_of(line)
        assert not [character for character in text if ord(character) < 32 or 0x7F <= ord(character) < 0xA0], repr(text)
        assert not set(text) & set("\u202e\u202c\u200b\u200d\u2066\ud800")
        assert width_of(line) <= width, repr(text)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(records(), st.integers(24, 160))
def test_panels_emit_no_control_characters(record: TestRecord, width: int) -> None:
    cell = Cell(record, "marked")
    run = CellRun("label", 0, 5, 6, 20, (record.test,), 1)
    held = structs.replace(record, is_held=True, held_for=record.reason)
    all_records = {record.test: held}
    alert = Alert(record.reason, 5.0, (record.test,), record.reason, (record.test,), record.reason)
    alerts = {alert.cause: alert}
    ledger = SweepConclusions()
    ledger.update([record, structs.replace(record, test=record.test + "2")])
    patterns = with_held(ledger.patterns(), alerts, all_records)
    lines = [draw_table_row(table_of([cell.record]), cell, width, 5.0), draw_dots((run,), lambda _: cell, width)]
    lines += [draw_chips(run, lambda _: cell), *draw_side(record, width, 5.0, RequestKind.STOP)]
    lines += [
        draw_log_line(LogLine(1.0, "error", record.reason, record.test), width),
        *draw_strip(patterns, alerts, all_records, width),
    ]
    for pattern in patterns:
        lines.append(draw_pattern_row(pattern, alerts, all_records, width))
        lines += draw_pattern_detail(pattern, alerts, all_records, width)
    for group in group_items(find_items(SweepState(), [record], 5.0)):
        lines += [draw_group_row(group, width, 5.0, is_answering=True), *draw_different(group, width)]
        for item in group.items:
            lines += [draw_item_row(item, group, width, is_answering=True)]
            for is_open in (False, True):
                lines += draw_item_detail(group, item, width, 5.0, "", is_open=is_open)
    assert_harmless(lines, width)
    assert_harmless([[Span(side_title(record))]], 1000)


async def test_room_with_hostile_texts_stays_plain(tmp_path: Path) -> None:
    folder = SweepFolder(tmp_path / "20261118-061200")
    folder.write_spec(
        SweepSpec(
            sweep=HOSTILE[1], title=HOSTILE[0], base=HOSTILE[2], repository="/r", base_name=HOSTILE[3], created_at=1.0,
            mngr=MngrSettings(path="mngr"),
        )
    )  # fmt: skip
    with JournalWriter(folder.events) as journal:
        journal.append(EngineStarted(pid=1, machine=HOSTILE[1]))
        for number, text in enumerate(HOSTILE[:7]):
            test = f"{text}::{text}[{number}]"
            journal.append(Queued(test=test, agent=text, file=text, block=text))
            journal.append(Launched(test=test, host=text))
            journal.append(AgentOutput(test=test, line=text))
            journal.append(TryFinished(test=test, passed=False, failure=text))
            if number % 2:
                journal.append(AgentStateChanged(test=test, state=State.WAITING, question=text))
            else:
                told = (Escalation(title=text, detail_markdown=text),)
                journal.append(
                    Pulled(test=test, result=Result.BLOCKED, reason=text, pulled=PulledWork(escalations=told))
                )
        journal.append(LogMessage(level="error", text=HOSTILE[1]))
        journal.append(EngineEnded(why="failed", reason=HOSTILE[1]))
    scene = Scene("hostile", (), 200, 60)
    async with room_on(folder, scene) as (app, pilot):
        for key in KEYS:
            await press(pilot, key)
            shown = text_on_screen(app)
            assert not [key for sign in shown.replace("\n", "") if ord(sign) < 32 or 0x7F <= ord(sign) < 0xA0]
            assert not set(shown) & set("\u202e\u202c\u200b\u2066")
        assert app.is_running
