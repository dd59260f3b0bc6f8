"""The inbox shows all questions. A message box stays open until its text is accepted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.journal.append import EngineLock, JournalWriter
from swarm_tui.journal.events import EngineEnded, EngineStarted, Launched, Pulled, Queued, RequestAnswered
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.requests import RequestFollower, RequestKind
from swarm_tui.model.questions import Question, QuestionKind, QuestionPart
from swarm_tui.model.results import Result
from swarm_tui.model.spec import MngrSettings, SweepSpec
from swarm_tui.questions.events import QuestionAsked, QuestionClosed
from swarm_tui.questions.inbox import ItemGroup
from swarm_tui.room.app import RoomApp
from swarm_tui.room.inbox.screen import InboxScreen
from swarm_tui.room.inbox.session import NOTHING_HERE, InboxSession
from swarm_tui.room.message import MessageScreen
from swarm_tui.room.store import Store
from tests.room.scenes import Scene, press, room_on, shows, text_on_screen
from tests.waiting import eventually

WIDE = Scene("inbox", keys=("5",), width=120, height=40)
LOW = Scene("inbox", keys=("5",), width=80, height=24)
RATE = QuestionPart(
    key="rate",
    text="Which rate is right?",
    options=("19 percent", "16 percent"),
    descriptions=("as the test has it", "as the tutorial has it"),
)
FILES = QuestionPart(key="files", text="Which files?", options=("a.py", "b.py", "c.py"), is_many=True)
PORT = QuestionPart(key="port", text="Port", field="integer", least=1, most=65535)
PLAN = "it asks to carry out its plan:\n" + "\n".join(f"{number}. change part {number}" for number in range(1, 61))
ASKS = {
    "choice": Question(id="1", kind=QuestionKind.QUESTION, text=RATE.text, parts=(RATE,)),
    "several": Question(id="2", kind=QuestionKind.QUESTION, text=f"{RATE.text}\n{FILES.text}", parts=(RATE, FILES)),
    "files": Question(id="3", kind=QuestionKind.QUESTION, text=FILES.text, parts=(FILES,)),
    "form": Question(id="4", kind=QuestionKind.INPUT, text="About the server", parts=(PORT,)),
    "plan": Question(id="5", kind=QuestionKind.PLAN, tool="ExitPlanMode", text=PLAN),
    "permission": Question(id="6", tool="Bash", subject="curl x", text="it wants to use Bash: curl x"),
}


@pytest.fixture
def folder(tmp_path: Path) -> SweepFolder:
    """A sweep without questions."""
    folder = SweepFolder(tmp_path / "20261118-061200")
    folder.write_spec(
        SweepSpec(sweep=folder.name, repository=str(tmp_path), base="abc", created_at=1.0, mngr=MngrSettings(path="m"))
    )
    with JournalWriter(folder.events) as journal:
        journal.append(EngineStarted(pid=1, machine="m", version="1", slots=4))
    return folder


@pytest.fixture(autouse=True)
def engine(folder: SweepFolder) -> Iterator[EngineLock]:
    lock = EngineLock(folder.lock)
    lock.acquire()
    yield lock
    lock.release()


def ask(folder: SweepFolder, *names: str) -> None:
    with JournalWriter(folder.events, last_seq=1) as journal:
        for name in names:
            test = f"tests/test_a.py::test_{name}"
            journal.append(Queued(test=test, agent=f"agent-{name}", branch=f"swarm/{name}", file="t.py"))
            journal.append(Launched(test=test))
            journal.append(QuestionAsked(test=test, question=ASKS[name]))


def answer_request(app: RoomApp, folder: SweepFolder, *, is_done: bool, detail: str = "") -> None:
    (request,) = (request for request in RequestFollower(folder).read()[0] if request.kind is RequestKind.ANSWER)
    with JournalWriter(folder.events, last_seq=app.store.live_state.last_seq) as journal:
        journal.append(RequestAnswered(request=request.id, is_done=is_done, detail=detail))


async def test_several_questions_are_shown_with_options(folder: SweepFolder) -> None:
    ask(folder, "several")
    async with room_on(folder, WIDE) as (_, pilot):
        shown = await shows(pilot, "1 of 2: Which rate is right?", "2 of 2: Which files?")
        detail = shown[shown.index("1 of 2:") :]
        assert detail.count("Which rate is right?") == detail.count("Which files?") == 1
        assert "1 19 percent: as the test has it" in shown
        assert "choose one or more by number" in shown
        assert "one line for each question" in shown
        footer = shown.rstrip("\n").split("\n")[-1]
        assert " y yes" not in footer
        assert " n no" not in footer
        assert " A answer all" not in footer
        await press(pilot, "m")
        await shows(pilot, "Answer to 1 agent", "1 19 percent: as the test has it", "2 of 2: Which files?")
        await press(pilot, *"1", "enter")
        await shows(pilot, "the agent asks 2 questions; answer with one line for each")
        await press(pilot, "ctrl+j", *"1,9", "enter")
        await shows(pilot, "2 of 2: invalid option 9, choose 1 to 3")
        await press(pilot, "backspace", "3", "enter")
        await shows(pilot, "sending …")
        (request,) = RequestFollower(folder).read()[0]
        assert request.text == "1\n1,3"


async def test_answer_refused_by_engine_stays_in_box(folder: SweepFolder) -> None:
    ask(folder, "choice")
    async with room_on(folder, WIDE) as (app, pilot):
        await press(pilot, "m", *"as the tutorial", "enter")
        await shows(pilot, "sending …")
        await press(pilot, *"q3x")
        answer_request(app, folder, is_done=False, detail="it is already being answered")
        await shows(pilot, "it is already being answered", "as the tutorialq3x")
        assert isinstance(app.screen, MessageScreen)
        await press(pilot, "escape")
        await shows(pilot, "nothing was answered")
        await press(pilot, "m")
        await shows(pilot, "as the tutorialq3x")


async def test_box_closes_when_engine_accepts_answer(folder: SweepFolder) -> None:
    ask(folder, "choice")
    async with room_on(folder, WIDE) as (app, pilot):
        await press(pilot, "m", "2", "enter")
        await shows(pilot, "sending …")
        answer_request(app, folder, is_done=True)
        await eventually(lambda: not isinstance(app.screen, MessageScreen), "the box to close")
        await shows(pilot, "answer 1 agent: done")
        assert not app.drafts


async def test_answer_stays_in_box_when_engine_exits(folder: SweepFolder, engine: EngineLock) -> None:
    ask(folder, "choice")
    async with room_on(folder, WIDE) as (app, pilot):
        await press(pilot, "m", "2", "enter")
        await shows(pilot, "sending …")
        with JournalWriter(folder.events, last_seq=app.store.live_state.last_seq) as journal:
            journal.append(EngineEnded(why="stopped"))
        engine.release()
        await shows(pilot, "Answer to 1 agent", "the sweep has finished", "Enter send")


async def test_digits_choose_only_in_open_group(folder: SweepFolder) -> None:
    ask(folder, "choice")
    async with room_on(folder, WIDE) as (app, pilot):
        await shows(pilot, "Enter then choose by number", "1 19 percent: as the test has it")
        await press(pilot, "6")
        assert app.room_screen is not None
        assert app.room_screen.NAME == "log"
        await press(pilot, "5", "enter")
        await shows(pilot, "1-2 choose", "1 19 percent: as the test has it")
        await press(pilot, "2")
        (request,) = RequestFollower(folder).read()[0]
        assert request.text == "2"


async def test_digit_opens_box_for_multiple_choice(folder: SweepFolder) -> None:
    ask(folder, "files")
    async with room_on(folder, WIDE) as (_, pilot):
        assert "1-3 choose" not in text_on_screen(pilot.app)
        await press(pilot, "enter", "1")
        await shows(pilot, "Answer to 1 agent", "choose one or more by number")
        await press(pilot, *",3", "enter")
        await shows(pilot, "sending …")
        (request,) = RequestFollower(folder).read()[0]
        assert request.text == "1,3"


async def test_field_type_and_limits_are_checked(folder: SweepFolder) -> None:
    ask(folder, "form")
    async with room_on(folder, WIDE) as (_, pilot):
        await shows(pilot, "About the server", "a whole number, 1 to 65535", "`decline` to refuse")
        await press(pilot, "m", *"maybe", "enter")
        await shows(pilot, "invalid answer 'maybe'; expected a whole number, 1 to 65535")
        assert RequestFollower(folder).read()[0] == []


async def test_plan_question_is_shown_completely(folder: SweepFolder) -> None:
    ask(folder, "plan")
    async with room_on(folder, LOW) as (app, pilot):
        await shows(pilot, "1. change part 1", "J K scroll")
        for _ in range(30):
            await press(pilot, "J")
        await shows(pilot, "60. change part 60")
        await press(pilot, "m")
        await shows(pilot, "Answer to 1 agent", "PgDn for more")
        for _ in range(40):
            await press(pilot, "pagedown")
        await shows(pilot, "60. change part 60", "answer: yes, or no and why")
        assert isinstance(app.screen, MessageScreen)


async def test_answer_all_stops_after_its_group(folder: SweepFolder) -> None:
    ask(folder, "permission", "choice")
    async with room_on(folder, WIDE) as (app, pilot):
        await shows(pilot, "curl x")
        await press(pilot, "A")
        await shows(pilot, "Answer all")
        is_permission = "Bash `curl x`" in text_on_screen(app)
        await press(pilot, "y" if is_permission else "1")
        await shows(pilot, "one agent first")
        answer_request(app, folder, is_done=True)
        await shows(pilot, "1 agent answered")
        assert isinstance(app.screen, InboxScreen), "the next group is not answered too"
        assert "Answer all" not in text_on_screen(app)
        assert len(RequestFollower(folder).read()[0]) == 1


async def test_palette_runs_request_with_typed_name(folder: SweepFolder) -> None:
    with JournalWriter(folder.events, last_seq=1) as journal:
        journal.append(Queued(test="tests/test_a.py::test_one", agent="agent-one", branch="b", file="t.py"))
    async with room_on(folder, Scene("sweep", width=120, height=40)) as (_, pilot):
        await press(pilot, "colon", *"hold", "enter")
        await shows(pilot, "Hold 1 test?")
        await press(pilot, "y")
        (request,) = RequestFollower(folder).read()[0]
        assert request.kind is RequestKind.HOLD
        await press(pilot, "colon", *"retry", "enter")
        await shows(pilot, "retry: none of them has finished")


async def test_accepted_box_stays_open_while_user_types(folder: SweepFolder) -> None:
    ask(folder, "choice")
    async with room_on(folder, WIDE) as (app, pilot):
        await press(pilot, "m", "2", "enter")
        await shows(pilot, "sending …")
        await press(pilot, *"xs")
        answer_request(app, folder, is_done=True)
        await shows(pilot, "accepted", "Esc closes; the text was accepted without what you typed since")
        await press(pilot, *"y6q")
        assert isinstance(app.screen, MessageScreen)
        await press(pilot, "escape")
        await eventually(lambda: not isinstance(app.screen, MessageScreen), "the box to close")
        assert "nothing was answered" not in text_on_screen(app)
        assert not app.drafts
        assert len(RequestFollower(folder).read()[0]) == 1


async def test_answer_all_shows_long_plan_completely(folder: SweepFolder) -> None:
    ask(folder, "plan")
    async with room_on(folder, LOW) as (_, pilot):
        await press(pilot, "A")
        await shows(pilot, "Answer all", "1. change part 1", "y yes · n no · J K scroll · Esc closes")
        await press(pilot, *["J"] * 30)
        await shows(pilot, "60. change part 60", "y yes · n no")
        await press(pilot, "n")
        await shows(pilot, "answering one agent first")
        (request,) = RequestFollower(folder).read()[0]
        assert request.text == "no"


async def test_decision_is_given_by_retry_with_note(folder: SweepFolder) -> None:
    test = "tests/test_a.py::test_one"
    with JournalWriter(folder.events, last_seq=1) as journal:
        journal.append(Queued(test=test, agent="agent-one", branch="b", file="t.py"))
        journal.append(Pulled(test=test, result=Result.BLOCKED, reason="Which rate is right?"))
    async with room_on(folder, WIDE) as (_, pilot):
        await shows(pilot, "Which rate is right?", "actions, such as retry with a note")
        await press(pilot, "x", "n")
        box = await shows(pilot, "Retry 1 test with a note")
        assert box[box.index("Retry 1 test") :].count("Which rate is right?") == 1
        await press(pilot, *"19 percent", "enter")
        await shows(pilot, "retry requested for 1 test")
        (request,) = RequestFollower(folder).read()[0]
        assert (request.kind, request.tests, request.text) == (RequestKind.RETRY, (test,), "19 percent")


# The session, without a terminal.


def session_on(folder: SweepFolder) -> tuple[InboxSession, list[str]]:
    """Return a session, and a list that grows with each change."""
    store, changes = Store(folder), list[str]()
    while store.read_new_events():
        pass
    session = InboxSession(store, lambda: changes.append("changed"))
    session.update()
    return session, changes


def put_cursor_on(session: InboxSession, test: str) -> None:
    session.cursor = next(number for number, row in enumerate(session.rows) if test in str(row))


def test_session_answers_item_and_emits_change(folder: SweepFolder) -> None:
    ask(folder, "permission")
    session, changes = session_on(folder)
    assert session.why_not_yes_or_no() == ""
    assert session.answer("yes") == ""
    assert changes == ["changed"]
    assert session.why_not_answer() == "an answer is being sent"
    (request,) = RequestFollower(folder).read()[0]
    assert session.item is not None
    assert (request.items, request.text) == ((session.item.id,), "yes")


def test_session_reports_why_key_is_unavailable(folder: SweepFolder, engine: EngineLock) -> None:
    session, _ = session_on(folder)
    assert session.why_no_row() == session.why_not_answer() == session.why_no_group() == NOTHING_HERE
    ask(folder, "choice", "form", "permission")
    session, _ = session_on(folder)
    put_cursor_on(session, "test_choice")
    assert "press Enter and a digit" in session.why_not_yes_or_no()
    assert session.why_no_option(2) == session.why_not_answer_all() == ""
    assert session.why_no_option(3) == "this item has 2 options"
    assert session.why_no_rule() == "rules work only for permissions with a complete command"
    put_cursor_on(session, "test_form")
    assert session.why_not_yes_or_no() == "this needs a text: press m"
    assert session.why_no_option(1) == "no options: press m to write an answer"
    assert session.answer("maybe") == "invalid answer 'maybe'; expected a whole number, 1 to 65535"
    put_cursor_on(session, "test_permission")
    assert session.why_no_rule() == ""
    engine.release()
    session.store.check_engine()
    assert session.why_not_yes_or_no().startswith("the engine runs on m")


def test_session_keeps_cursor_on_its_row(folder: SweepFolder) -> None:
    ask(folder, "choice", "form", "permission", "plan")
    session, changes = session_on(folder)
    put_cursor_on(session, "test_plan")
    group = session.group
    assert group is not None
    session.open_group(group)
    assert [row for row in session.rows if isinstance(row, ItemGroup)]
    assert session.update() is False
    assert session.rows == list(group.items)
    session.close_group()
    assert session.group == group
    assert session.defer() is True
    session.update()
    put_cursor_on(session, "test_plan")
    assert session.cursor == len(session.rows) - 1
    session.update("test_form")
    assert len(session.rows) == 1
    assert changes == ["changed"] * 3


async def test_answer_all_closes_when_questions_are_answered_elsewhere(folder: SweepFolder) -> None:
    ask(folder, "permission")
    async with room_on(folder, WIDE) as (app, pilot):
        await press(pilot, "A")
        await shows(pilot, "y yes · n no · Esc closes")
        await press(pilot, "x")
        await shows(pilot, "not one of the options · y yes · n no · Esc closes")
        with JournalWriter(folder.events, last_seq=app.store.live_state.last_seq) as journal:
            journal.append(QuestionClosed(test="tests/test_a.py::test_permission", question="6", why="on the screen"))
        await shows(pilot, "these questions are answered or closed", "Enter closes")
