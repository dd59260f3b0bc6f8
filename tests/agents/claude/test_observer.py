"""What a Claude Code agent is doing, situation by situation, from the files that it writes then."""

from __future__ import annotations

import json
from typing import Any

import pytest

from swarm_tui.agents.claude.observer import (
    ASKS_IN_ALL,
    DEBUG,
    EVENTS,
    MAIN_PROCESS,
    OPEN_ASKS,
    SESSION,
    ClaudeObserver,
)
from swarm_tui.agents.observation import Observation
from swarm_tui.model.asks import answer_problem
from swarm_tui.model.trouble import Trouble, TroubleKind

Event = dict[str, Any]


def observed(
    status: str = "",
    *events: Event,
    debug: tuple[str, ...] = (),
    waiting_for: str = "",
    after: float = 60.0,
) -> Observation | None:
    """Return what is observed a while after these files were written."""
    observer = ClaudeObserver()
    session = json.dumps({"pid": 7, "status": status, "waitingFor": waiting_for}).encode()
    observer.set_contents(SESSION.name, {"sessions/7.json": session} if status else {})
    observer.add_lines(EVENTS.name, [json.dumps(event).encode() for event in events])
    observer.add_lines(DEBUG.name, [line.encode() for line in debug])
    observer.observe(100.0)
    return observer.observe(100.0 + after)


BASH: Event = {"event": "asked", "id": "1", "kind": "PermissionRequest", "tool": "Bash", "input": {"command": "curl x"}}
ALLOW_BASH = Observation(True, "hook", "it wants to use Bash: curl x", ("yes", "no"))
FAILED = "2026-11-18T20:32:19.440Z [ERROR] API error (attempt 4/11): 429 429 {...}"
ANSWERED = "2026-11-18T20:32:23.334Z [DEBUG] [API:timing] first byte after 27ms"
LIMITED = Trouble(kind=TroubleKind.LIMITED)
WORKING = Observation(False, "session file")


def test_a_model_that_thinks_or_a_command_that_runs_is_work() -> None:
    assert observed("busy") == WORKING


def test_claude_adds_up_what_each_turn_has_cost() -> None:
    observer = ClaudeObserver()
    assert observer.dollars is None
    end = "2026-11-18T23:44:{:02}Z [DEBUG] [engine] turn {} end (turns=5 usage in=107833 out=112 cost=${} api=940ms)"
    observer.add_lines(DEBUG.name, [end.format(1, 1, "0.4294").encode(), end.format(2, 2, "1.1622").encode()])
    assert observer.dollars == 1.1622
    observer.add_lines(DEBUG.name, [end.format(3, 3, "9" * 400).encode(), b"[engine] turn 3 end (cost=$nan)"])
    assert observer.dollars == 1.1622


def test_a_long_conversation_is_compacted() -> None:
    compacting = Observation(False, "session file", condition="it compacts its conversation")
    assert observed("busy", {"event": "PreCompact", "trigger": "auto"}) == compacting
    for after in ("PostCompact", "SessionStart", "Stop"):
        assert observed("busy", {"event": "PreCompact"}, {"event": after}) == WORKING


def test_a_permission_request_needs_a_person() -> None:
    assert observed("waiting", BASH, waiting_for="permission prompt") == ALLOW_BASH


def test_so_does_the_request_of_a_subagent_while_the_session_is_busy() -> None:
    assert observed("busy", BASH | {"subagent": "Explore"}) == Observation(
        True, "hook", "its subagent Explore wants to use Bash: curl x", ("yes", "no")
    )


def test_a_request_that_is_over_needs_nobody() -> None:
    assert observed("busy", BASH, {"event": "closed", "id": "1", "why": "answered"}) == WORKING


def test_of_several_requests_the_oldest_is_shown() -> None:
    second = BASH | {"id": "2", "input": {"command": "pwd"}}
    found = observed("waiting", BASH, second)
    assert found is not None
    assert found.question == "it wants to use Bash: curl x (and 1 more)"


