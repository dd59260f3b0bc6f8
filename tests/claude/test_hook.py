"""The hook with the real Claude Code: recorded events, and answers to dialogs."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.agents import hook
from swarm_tui.agents.hook_questions import answer_content, parse_question
from swarm_tui.model.questions import Question, QuestionKind, answer_problem
from tests.claude import form_server
from tests.claude.lab import KEY
from tests.claude.scripted_model import Call, Refusal, ScriptedModel, Turn, bash
from tests.isolation import IsolatedMngr
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.slow

LOOK_UP = bash("curl -s http://127.0.0.1:9/prices", "look up the prices")


@dataclass(frozen=True)
class Agent:
    """A Claude Code agent of mngr with our hook."""

    name: str
    state_dir: Path
    model: ScriptedModel
    mngr: IsolatedMngr

    def events(self, name: str) -> list[dict[str, Any]]:
        path = self.state_dir / hook.EVENTS_PATH
        lines = path.read_text().splitlines() if path.exists() else []
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def wait_for(self, name: str) -> dict[str, Any]:
        return until(lambda: self.events(name), f"the event {name}", describe=self.screen)[-1]

    def answer(self, identity: str, **answer: object) -> None:
        folder = self.state_dir / hook.ANSWERS_FOLDER
        folder.mkdir(exist_ok=True)
        (folder / "draft").write_text(json.dumps(answer))
        os.rename(folder / "draft", folder / f"{identity}.json")

    def screen(self) -> str:
        session = f"mngr-{self.name}"
        return asyncio.run(self.mngr.tmux.capture([session])).get(session) or "no screen"

    def press(self, *keys: str) -> None:
        words = ["tmux", "send-keys", "-t", f"=mngr-{self.name}:", *keys]
        subprocess.run(words, env=self.mngr.environment, check=True)


class Launcher:
    """Launches agents whose model has given turns, and destroys them afterwards."""

    def __init__(self, mngr: IsolatedMngr, claude: Path, folder: Path) -> None:
        self.mngr, self.claude, self.folder = mngr, claude, folder
        self.names: list[str] = []
        self.models: list[ScriptedModel] = []

    def launch(self, name: str, turns: Sequence[Turn], *words: str, mode: str = "default") -> Agent:
        model, is_launched = ScriptedModel(lambda request: turns).__enter__(), threading.Event()
        # While mngr waits for its message to arrive, it may press Enter again, which would answer a dialog.
        model.guard = lambda request: None if is_launched.wait(PATIENCE) else Refusal()
        self.models.append(model)
        settings = self.folder / "settings.json"
        settings.write_text(json.dumps(hook.hook_settings(sys.executable, hook.__file__)))
        request = CreateRequest(
            name=name,
            agent_type="claude",
            command=("--permission-mode", mode, "--settings", str(settings), *words),
            source=self.mngr.repository,
            message="begin",
            environment={
                "ANTHROPIC_BASE_URL": model.url,
                "ANTHROPIC_API_KEY": KEY,
                "PATH": f"{self.claude}:/usr/bin:/bin",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            },
            is_approved=True,
        )
        self.mngr.environment["PATH"] = f"{self.claude}:{os.environ['PATH']}"
        created = asyncio.run(self.mngr.adapter.create(request))
        self.names.append(name)
        is_launched.set()
        return Agent(name, self.mngr.host_dir / "agents" / created.agent_id, model, self.mngr)


@pytest.fixture
def launcher(isolated_mngr: IsolatedMngr, claude: Path, tmp_path: Path) -> Iterator[Launcher]:
    launcher = Launcher(isolated_mngr, claude, tmp_path)
    yield launcher
    asyncio.run(isolated_mngr.adapter.destroy(launcher.names))
    for model in launcher.models:
        model.__exit__()


def test_answer_reaches_the_dialog(launcher: Launcher) -> None:
    agent = launcher.launch("allowed", [Turn("I look.", [LOOK_UP]), Turn("Done.")])
    asked = agent.wait_for("asked")
    assert (asked["tool"], asked["input"]["command"]) == ("Bash", LOOK_UP.input["command"])
    agent.answer(asked["id"], verdict="deny", text="use the cache")
    assert agent.wait_for("closed") | {"at": 0} == {"at": 0, "event": "closed", "id": asked["id"], "why": "answered"}
    assert agent.wait_for("Stop")["last_assistant_message"] == "Done."
    assert agent.model.requests[-1].tool_results == ["use the cache"]


def test_answer_on_screen_closes_the_request(launcher: Launcher) -> None:
    agent = launcher.launch("screen", [Turn("I look.", [LOOK_UP]), Turn("Done.")])
    agent.wait_for("asked")
    until(lambda: "Do you want to proceed?" in agent.screen(), "the dialog", describe=agent.screen)
    agent.press("Escape")
    assert agent.wait_for("closed")["why"] in ("on the screen", "interrupted")


def ask_in(asked: dict[str, Any]) -> Question:
    question = parse_question(asked)
    assert question is not None
    return question


def test_plan_without_file_is_read_completely(launcher: Launcher) -> None:
    plan = "\n".join(f"{number}. change part {number} of the program, and test it" for number in range(1, 61))
    turns = [Turn("I have a plan.", [Call("ExitPlanMode", {"plan": plan})]), Turn("Done.")]
    agent = launcher.launch("plan", turns, mode="plan")
    asked = agent.wait_for("asked")
    question = ask_in(asked)
    assert question.kind is QuestionKind.PLAN
    assert question.text == f"it asks to carry out its plan:\n{plan}"
    agent.answer(asked["id"], **answer_content(question, "no, begin with part 7"))
    agent.wait_for("Stop")
    assert "begin with part 7" in agent.model.requests[-1].tool_results[-1]


def test_one_answer_covers_several_questions(launcher: Launcher) -> None:
    rate = {
        "question": "Which rate?",
        "header": "Rate",
        "multiSelect": False,
        "options": [{"label": "19", "description": "as the test has it"}, {"label": "16", "description": "as in 2020"}],
    }
    files = {
        "question": "Which files?",
        "header": "Files",
        "multiSelect": True,
        "options": [{"label": name, "description": f"the file {name}"} for name in ("a.py", "b.py", "c.py")],
    }
    agent = launcher.launch(
        "several", [Turn(calls=[Call("AskUserQuestion", {"questions": [rate, files]})]), Turn("Done.")]
    )
    asked = agent.wait_for("asked")
    question = ask_in(asked)
    assert question.parts[0].descriptions == ("as the test has it", "as in 2020")
    assert [question.is_many for question in question.parts] == [False, True]
    assert answer_problem(question, "1,2\n1").startswith("1 of 2: choose only one option")
    assert not answer_problem(question, "2\n1,3")
    agent.answer(asked["id"], **answer_content(question, "2\n1,3"))
    agent.wait_for("Stop")
    result = agent.model.requests[-1].tool_results[-1]
    assert '"Which rate?"="16"' in result
    assert '"Which files?"="a.py, c.py"' in result


def test_form_of_mcp_server_is_validated_and_answered(launcher: Launcher, tmp_path: Path) -> None:
    servers = {"mcpServers": {"form": {"command": sys.executable, "args": [form_server.__file__]}}}
    (tmp_path / "servers.json").write_text(json.dumps(servers))
    words = ("--mcp-config", str(tmp_path / "servers.json"), "--allowedTools", "mcp__form__configure")
    agent = launcher.launch("form", [Turn(calls=[Call("mcp__form__configure", {})]), Turn("Done.")], *words)
    asked = agent.wait_for("asked")
    question = ask_in(asked)
    assert [(question.text, question.is_needed) for question in question.parts] == [
        ("Port", True), ("Public", False), ("mode", False), ("note", False),
    ]  # fmt: skip
    assert answer_problem(question, "maybe") == "1 of 4: invalid answer 'maybe'; expected a whole number, 1 to 65535"
    assert answer_problem(question, "80\n1\n3").startswith("3 of 4: invalid option 3")
    assert not answer_problem(question, "80\n2\n2")
    agent.answer(asked["id"], **answer_content(question, "80\n2\n2"))
    agent.wait_for("Stop")
    answered = json.loads(agent.model.requests[-1].tool_results[-1])
    assert answered["action"] == "accept"
    assert answered["content"] == {"port": 80, "is_public": False, "mode": "fast"}


def test_rejected_api_key_is_recorded(launcher: Launcher) -> None:
    agent = launcher.launch("refused", [Turn("Hello.", before=[Refusal(403, "no access")] * 9)])
    assert agent.wait_for("StopFailure")["error"] == "authentication_failed"
