"""`swarm-tui pending` and `swarm-tui answer`: everything that is asked is printed, and answers are checked first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from swarm_tui.cli.main import run_command_line
from swarm_tui.journal.append import EngineLock, JournalWriter
from swarm_tui.journal.events import EngineStarted, Launched, Queued
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.requests import RequestFollower
from swarm_tui.model.questions import Question, QuestionKind, QuestionPart
from swarm_tui.model.spec import MngrSettings, SweepSpec
from swarm_tui.questions.events import QuestionAsked

RATE = QuestionPart(key="r", text="Which rate?", options=("19", "16"), descriptions=("as the test has it", ""))
FILES = QuestionPart(key="f", text="Which files?", options=("a.py", "b.py"), is_many=True)
PORT = QuestionPart(key="p", text="Port", field="integer", least=1, most=65535)
PLAN = "it asks to carry out its plan:\n" + "\n".join(f"{number}. change part {number}" for number in range(1, 61))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[SweepFolder]:
    folder = SweepFolder(tmp_path / "20261118-061200")
    folder.write_spec(
        SweepSpec(sweep=folder.name, repository=str(tmp_path), base="abc", created_at=1.0, mngr=MngrSettings(path="m"))
    )
    lock = EngineLock(folder.lock)
    lock.acquire()
    yield folder
    lock.release()


def ask(folder: SweepFolder, *questions: Question) -> None:
    with JournalWriter(folder.events) as journal:
        journal.append(EngineStarted(pid=1, machine="m", version="1", slots=4))
        for number, asked in enumerate(questions):
            test = f"t.py::test_{number}"
            journal.append(Queued(test=test, agent=f"agent-{number}", branch=f"b{number}", file="t.py"))
            journal.append(Launched(test=test))
            journal.append(QuestionAsked(test=test, question=asked))


def question(*questions: QuestionPart, identity: str = "1", kind: QuestionKind = QuestionKind.QUESTION) -> Question:
    text = "About the server" if kind is QuestionKind.INPUT else "\n".join(asked.text for asked in questions)
    return Question(id=identity, kind=kind, text=text, parts=questions)


def pending(folder: SweepFolder, capsys: pytest.CaptureFixture[str]) -> tuple[list[str], list[dict[str, Any]]]:
    """Return what is printed as text, and the groups of the JSON."""
    assert run_command_line(["pending", str(folder.root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert run_command_line(["pending", str(folder.root), "--json"]) == 0
    groups: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["groups"]
    return lines, groups


def answer(folder: SweepFolder, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = run_command_line(["answer", "--sweep", str(folder.root), *words])
    return code, capsys.readouterr().err


def test_questions_are_printed_once_with_options_descriptions_and_hints(
    folder: SweepFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(folder, question(RATE, FILES))
    lines, (group,) = pending(folder, capsys)
    assert lines[3:] == [
        "    1 of 2: Which rate?",
        "      1 19: as the test has it",
        "      2 16",
        "      (choose one by its number, or answer in words)",
        "    2 of 2: Which files?",
        "      1 a.py",
        "      2 b.py",
        "      (choose one or more by number, such as 1,2, or answer in words)",
        "    one line for each question",
    ]
    first, second = group["items"][0]["parts"]
    assert (first["descriptions"], first["is_many"], second["is_many"]) == (["as the test has it", ""], False, True)


def test_fields_are_printed_with_their_types_and_limits(
    folder: SweepFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(folder, question(PORT, kind=QuestionKind.INPUT))
    lines, (group,) = pending(folder, capsys)
    assert lines[3:] == [
        "    About the server",
        "    Port",
        "      (a whole number, 1 to 65535)",
        "    `decline` to refuse",
    ]
    (field,) = group["items"][0]["parts"]
    assert (field["field"], field["least"], field["most"], field["is_needed"]) == ("integer", 1, 65535, True)
    identity = group["items"][0]["id"]
    assert answer(folder, capsys, identity, "maybe")[0] == 1
    assert RequestFollower(folder).read()[0] == []


def test_plan_is_printed_in_full(folder: SweepFolder, capsys: pytest.CaptureFixture[str]) -> None:
    ask(folder, Question(id="1", kind=QuestionKind.PLAN, tool="ExitPlanMode", text=PLAN))
    lines, _ = pending(folder, capsys)
    assert [line.strip() for line in lines if "change part" in line and line.startswith("    ")] == PLAN.split("\n")[1:]


def test_yes_to_a_group_with_other_options_is_refused_with_the_options(
    folder: SweepFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(folder, question(RATE), question(RATE, identity="2"))
    _, (group,) = pending(folder, capsys)
    assert len(group["items"]) == 2
    code, said = answer(folder, capsys, "--group", group["group"], "yes")
    assert code == 1
    assert "invalid option 'yes'; the options are 1 19, 2 16" in said
    assert RequestFollower(folder).read()[0] == []


def test_two_options_of_a_single_choice_are_refused(folder: SweepFolder, capsys: pytest.CaptureFixture[str]) -> None:
    ask(folder, question(RATE))
    _, (group,) = pending(folder, capsys)
    code, said = answer(folder, capsys, group["items"][0]["id"], "1,2")
    assert (code, "choose only one option, 1 to 2" in said) == (1, True)
