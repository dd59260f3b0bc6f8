"""The inbox: its items, groups, order and possible answers."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from swarm_tui.integrator.events import Integrated
from swarm_tui.journal.events import AgentStateChanged, Queued
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import SweepState
from swarm_tui.journal.work_events import Try
from swarm_tui.limits.events import LoginLost
from swarm_tui.model.event import Event
from swarm_tui.model.pulled import ClaimCheck, Escalation, EscalationKind, PulledWork
from swarm_tui.model.questions import OpenQuestion, Question, QuestionKind, QuestionPart, common_subject, fits, item_id
from swarm_tui.model.results import Result, State
from swarm_tui.questions.events import QuestionAsked, QuestionClosed
from swarm_tui.questions.groups import commands_in, find_wait, group_key, is_turn_over, item_of_turn, proposed_rules
from swarm_tui.questions.inbox import (
    NOT_TAKEN_AFTER,
    InboxIndex,
    ItemKind,
    find_groups,
    find_items,
    group_items,
    inbox_as_markdown,
    needs_person,
)
from tests.journal.sweeps import events

NOW = 10_000.0


def bash(command: str, **more: Any) -> Question:
    made: dict[str, Any] = {
        "id": "1",
        "at": 5.0,
        "tool": "Bash",
        "subject": command,
        "text": f"it wants to use Bash: {command}",
    }
    return msgspec.convert(made | more, Question)


def asking(test: str, *open_questions: Question, **more: Any) -> TestRecord:
    opened = tuple(OpenQuestion(question, item_id(test, question)) for question in open_questions)
    return TestRecord(test, agent=f"agent-{test}", state=State.WAITING, since=5.0, open_questions=opened, **more)


def done(test: str, result: Result, **more: Any) -> TestRecord:
    return TestRecord(test, state=State.DONE, result=result, since=7.0, **more)


def sweep_of(*records: TestRecord) -> SweepState:
    state = SweepState()
    state.records = {record.test: record for record in records}
    return state


def groups_of(
    *records: TestRecord, now: float = NOW, later: frozenset[str] = frozenset()
) -> list[tuple[str, int, str]]:
    found = find_groups(sweep_of(*records), now, later)
    return [(group.kind.value, len(group.items), group.title) for group in found]


def test_similar_questions_are_one_group() -> None:
    records = [asking(f"t{number}", bash(f"pytest tests/t{number}.py")) for number in range(31)]
    records.append(asking("two", bash("curl x"), bash("curl x", id="2", subagent="Explore")))
    assert groups_of(*records) == [("permission", 31, "Bash `pytest …`"), ("permission", 2, "Bash `curl x`")]
    ids = [item.id for item in find_items(sweep_of(*records), records, NOW)]
    assert len(set(ids)) == 33


def test_own_interpreters_are_one_group_and_rule() -> None:
    records = [
        structs.replace(
            asking(f"t{number}", bash(f"/runs/agents/a{number}/venv/bin/python -m pytest tests/t{number}.py")),
            agent_dir=f"/runs/agents/a{number}",
        )
        for number in (1, 2)
    ]
    assert groups_of(*records) == [("permission", 2, "Bash `OWN/venv/bin/python -m pytest …`")]
    (record, other) = records
    rules = proposed_rules(record.open_questions[0].question, record.own_places)
    assert [rule.pattern for rule in rules if rule.way == "begins"] == ["OWN/venv/bin/python -m pytest"]
    assert fits(
        rules[1], other.open_questions[0].question, common_subject(other.open_questions[0].question, other.own_places)
    )
    # The folder of another agent is not replaced.
    assert not fits(
        rules[1], record.open_questions[0].question, common_subject(record.open_questions[0].question, other.own_places)
    )


def test_submissions_on_own_branches_are_one_group() -> None:
    script = "set -e\nif git rev-list ce1f..swarm/s/{0}; then\n  git bundle create ce1f..swarm/s/{0}\nfi"
    records = [asking(f"t{number}", bash(script.format(number)), branch=f"swarm/s/{number}") for number in (1, 12)]
    assert [number for _, number, _ in groups_of(*records)] == [2]


def test_groups_are_sorted_by_urgency() -> None:
    blocked = PulledWork(escalations=(Escalation(title="no host", detail_markdown="why"),))
    hard = PulledWork(escalations=(Escalation(kind=EscalationKind.HARD_TO_USE, title="odd flag"),))
    state = sweep_of(
        done("h", Result.BETTER, pulled=hard),
        done("u", Result.UNRESOLVED, reason="gave up"),
        done("f", Result.ERROR, reason="no outcome"),
        done("b", Result.BLOCKED, pulled=blocked),
        TestRecord("s", state=State.RUNNING, stuck="the same call five times"),
        TestRecord("w", state=State.WAITING, question="May I?", since=4.0),
        TestRecord("d", state=State.WAITING, question="a dialog is open", needs_terminal=True, since=3.0),
        asking("p", bash("curl x")),
        done("c", Result.CLEAN),
        TestRecord("q"),
    )
    state.apply(Integrated(at=9.0, branch="b", tip="t", fixes=6))
    state.budget = state.budget._replace(total=20.0, percent=100)
    state.apply(LoginLost(at=9.5, test="s", reason="403"))
    found = find_groups(state, NOW)
    assert [group.kind.value for group in found] == [
        *("login", "budget", "dialog", "waits", "permission", "stuck", "blocked", "error", "unresolved", "review"),
        "hard to use",
    ]
    assert found[-2].title == "6 fixes are ready to review"
    assert [group.kind for group in found if group.answerable] == [ItemKind.TURN, ItemKind.PERMISSION]
    document = inbox_as_markdown(found, "20261118")
    assert "## no host (blocked, 1)" in document
    assert "why" in document
    assert "- `b`" in document


def test_failed_result_shows_reason_not_failed_try() -> None:
    failure = "test_shop.py:3: assert 8 == 2"
    record = done("f", Result.ERROR, reason="its archive contains no report", tries=(Try(1, False, 1.0, 2.0, failure),))
    assert groups_of(record) == [("error", 1, "its archive contains no report")]


def test_claim_needs_user_only_if_unmeasurable() -> None:
    def claimed(verdict: str) -> TestRecord:
        check = msgspec.convert({"claim": "impl_fix", "verdict": verdict}, ClaimCheck)
        return done(verdict, Result.CLAIMED, reason=f"it is {verdict}", pulled=PulledWork(check=check))

    records = [claimed(verdict) for verdict in ("pending", "impossible", "unmeasured")]
    assert groups_of(*records) == [("claimed", 1, "it is impossible"), ("claimed", 1, "it is unmeasured")]
    assert [needs_person(record) for record in records] == [False, True, True]


def test_same_titles_are_one_group() -> None:
    records = [
        done(f"t{number}", Result.BLOCKED, pulled=PulledWork(escalations=(Escalation(title=f"no host {number}"),)))
        for number in range(2)
    ]
    assert groups_of(*records) == [("blocked", 2, "no host 0")]


def test_inexact_question_is_not_grouped() -> None:
    records = [asking(f"t{number}", bash("ls", id=str(number), is_inexact=True)) for number in range(2)]
    groups = find_groups(sweep_of(*records), NOW)
    assert len(groups) == 2
    assert "Shown incompletely" in groups[0].items[0].text


@pytest.mark.parametrize(
    ("line", "programs"),
    [
        ("pytest -q tests/a.py", "pytest …"),
        ("pytest", "pytest"),
        (".venv/bin/python -m pytest -q", ".venv/bin/python -m pytest …"),
        ("git push origin main", "git push …"),
        ("cd COPY && pytest -q; ls", "cd …; pytest …; ls"),
        ("pytest -q | tail -3", "pytest …; tail …"),
        ("bash -c 'rm -rf /'", "bash -c rm -rf /"),
        ("python x.py", "python x.py"),
        ("pytest $(rm x)", "pytest $(rm x)"),
        ("pytest `rm x`", "pytest `rm x`"),
        ("echo a > /etc/passwd", "echo a > /etc/passwd"),
        ("FOO=1 pytest -q", "FOO=1 pytest -q"),
        ("echo 'unbalanced", "echo 'unbalanced"),
        ("a\nb", "a\nb"),
    ],
)
def test_commands_are_grouped_by_program(line: str, programs: str) -> None:
    assert commands_in(line) == programs


def test_new_command_changes_group_id_not_key() -> None:
    two = [asking(f"t{number}", bash("pytest -q")) for number in range(2)]
    (before,) = find_groups(sweep_of(*two), NOW)
    (same,) = find_groups(sweep_of(*two, asking("t2", bash("pytest -q"))), NOW)
    (other,) = find_groups(sweep_of(*two, asking("t2", bash("pytest --pdb"))), NOW)
    assert before.id == same.id != other.id
    assert before.key == same.key == other.key
    assert dict(other.different) == {"Bash `pytest -q`": 2, "Bash `pytest --pdb`": 1}


def test_title_is_reason_of_status() -> None:
    failing = Try(number=1, passed=False, seconds=1.0, at=5.0, failure="test_look.py:37: ExpectationFailed")
    reason = "Needs a decision: take wcwidth as a dependency, or live with it"
    record = structs.replace(done("a", Result.UNRESOLVED, reason=reason), tries=(failing,))
    (item,) = find_items(sweep_of(record), [record], NOW)
    assert item.title == reason
    assert item.text.split("\n") == [reason, "test_look.py:37: ExpectationFailed"]
    (item,) = find_items(sweep_of(record), [structs.replace(record, reason="")], NOW)
    assert item.title == "test_look.py:37: ExpectationFailed"


def test_files_are_grouped_by_folder_pages_by_host() -> None:
    edit = bash("/copies/a/tests/test_x.py", tool="Edit")
    assert group_key(edit, {"COPY": "/copies/a"}).title == "Edit `COPY/tests/…`"
    fetch = bash("https://docs.python.org/3/x.html", tool="WebFetch")
    assert group_key(fetch, {}).title == "WebFetch `https://docs.python.org/…`"
    assert group_key(bash("", tool="mcp__db__drop"), {}).title == "mcp__db__drop"


def test_questions_are_grouped_by_text_and_options() -> None:
    def which(*options: str, text: str = "Which?") -> Question:
        asked = QuestionPart(key="k", text=text, options=options)
        return Question(id="1", kind=QuestionKind.QUESTION, text=text, parts=(asked,))

    records = [
        asking("a", which("19", "16")),
        asking("b", which("19", "16")),
        asking("c", which("16", "19")),
        asking("d", which("19", "16", text="What?")),
    ]
    assert sorted(number for _, number, _ in groups_of(*records)) == [1, 1, 2]


def test_pending_answer_hides_item_until_timeout() -> None:
    record = asking("a", bash("ls"))
    record = structs.replace(
        record, open_questions=(record.open_questions[0]._replace(answered_at=NOW, answered_by="ann"),)
    )
    assert groups_of(record, now=NOW + 1) == []
    (group,) = find_groups(sweep_of(record), NOW + NOT_TAKEN_AFTER)
    assert group.answerable == ()
    assert group.items[0].problem == "the hook did not read the answer of ann; answer in the agent's terminal"


def test_deferred_group_is_last_until_changed() -> None:
    records = [asking("a", bash("ls")), asking("b", bash("rm x"))]
    item = find_items(sweep_of(*records), records[:1], NOW)[0]
    later = frozenset({item.id})
    found = group_items(find_items(sweep_of(*records), records, NOW), later)
    assert [(group.title, group.is_deferred) for group in found] == [("Bash `rm x`", False), ("Bash `ls`", True)]
    again = asking("a", bash("ls", id="2"))
    assert not any(group.is_deferred for group in find_groups(sweep_of(again, records[1]), NOW, later))


def test_answered_agent_has_no_item() -> None:
    state = SweepState().apply_all(
        [
            Queued(at=1, test="t", agent="a"),
            QuestionAsked(at=2, test="t", question=bash("ls")),
            AgentStateChanged(at=3, test="t", state=State.WAITING, source="hook", question="it wants to use Bash: ls"),
            QuestionClosed(at=4, test="t", question="1", why="answered"),
        ]
    )
    assert find_groups(state, 5.0) == []
    state.apply(AgentStateChanged(at=6, test="t", state=State.WAITING, source="hook", question="What now?"))
    assert [group.kind for group in find_groups(state, 7.0)] == [ItemKind.TURN]


def test_each_turn_is_separate_item() -> None:
    first = TestRecord("a", state=State.WAITING, question="May I?", since=1.0)
    assert is_turn_over(first)
    assert item_of_turn(first) != item_of_turn(structs.replace(first, since=2.0))
    assert item_of_turn(first) != item_of_turn(structs.replace(first, question="May I not?"))
    assert find_wait([first], item_of_turn(first)) == (first, None)
    assert find_wait([first], "gone") is None


def test_proposed_rules_start_with_narrowest() -> None:
    def proposed(command: str, **more: Any) -> list[tuple[str, str]]:
        return [(rule.way, rule.pattern) for rule in proposed_rules(bash(command, **more), {"COPY": "/copies/a"})]

    assert proposed("pytest -q tests/a.py") == [
        ("exactly", "pytest -q tests/a.py"),
        ("begins", "pytest -q"),
        ("begins", "pytest"),
    ]
    assert proposed("git push origin") == [("exactly", "git push origin"), ("begins", "git push")]
    assert proposed("python -m pytest -q") == [("exactly", "python -m pytest -q"), ("begins", "python -m pytest")]
    assert proposed("bash -c x") == [("exactly", "bash -c x")]
    assert proposed("sudo rm x") == [("exactly", "sudo rm x")]
    assert proposed("cd /copies/a && pytest") == [("exactly", "cd COPY && pytest")]
    assert proposed("ls", is_inexact=True) == []
    assert proposed("/copies/a/tests/x.py", tool="Edit") == [("exactly", "COPY/tests/x.py"), ("folder", "COPY/tests")]
    assert proposed("", tool="mcp__db__get") == [("any", "")]
    assert proposed("ls", kind=QuestionKind.PLAN) == []


@given(st.text(alphabet="ab -;&|$`'\"\n/.=", max_size=30))
def test_proposed_rule_matches_its_question(command: str) -> None:
    question = bash(command)
    for rule in proposed_rules(question, {}):
        assert fits(rule, question, command)


@given(events, events)
def test_index_equals_full_computation(first: list[Event], then: list[Event]) -> None:
    state, index = SweepState(), InboxIndex()
    for part, now in ((first, 50.0), (then, 2_000.0)):
        state.apply_all(structs.replace(event, at=float(place)) for place, event in enumerate(part))
        items = index.items(state, state.tests(), now)
        assert sorted(items, key=hash) == sorted(find_items(state, state.tests(), now), key=hash)
        groups = group_items(items)
        assert sum(len(group.items) for group in groups) == len(items)
        assert len({group.key for group in groups}) == len(groups)


def test_thousands_of_questions_are_fast() -> None:
    records = [asking(f"t{number}", bash(f"pytest tests/{number}.py")) for number in range(5_000)]
    state, index = sweep_of(*records), InboxIndex()
    index.items(state, records, NOW)
    began = time.process_time()
    (group,) = group_items(index.items(state, records, NOW + 1))
    assert len(group.items) == 5_000
    # It takes 30 ms; comparing each with each would take two seconds.
    assert time.process_time() - began < 1