def test_a_dialog_without_a_hook_needs_a_person() -> None:
    assert observed("waiting", waiting_for="dialog open") == Observation(
        True, "session file", "a dialog is open in its terminal", needs_terminal=True
    )


def test_a_question_has_its_options() -> None:
    options = [{"label": "19 percent", "description": "today's"}, {"label": "16 percent", "description": "old"}]
    given = {"questions": [{"question": "Which rate?", "options": options}]}
    asked = BASH | {"tool": "AskUserQuestion", "input": given}
    assert observed("waiting", asked) == Observation(True, "hook", "Which rate?", ("19 percent", "16 percent"))


def test_a_plan_waits_for_its_approval() -> None:
    asked = BASH | {"tool": "ExitPlanMode", "input": {"plan": "1. Fix it"}}
    assert observed("waiting", asked) == Observation(
        True, "hook", "it wants to carry out its plan:\n1. Fix it", ("yes", "no")
    )


def test_a_turn_that_is_over_asks_with_its_last_words() -> None:
    stopped = {"event": "Stop", "last_assistant_message": "May stock be negative?"}
    assert observed("idle", stopped) == Observation(True, "hook", "May stock be negative?")


def test_an_interrupted_turn_needs_a_person_too() -> None:
    assert observed("idle") == Observation(True, "session file", "its turn is over, and it has not handed in its work")


@pytest.mark.parametrize("status", ["idle", "waiting"])
def test_a_moment_of_idleness_or_of_a_dialog_is_work(status: str) -> None:
    assert observed(status, after=1.0) == WORKING


def test_a_message_begins_a_turn_anew() -> None:
    stopped = {"event": "Stop", "last_assistant_message": "May stock be negative?"}
    found = observed("idle", stopped, {"event": "UserPromptSubmit"})
    assert found is not None
    assert "May stock" not in found.question


def test_a_turn_whose_request_was_wrong_says_why() -> None:
    failure = {"event": "StopFailure", "error": "invalid_request", "last_assistant_message": "API Error: 400 too long"}
    assert observed("idle", failure) == Observation(True, "hook", "API Error: 400 too long")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("rate_limit", TroubleKind.LIMITED),
        ("server_error", TroubleKind.OVERLOADED),
        ("authentication_failed", TroubleKind.LOGIN_LOST),
        ("billing_error", TroubleKind.UNPAID),
    ],
)
def test_a_turn_that_ended_because_the_model_did_not_answer_is_no_question(error: str, kind: TroubleKind) -> None:
    failure = {"event": "StopFailure", "error": error, "last_assistant_message": "API Error: 529 Overloaded"}
    expected = Observation(
        False, "hook", condition="API Error: 529 Overloaded", trouble=Trouble(kind=kind, has_given_up=True)
    )
    assert observed("idle", failure) == observed("idle", failure, after=0.1) == expected
    assert observed("busy", failure, {"event": "UserPromptSubmit"}) == WORKING
    assert observed("idle", failure, {"event": "UserPromptSubmit"}, {"event": "Stop"}, after=0.1) == WORKING


def test_a_turn_that_has_failed_is_no_question_before_the_hook_says_why() -> None:
    assert observed("idle", debug=(FAILED,), after=2.0) == Observation(
        False, "session file", condition="API error 429, tries again (4 of 10)", trouble=LIMITED
    )
    # Escape at a retry runs no hook.
    stopped = observed("idle", debug=(FAILED,), after=6.0)
    assert stopped is not None
    assert stopped.needs_person


@pytest.mark.parametrize(
    ("status", "attempt", "kind"),
    [
        ("429", 1, TroubleKind.LIMITED),
        ("529", 1, TroubleKind.OVERLOADED),
        ("500", 3, TroubleKind.OVERLOADED),
        ("undefined", 1, TroubleKind.UNREACHABLE),
        # The login of a subscription is renewed at the first refusal.
        ("401", 1, None),
        ("401", 2, TroubleKind.LOGIN_LOST),
        ("400", 2, None),
    ],
)
def test_a_request_that_is_tried_again_tells_of_trouble_at_once(
    status: str, attempt: int, kind: TroubleKind | None
) -> None:
    found = observed("busy", debug=(f"[ERROR] API error (attempt {attempt}/11): {status} {status}",))
    assert found is not None
    assert found.trouble == (Trouble(kind=kind) if kind is not None else None)


