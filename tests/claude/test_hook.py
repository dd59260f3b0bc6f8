"""The hook: what it notes of Claude Code, and how answers reach a dialog; with the real program."""

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
from swarm_tui.agents.claude import hook
from tests.claude.lab import KEY
from tests.claude.scripted_model import Call, Refusal, ScriptedModel, Turn, bash
from tests.isolation import IsolatedMngr
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.slow

LOOK_UP = bash("curl -s http://127.0.0.1:9/prices", "look up the prices")


@dataclass(frozen=True)
class Agent:
    """A Claude Code agent of mngr's with our hook."""

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
    """Launches agents whose model says given turns, and destroys them afterwards."""

    def __init__(self, mngr: IsolatedMngr, claude: Path, folder: Path) -> None:
        self.mngr, self.claude, self.folder = mngr, claude, folder
        self.names: list[str] = []
        self.models: list[ScriptedModel] = []

    def launch(self, name: str, turns: Sequence[Turn]) -> Agent:
        model, is_launched = ScriptedModel(lambda request: turns).__enter__(), threading.Event()
        # While mngr still waits for its message to arrive it may press Enter again, which would answer a dialog.
        model.guard = lambda request: None if is_launched.wait(PATIENCE) else Refusal()
        self.models.append(model)
        settings = self.folder / "settings.json"
        settings.write_text(json.dumps(hook.hook_settings(sys.executable, hook.__file__)))
        request = CreateRequest(
            name=name,
            agent_type="claude",
            command=("--permission-mode", "default", "--settings", str(settings)),
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


def test_an_answer_reaches_the_dialog(launcher: Launcher) -> None:
    agent = launcher.launch("allowed", [Turn("I look.", [LOOK_UP]), Turn("Done.")])
    asked = agent.wait_for("asked")
    assert (asked["tool"], asked["input"]["command"]) == ("Bash", LOOK_UP.input["command"])
    agent.answer(asked["id"], verdict="deny", text="use the cache")
    assert agent.wait_for("closed") | {"at": 0} == {"at": 0, "event": "closed", "id": asked["id"], "why": "answered"}
    assert agent.wait_for("Stop")["last_assistant_message"] == "Done."
    assert agent.model.requests[-1].tool_results == ["use the cache"]


def test_an_answer_on_the_screen_closes_the_request(launcher: Launcher) -> None:
    agent = launcher.launch("screen", [Turn("I look.", [LOOK_UP]), Turn("Done.")])
    agent.wait_for("asked")
    until(lambda: "Do you want to proceed?" in agent.screen(), "the dialog", describe=agent.screen)
    agent.press("Escape")
    assert agent.wait_for("closed")["why"] in ("on the screen", "interrupted")


def test_a_question_is_answered_by_its_option(launcher: Launcher) -> None:
    question = {
        "question": "Which rate?",
        "header": "Rate",
        "multiSelect": False,
        "options": [{"label": "19", "description": "today's"}, {"label": "16", "description": "of 2020"}],
    }
    agent = launcher.launch(
        "options", [Turn(calls=[Call("AskUserQuestion", {"questions": [question]})]), Turn("Done.")]
    )
    asked = agent.wait_for("asked")
    assert [option["label"] for option in asked["input"]["questions"][0]["options"]] == ["19", "16"]
    agent.answer(asked["id"], verdict="answer", answers={"Which rate?": "19"})
    agent.wait_for("Stop")
    assert '"Which rate?"="19"' in agent.model.requests[-1].tool_results[-1]


def test_a_refused_key_is_noted(launcher: Launcher) -> None:
    agent = launcher.launch("refused", [Turn("Hello.", before=[Refusal(403, "no access")] * 9)])
    assert agent.wait_for("StopFailure")["error"] == "authentication_failed"
