"""The observer of Claude Code agents in every situation, from the files that Claude Code writes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from swarm_tui.agents.hook_questions import MOST_OPEN_QUESTIONS, MOST_QUESTIONS
from swarm_tui.agents.observer import Observation
from swarm_tui.agents.types.claude.observer import (
    DEBUG,
    EVENTS,
    MAIN_PROCESS,
    SESSION,
    ClaudeObserver,
)
from swarm_tui.limits.events import ApiError, ApiErrorKind
from swarm_tui.model.questions import Question, answer_problem

Event = dict[str, Any]


def observed(
    status: str = "",
    *events: Event,
    debug: tuple[str, ...] = (),
    waiting_for: str = "",
    after: float = 60.0,
) -> Observation | None:
    """Return the observation some time after these files were written."""
    observer = ClaudeObserver()
    session = json.dumps({"pid": 7, "status": status, "waitingFor": waiting_for}).encode()
    observer.set_contents(SESSION.name, {"sessions/7.json": session} if status else {})
    observer.add_lines(EVENTS.name, [json.dumps(event).encode() for event in events])
    observer.add_lines(DEBUG.name, [line.encode() for line in debug])
    observer.observe(100.0)
    return observer.observe(100.0 + after)


BASH: Event = {"event": "asked", "id": "1", "kind": "PermissionRequest", "tool": "Bash", "input": {"command": "curl x"}}
ALLOW_BASH = Observation(True, "hook", "it asks to use Bash: curl x", ("yes", "no"))
FAILED = "2026-11-18T20:32:19.440Z [ERROR] API error (attempt 4/11): 429 429 {...}"
ANSWERED = "2026-11-18T20:32:23.334Z [DEBUG] [API:timing] first byte after 27ms"
LIMITED = ApiError(kind=ApiErrorKind.LIMITED)
WORKING = Observation(False, "session file")


def test_busy_session_is_work() -> None:
    assert observed("busy") == WORKING


def test_cost_is_last_total_of_debug_log() -> None:
    observer = ClaudeObserver()
    assert observer.dollars is None
    end = "2026-11-18T23:44:{:02}Z [DEBUG] [engine] turn {} end (turns=5 usage in=107833 out=112 cost=${} api=940ms)"
    observer.add_lines(DEBUG.name, [end.format(1, 1, "0.4294").encode(), end.format(2, 2, "1.1622").encode()])
    assert observer.dollars == 1.1622
    observer.add_lines(DEBUG.name, [end.format(3, 3, "9" * 400).encode(), b"[engine] turn 3 end (cost=$nan)"])
    assert observer.dollars == 1.1622


def test_compaction_is_a_condition() -> None:
    compacting = Observation(False, "session file", status_detail="compacting its conversation")
    assert observed("busy", {"event": "PreCompact", "trigger": "auto"}) == compacting
    for after in ("PostCompact", "SessionStart", "Stop"):
        assert observed("busy", {"event": "PreCompact"}, {"event": after}) == WORKING


def test_permission_request_is_a_question() -> None:
    assert observed("waiting", BASH, waiting_for="permission prompt") == ALLOW_BASH


def test_subagent_request_is_a_question_while_busy() -> None:
    assert observed("busy", BASH | {"subagent": "Explore"}) == Observation(
        True, "hook", "its subagent Explore asks to use Bash: curl x", ("yes", "no")
    )


def test_closed_request_is_not_a_question() -> None:
    assert observed("busy", BASH, {"event": "closed", "id": "1", "why": "answered"}) == WORKING


def test_oldest_of_several_requests_is_shown() -> None:
    second = BASH | {"id": "2", "input": {"command": "pwd"}}
    found = observed("waiting", BASH, second)
    assert found is not None
    assert found.question == "it asks to use Bash: curl x (and 1 more)"


def test_dialog_without_hook_needs_terminal() -> None:
    assert observed("waiting", waiting_for="dialog open") == Observation(
        True, "session file", "a dialog is open in its terminal", needs_terminal=True
    )


def test_question_has_options() -> None:
    options = [{"label": "19 percent", "description": "today's"}, {"label": "16 percent", "description": "old"}]
    given = {"questions": [{"question": "Which rate?", "options": options}]}
    asked = BASH | {"tool": "AskUserQuestion", "input": given}
    assert observed("waiting", asked) == Observation(True, "hook", "Which rate?", ("19 percent", "16 percent"))


def test_plan_waits_for_approval() -> None:
    asked = BASH | {"tool": "ExitPlanMode", "input": {"plan": "1. Fix it"}}
    assert observed("waiting", asked) == Observation(
        True, "hook", "it asks to carry out its plan:\n1. Fix it", ("yes", "no")
    )


def test_finished_turn_asks_with_last_message() -> None:
    stopped = {"event": "Stop", "last_assistant_message": "May stock be negative?"}
    assert observed("idle", stopped) == Observation(True, "hook", "May stock be negative?")


def test_interrupted_turn_is_a_question() -> None:
    assert observed("idle") == Observation(True, "session file", "its turn is over, but it has not submitted its work")


@pytest.mark.parametrize("status", ["idle", "waiting"])
def test_short_idle_or_dialog_is_work(status: str) -> None:
    assert observed(status, after=1.0) == WORKING


def test_new_message_starts_a_turn() -> None:
    stopped = {"event": "Stop", "last_assistant_message": "May stock be negative?"}
    found = observed("idle", stopped, {"event": "UserPromptSubmit"})
    assert found is not None
    assert "May stock" not in found.question


def test_turn_with_invalid_request_shows_error() -> None:
    failure = {"event": "StopFailure", "error": "invalid_request", "last_assistant_message": "API Error: 400 too long"}
    assert observed("idle", failure) == Observation(True, "hook", "API Error: 400 too long")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("rate_limit", ApiErrorKind.LIMITED),
        ("server_error", ApiErrorKind.OVERLOADED),
        ("authentication_failed", ApiErrorKind.LOGIN_LOST),
        ("billing_error", ApiErrorKind.UNPAID),
    ],
)
def test_api_error_at_turn_end_is_not_a_question(error: str, kind: ApiErrorKind) -> None:
    failure = {"event": "StopFailure", "error": error, "last_assistant_message": "API Error: 529 Overloaded"}
    expected = Observation(
        False, "hook", status_detail="API Error: 529 Overloaded", api_error=ApiError(kind=kind, has_given_up=True)
    )
    assert observed("idle", failure) == observed("idle", failure, after=0.1) == expected
    assert observed("busy", failure, {"event": "UserPromptSubmit"}) == WORKING
    assert observed("idle", failure, {"event": "UserPromptSubmit"}, {"event": "Stop"}, after=0.1) == WORKING


def test_failed_turn_without_hook_is_not_a_question() -> None:
    assert observed("idle", debug=(FAILED,), after=2.0) == Observation(
        False, "session file", status_detail="API error 429, retrying (4 of 10)", api_error=LIMITED
    )
    # Escape during a retry runs no hook.
    stopped = observed("idle", debug=(FAILED,), after=6.0)
    assert stopped is not None
    assert stopped.needs_user


@pytest.mark.parametrize(
    ("status", "attempt", "kind"),
    [
        ("429", 1, ApiErrorKind.LIMITED),
        ("529", 1, ApiErrorKind.OVERLOADED),
        ("500", 3, ApiErrorKind.OVERLOADED),
        ("undefined", 1, ApiErrorKind.UNREACHABLE),
        # A subscription login is renewed at the first refusal.
        ("401", 1, None),
        ("401", 2, ApiErrorKind.LOGIN_LOST),
        ("400", 2, None),
    ],
)
def test_retried_request_is_an_api_error(status: str, attempt: int, kind: ApiErrorKind | None) -> None:
    found = observed("busy", debug=(f"[ERROR] API error (attempt {attempt}/11): {status} {status}",))
    assert found is not None
    assert found.api_error == (ApiError(kind=kind) if kind is not None else None)


def test_unreachable_server_differs_from_overloaded_server() -> None:
    observer = ClaudeObserver()
    observer.set_contents(SESSION.name, {"sessions/7.json": b'{"pid": 7, "status": "idle"}'})
    observer.add_lines(DEBUG.name, [b"[ERROR] API error (attempt 11/11): undefined Connection error."])
    observer.add_lines(EVENTS.name, [b'{"event": "StopFailure", "error": "server_error"}'])
    found = observer.observe(100.0)
    assert found is not None
    assert found.api_error == ApiError(kind=ApiErrorKind.UNREACHABLE, has_given_up=True)


def test_retried_request_is_a_condition() -> None:
    assert observed("busy", debug=(FAILED,)) == Observation(
        False, "session file", status_detail="API error 429, retrying (4 of 10)", api_error=LIMITED
    )
    dropped = FAILED.replace("429 429 {...}", "undefined Connection error.")
    found = observed("busy", debug=(dropped,))
    assert found is not None
    assert found.status_detail == "no connection to the API, retrying (4 of 10)"
    assert observed("busy", debug=(FAILED, ANSWERED)) == WORKING


def test_background_command_is_work() -> None:
    assert observed("shell", {"event": "Stop", "last_assistant_message": "I wait."}) == Observation(
        False, "session file", status_detail="a command runs in the background"
    )


def test_no_session_file_gives_no_observation() -> None:
    assert observed() is None


def test_session_of_other_process_is_ignored() -> None:
    observer = ClaudeObserver()
    observer.set_contents(MAIN_PROCESS.name, {"claude_main_pid": b"7\n"})
    files = {"sessions/9.json": b'{"status":"busy"}', "sessions/7.json": b'{"status":"waiting"}'}
    observer.set_contents(SESSION.name, files)
    observer.observe(0.0)
    found = observer.observe(60.0)
    assert found is not None
    assert found.needs_user


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"null", b"[" * 100_000, b'{"event": {}}', b'{"event":"asked"}', b"\xff"]
)
def test_invalid_lines_are_ignored(raw: bytes) -> None:
    observer = ClaudeObserver()
    observer.set_contents(SESSION.name, {"sessions/1.json": raw})
    observer.set_contents(MAIN_PROCESS.name, {"claude_main_pid": raw})
    observer.add_lines(EVENTS.name, [raw])
    observer.add_lines(DEBUG.name, [raw])
    assert observer.observe(0.0) is None
    assert observer.open_questions == {}


def test_hostile_text_is_sanitized() -> None:
    found = observed("waiting", BASH | {"input": {"command": "\x1b]0;owned\x07echo \x1b[2Jhi"}})
    assert found is not None
    assert found.question == "it asks to use Bash: echo hi"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("yes", {"verdict": "allow"}),
        ("Y", {"verdict": "allow"}),
        ("1", {"verdict": "allow"}),
        ("2", {"verdict": "deny", "text": ""}),
        ("no, use the cache", {"verdict": "deny", "text": "use the cache"}),
        ("use the cache", {"verdict": "deny", "text": "use the cache"}),
        ("yes, but not there", {"verdict": "deny", "text": "yes, but not there"}),
    ],
)
def test_text_answers_a_request(text: str, answer: dict[str, str]) -> None:
    observer = asking(BASH)
    file = observer.answer(observer.open_questions["1"], text, "Ann")
    assert file.path == "plugin/swarm/answers/1.json"
    assert json.loads(file.content) == {**answer, "by": "Ann"}


def test_question_is_answered_by_digit_or_text() -> None:
    given = {"questions": [{"question": "Which rate?", "options": [{"label": "19"}, {"label": "16"}]}]}
    for text, chosen in (("2", "16"), ("ask the boss", "ask the boss"), ("16", "16"), ("no", "no"), ("1\n2", "1\n2")):
        assert answers(BASH | {"tool": "AskUserQuestion", "input": given}, text) == {"Which rate?": chosen}


def test_several_questions_are_answered_line_by_line() -> None:
    files = {"question": "Which files?", "multiSelect": True, "options": [{"label": "a.py"}, {"label": "b.py"}]}
    given = {"questions": [{"question": "Which rate?", "options": [{"label": "19"}, {"label": "16"}]}, files]}
    asked = BASH | {"tool": "AskUserQuestion", "input": given}
    assert answers(asked, "2\n1, 2") == {"Which rate?": "16", "Which files?": "a.py, b.py"}
    assert answers(asked, "none\n1 and 3") == {"Which rate?": "none", "Which files?": "1 and 3"}
    assert answers(asked, "none\n2 1") == {"Which rate?": "none", "Which files?": "b.py, a.py"}
    question = question_of(asked)
    assert answer_problem(question, "2\n1,3").startswith("2 of 2: invalid option 3, choose 1 to 2")
    assert answer_problem(question, "7\n1").startswith("1 of 2: invalid option 7, choose 1 to 2")
    assert not answer_problem(question, "16\n2, 1")
    assert answer_problem(question, "2") == "the agent asks 2 questions; answer with one line for each"
    assert question.options == ()


def test_options_have_descriptions() -> None:
    options = [{"label": "a.py", "description": "the \x1b[1mold one"}, {"label": "b.py"}]
    given = {"questions": [{"question": "Which?", "options": options}]}
    (question,) = question_of(BASH | {"tool": "AskUserQuestion", "input": given}).parts
    assert question.descriptions == ("the old one", "")


FORM = {
    "port": {"type": "integer", "title": "Port", "description": "to listen on", "minimum": 1, "maximum": 65535},
    "name": {"type": "string", "minLength": 2, "maxLength": 5},
    "day": {"type": "string", "format": "date"},
    "is_public": {"type": "boolean"},
    "mode": {"oneOf": [{"const": "s", "title": "slow"}, {"const": "f", "title": "fast"}]},
    "parts": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 1, "maxItems": 2},
}


def test_form_fields_have_types_limits_and_choices() -> None:
    asked = {"kind": "Elicitation", "tool": "", "message": "About the server", "fields": FORM, "required": ["port"]}
    question = question_of(BASH | asked)
    assert [(question.text, question.hint) for question in question.parts] == [
        ("Port: to listen on", "a whole number, 1 to 65535"),
        ("name", "text, 2 to 5 characters; may be left empty"),
        ("day", "a date, such as 2026-11-19; may be left empty"),
        ("is_public", "choose one by its number; may be left empty"),
        ("mode", "choose one by its number; may be left empty"),
        ("parts", "choose at least 1, at most 2 by number, such as 1,2"),
    ]
    assert answers(BASH | asked, "80\nAnn\n2026-11-19\n2\n2\n1,3") == {
        "port": "80", "name": "Ann", "day": "2026-11-19", "is_public": "no", "mode": "f", "parts": ["a", "c"],
    }  # fmt: skip
    assert not answer_problem(question, "80")
    assert answers(BASH | asked, "80") == {"port": "80"}


def test_form_is_declined_with_one_word() -> None:
    asked = BASH | {"kind": "Elicitation", "tool": "", "message": "Continue?", "fields": {"go": {"type": "boolean"}}}
    question = question_of(asked)
    assert answers(asked, "no") == {"go": "no"}
    assert not answer_problem(question, "decline")
    assert json.loads(asking(asked).answer(question, "decline", "Ann").content)["verdict"] == "deny"


def test_unknown_plan_refers_to_terminal() -> None:
    question = question_of(BASH | {"tool": "ExitPlanMode", "input": {"plan": ""}})
    assert question.text == "it asks to carry out its plan, which is shown only in its terminal"


def test_plan_is_kept_in_full() -> None:
    steps = "\n".join(f"{number}. change file number {number} of the project" for number in range(1, 201))
    question = question_of(BASH | {"tool": "ExitPlanMode", "input": {"plan": steps}})
    assert question.text.endswith("200. change file number 200 of the project")
    assert not question.is_inexact
    assert question_of(BASH | {"tool": "ExitPlanMode", "input": {"plan": steps}, "is_cut": True}).is_inexact


def test_form_is_answered_field_by_field() -> None:
    fields = {"size": {"title": "How large?", "type": "integer"}, "mode": {"enum": ["slow", "fast"]}}
    asked = BASH | {"kind": "Elicitation", "tool": "", "message": "I need two things", "fields": fields}
    question = question_of(asked)
    assert [(question.text, question.options) for question in question.parts] == [
        ("How large?", ()),
        ("mode", ("slow", "fast")),
    ]
    assert answers(asked, "7\n2") == {"size": "7", "mode": "fast"}
    assert json.loads(asking(asked).answer(question, "no", "Ann").content)["verdict"] == "deny"


def test_form_keeps_number_format() -> None:
    asked = BASH | {"kind": "Elicitation", "tool": "", "fields": {"size": {"enum": [4, 8], "type": "integer"}}}
    assert question_of(asked).options == ("4", "8")
    assert answers(asked, "2") == {"size": "8"}


@pytest.mark.parametrize("text", ["yes, but not there", "Yes please", "ok: go on", "y no"])
def test_yes_with_extra_text_is_rejected(text: str) -> None:
    assert answer_problem(question_of(BASH), text).startswith("`yes` takes no further words")


@pytest.mark.parametrize("text", ["yes", " Y\n", "ok.", "no", "no, yes is wrong", "yesterday will do", "1"])
def test_plain_yes_and_any_no_are_answers(text: str) -> None:
    assert not answer_problem(question_of(BASH), text)


@pytest.mark.parametrize("text", ["3", "0", "x" * 20_001])
def test_invalid_option_or_long_text_is_rejected(text: str) -> None:
    assert answer_problem(question_of(BASH), text)


def test_cut_request_is_marked_as_inexact() -> None:
    hidden = ["ls\x1b[8m; rm -rf /", "x" * 3_000, "ls \u200b", "ls\r\nrm -rf /"]
    shown = [question_of(BASH | {"input": {"command": command}}) for command in (*hidden, "ls; rm -rf /")]
    assert [question.is_inexact for question in shown] == [True, True, True, True, False]
    unconfined = {"command": "ls", "dangerouslyDisableSandbox": True}
    assert question_of(BASH | {"input": unconfined}).is_inexact


def test_other_inputs_of_tool_are_shown() -> None:
    given = {"file_path": "/w/a.py", "old_string": "1\n2", "replace_all": True, "\x1b[2J": {"a": [1]}}
    question = question_of(BASH | {"tool": "Edit", "input": given})
    assert question.subject == "/w/a.py"
    assert question.detail == 'old_string: 1\n2\nreplace_all: true\n: {"a": [1]}'


def test_typing_and_unknown_answers_are_rejected() -> None:
    observer = ClaudeObserver()
    assert (observer.open_questions, observer.typing_problem) == ({}, "")
    observer.set_contents(SESSION.name, {"sessions/7.json": b'{"status":"waiting"}'})
    assert "attach" in observer.typing_problem


@pytest.mark.parametrize("identity", ["../../../etc/x", "a/b", "", 7, None, "x" * 100, "\u0661"])
def test_request_id_with_path_is_ignored(identity: object) -> None:
    assert asking(BASH | {"id": identity}).open_questions == {}


def test_number_of_requests_is_limited() -> None:
    observer = ClaudeObserver()
    for number in range(5_000):
        observer.add_lines(EVENTS.name, [json.dumps(BASH | {"id": str(number)}).encode()])
        if number % 2:
            observer.add_lines(EVENTS.name, [json.dumps({"event": "closed", "id": str(number)}).encode()])
    assert len(observer.open_questions) <= MOST_OPEN_QUESTIONS
    assert len(observer.open_questions) + len(observer.closed_questions) <= MOST_QUESTIONS


def test_request_id_is_used_once() -> None:
    observer = asking(BASH, BASH | {"input": {"command": "rm -rf /"}})
    assert observer.open_questions["1"].subject == "curl x"
    observer.add_lines(EVENTS.name, [b'{"event":"closed","id":"1","why":"answered"}', json.dumps(BASH).encode()])
    assert (observer.open_questions, ends_of(observer)) == ({}, {"1": "answered"})


def test_answered_dialog_may_stay_visible_briefly() -> None:
    observer = asking(BASH)
    observer.set_contents(SESSION.name, {"sessions/7.json": b'{"status":"waiting"}'})
    observer.observe(0.0)
    observer.observe(9.0)
    observer.add_lines(EVENTS.name, [b'{"event":"closed","id":"1","why":"answered"}'])
    seen = [observer.observe(10.0 + second) for second in (0, 2, 5, 6)]
    assert [each is not None and each.needs_user for each in seen] == [False, False, False, True]
    observer.set_contents(SESSION.name, {"sessions/7.json": b'{"status":"busy"}'})
    assert observer.observe(17.0) == WORKING
    observer.set_contents(SESSION.name, {"sessions/7.json": b'{"status":"waiting"}'})
    seen = [observer.observe(18.0 + second) for second in (0, 2)]
    assert [each is not None and each.needs_user for each in seen] == [False, True]


def test_closed_dialog_closes_questions_of_dead_hook() -> None:
    observer = asking(BASH, BASH | {"id": "2", "subagent": "Explore"})
    for second, status in enumerate(("waiting", "busy", "busy", "waiting", "busy")):
        observer.set_contents(SESSION.name, {"sessions/7.json": json.dumps({"status": status}).encode()})
        observer.observe(float(second))
    observer.add_lines(EVENTS.name, [json.dumps(BASH | {"id": "3"}).encode()])
    observer.observe(6.9)
    assert list(observer.open_questions) == ["1", "2", "3"]
    observer.observe(7.0)
    assert list(observer.open_questions) == ["2", "3"]
    assert ends_of(observer) == {"1": "on the screen"}


def test_exit_of_claude_closes_its_questions() -> None:
    observer = asking(BASH, {"event": "SessionEnd"})
    assert ends_of(observer) == {"1": "Claude Code exited"}


def ends_of(observer: ClaudeObserver) -> dict[str, str]:
    return {identity: ended.why for identity, ended in observer.closed_questions.items()}


def asking(*events: Event) -> ClaudeObserver:
    observer = ClaudeObserver()
    observer.add_lines(EVENTS.name, [json.dumps(event).encode() for event in events])
    return observer


def question_of(event: Event) -> Question:
    return asking(event).open_questions["1"]


def answers(event: Event, text: str) -> dict[str, str]:
    observer = asking(event)
    content: dict[str, dict[str, str]] = json.loads(observer.answer(observer.open_questions["1"], text, "Ann").content)
    return content["answers"]