def test_a_server_that_cannot_be_reached_is_told_from_one_that_has_too_much_to_do() -> None:
    observer = ClaudeObserver()
    observer.set_contents(SESSION.name, {"sessions/7.json": b'{"pid": 7, "status": "idle"}'})
    observer.add_lines(DEBUG.name, [b"[ERROR] API error (attempt 11/11): undefined Connection error."])
    observer.add_lines(EVENTS.name, [b'{"event": "StopFailure", "error": "server_error"}'])
    found = observer.observe(100.0)
    assert found is not None
    assert found.trouble == Trouble(kind=TroubleKind.UNREACHABLE, has_given_up=True)


def test_a_request_that_is_tried_again_is_a_condition() -> None:
    assert observed("busy", debug=(FAILED,)) == Observation(
        False, "session file", condition="API error 429, tries again (4 of 10)", trouble=LIMITED
    )
    dropped = FAILED.replace("429 429 {...}", "undefined Connection error.")
    found = observed("busy", debug=(dropped,))
    assert found is not None
    assert found.condition == "no connection to the API, tries again (4 of 10)"
    assert observed("busy", debug=(FAILED, ANSWERED)) == WORKING


def test_a_command_in_the_background_is_work() -> None:
    assert observed("shell", {"event": "Stop", "last_assistant_message": "I wait."}) == Observation(
        False, "session file", condition="a command runs in the background"
    )


def test_before_there_is_a_session_nothing_is_known() -> None:
    assert observed() is None


def test_another_claude_code_in_the_same_folder_does_not_count() -> None:
    observer = ClaudeObserver()
    observer.set_contents(MAIN_PROCESS.name, {"claude_main_pid": b"7\n"})
    files = {"sessions/9.json": b'{"status":"busy"}', "sessions/7.json": b'{"status":"waiting"}'}
    observer.set_contents(SESSION.name, files)
    observer.observe(0.0)
    found = observer.observe(60.0)
    assert found is not None
    assert found.needs_person


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"null", b"[" * 100_000, b'{"event": {}}', b'{"event":"asked"}', b"\xff"]
)
def test_garbage_is_passed_over(raw: bytes) -> None:
    observer = ClaudeObserver()
    observer.set_contents(SESSION.name, {"sessions/1.json": raw})
    observer.set_contents(MAIN_PROCESS.name, {"claude_main_pid": raw})
    observer.add_lines(EVENTS.name, [raw])
    observer.add_lines(DEBUG.name, [raw])
    assert observer.observe(0.0) is None
    assert observer.asks == {}


def test_hostile_text_is_made_harmless() -> None:
    found = observed("waiting", BASH | {"input": {"command": "\x1b]0;owned\x07echo \x1b[2Jhi"}})
    assert found is not None
    assert found.question == "it wants to use Bash: echo hi"


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
def test_a_text_is_an_answer_to_the_request(text: str, answer: dict[str, str]) -> None:
    observer = asking(BASH)
    file = observer.answer(observer.asks["1"], text, "Ann")
    assert file.path == "plugin/swarm/claude_answers/1.json"
    assert json.loads(file.content) == {**answer, "by": "Ann"}


def test_a_question_is_answered_by_a_digit_or_in_words() -> None:
    given = {"questions": [{"question": "Which rate?", "options": [{"label": "19"}, {"label": "16"}]}]}
    for text, chosen in (("2", "16"), ("ask the boss", "ask the boss"), ("16", "16"), ("no", "no"), ("1\n2", "1\n2")):
        assert answers(BASH | {"tool": "AskUserQuestion", "input": given}, text) == {"Which rate?": chosen}


def test_several_questions_are_answered_line_by_line_and_several_options_by_their_numbers() -> None:
    files = {"question": "Which files?", "multiSelect": True, "options": [{"label": "a.py"}, {"label": "b.py"}]}
    given = {"questions": [{"question": "Which rate?", "options": [{"label": "19"}, {"label": "16"}]}, files]}
    asked = BASH | {"tool": "AskUserQuestion", "input": given}
    assert answers(asked, "2\n1, 2") == {"Which rate?": "16", "Which files?": "a.py, b.py"}
    assert answers(asked, "none\n1 and 3") == {"Which rate?": "none", "Which files?": "1 and 3"}
    assert answers(asked, "none\n2 1") == {"Which rate?": "none", "Which files?": "b.py, a.py"}
    ask = asking(asked).asks["1"]
    assert answer_problem(ask, "2\n1,3").startswith("there is no option 3, only 1 to 2")
    assert answer_problem(ask, "7\n1").startswith("there is no option 7, only 1 to 2")
    assert not answer_problem(ask, "16\n2, 1")
    assert answer_problem(ask, "2") == "it asks 2 questions: the answer needs a line for each of them"
    assert ask.options == ()


def test_a_form_is_filled_in_field_by_field() -> None:
    fields = {"size": {"title": "How large?", "type": "integer"}, "mode": {"enum": ["slow", "fast"]}}
    asked = BASH | {"kind": "Elicitation", "tool": "", "message": "I need two things", "fields": fields}
    ask = asking(asked).asks["1"]
    assert [(question.text, question.options) for question in ask.questions] == [
        ("How large?", ()),
        ("mode", ("slow", "fast")),
    ]
    assert answers(asked, "7\n2") == {"size": "7", "mode": "fast"}
    assert json.loads(asking(asked).answer(ask, "no", "Ann").content)["verdict"] == "deny"


def test_a_form_offers_numbers_as_they_are_written() -> None:
    asked = BASH | {"kind": "Elicitation", "tool": "", "fields": {"size": {"enum": [4, 8], "type": "integer"}}}
    assert asking(asked).asks["1"].options == ("4", "8")
    assert answers(asked, "2") == {"size": "8"}


@pytest.mark.parametrize("text", ["yes, but not there", "Yes please", "ok: go on", "y no"])
def test_a_yes_with_words_is_refused_before_anybody_takes_it_for_a_no(text: str) -> None:
    assert answer_problem(asking(BASH).asks["1"], text).startswith("a yes goes without words")


@pytest.mark.parametrize("text", ["yes", " Y\n", "ok.", "no", "no, yes is wrong", "yesterday will do", "1"])
def test_a_plain_yes_and_any_no_are_answers(text: str) -> None:
    assert not answer_problem(asking(BASH).asks["1"], text)


@pytest.mark.parametrize("text", ["3", "0", "x" * 20_001])
def test_a_number_of_no_option_and_what_is_too_long_are_no_answers(text: str) -> None:
    assert answer_problem(asking(BASH).asks["1"], text)


def test_what_is_not_shown_as_it_is_says_so() -> None:
    hidden = ["ls\x1b[8m; rm -rf /", "x" * 3_000, "ls \u200b", "ls\r\nrm -rf /"]
    shown = [asking(BASH | {"input": {"command": command}}).asks["1"] for command in (*hidden, "ls; rm -rf /")]
    assert [ask.is_inexact for ask in shown] == [True, True, True, True, False]
    unconfined = {"command": "ls", "dangerouslyDisableSandbox": True}
    assert asking(BASH | {"input": unconfined}).asks["1"].is_inexact


def test_what_else_a_tool_is_called_with_is_shown() -> None:
    given = {"file_path": "/w/a.py", "old_string": "1\n2", "replace_all": True, "\x1b[2J": {"a": [1]}}
    ask = asking(BASH | {"tool": "Edit", "input": given}).asks["1"]
    assert ask.subject == "/w/a.py"
    assert ask.detail == 'old_string: 1\n2\nreplace_all: true\n: {"a": [1]}'


def test_nothing_is_typed_into_a_dialog_and_nothing_answered_that_was_not_asked() -> None:
    observer = ClaudeObserver()
    assert (observer.asks, observer.typing_problem) == ({}, "")
    observer.set_contents(SESSION.name, {"sessions/7.json": b'{"status":"waiting"}'})
    assert "attach" in observer.typing_problem


@pytest.mark.parametrize("identity", ["../../../etc/x", "a/b", "", 7, None, "x" * 100, "\u0661"])
def test_an_id_that_leads_elsewhere_is_no_request(identity: object) -> None:
    assert asking(BASH | {"id": identity}).asks == {}


def test_a_flood_of_requests_is_bounded() -> None:
    observer = ClaudeObserver()
    for number in range(5_000):
        observer.add_lines(EVENTS.name, [json.dumps(BASH | {"id": str(number)}).encode()])
        if number % 2:
            observer.add_lines(EVENTS.name, [json.dumps({"event": "closed", "id": str(number)}).encode()])
    assert len(observer.asks) <= OPEN_ASKS
    assert len(observer.asks) + len(observer.ended_asks) <= ASKS_IN_ALL


def test_an_id_is_used_once() -> None:
    observer = asking(BASH, BASH | {"input": {"command": "rm -rf /"}})
    assert observer.asks["1"].subject == "curl x"
    observer.add_lines(EVENTS.name, [b'{"event":"closed","id":"1","why":"answered"}', json.dumps(BASH).encode()])
    assert (observer.asks, ends_of(observer)) == ({}, {"1": "answered"})


def test_a_dialog_that_was_answered_may_stand_for_a_moment_yet() -> None:
    observer = asking(BASH)
    observer.set_contents(SESSION.name, {"sessions/7.json": b'{"status":"waiting"}'})
    observer.observe(0.0)
    observer.observe(9.0)
    observer.add_lines(EVENTS.name, [b'{"event":"closed","id":"1","why":"answered"}'])
    seen = [observer.observe(10.0 + second) for second in (0, 2, 5, 6)]
    assert [each is not None and each.needs_person for each in seen] == [False, False, False, True]
    observer.set_contents(SESSION.name, {"sessions/7.json": b'{"status":"busy"}'})
    assert observer.observe(17.0) == WORKING
    observer.set_contents(SESSION.name, {"sessions/7.json": b'{"status":"waiting"}'})
    seen = [observer.observe(18.0 + second) for second in (0, 2)]
    assert [each is not None and each.needs_person for each in seen] == [False, True]


def test_a_dialog_that_is_gone_ends_what_its_dead_hook_asked_but_not_what_a_subagent_asks() -> None:
    observer = asking(BASH, BASH | {"id": "2", "subagent": "Explore"})
    for second, status in enumerate(("waiting", "busy", "busy", "waiting", "busy")):
        observer.set_contents(SESSION.name, {"sessions/7.json": json.dumps({"status": status}).encode()})
        observer.observe(float(second))
    observer.add_lines(EVENTS.name, [json.dumps(BASH | {"id": "3"}).encode()])
    observer.observe(6.9)
    assert list(observer.asks) == ["1", "2", "3"]
    observer.observe(7.0)
    assert list(observer.asks) == ["2", "3"]
    assert ends_of(observer) == {"1": "on the screen"}


def test_the_end_of_claude_code_ends_what_it_asked() -> None:
    observer = asking(BASH, {"event": "SessionEnd"})
    assert ends_of(observer) == {"1": "Claude Code ended"}


def ends_of(observer: ClaudeObserver) -> dict[str, str]:
    return {identity: ended.why for identity, ended in observer.ended_asks.items()}


def asking(*events: Event) -> ClaudeObserver:
    observer = ClaudeObserver()
    observer.add_lines(EVENTS.name, [json.dumps(event).encode() for event in events])
    return observer


def answers(event: Event, text: str) -> dict[str, str]:
    observer = asking(event)
    content: dict[str, dict[str, str]] = json.loads(observer.answer(observer.asks["1"], text, "Ann").content)
    return content["answers"]
