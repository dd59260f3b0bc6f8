"""The scripted model with the real Claude Code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.claude.lab import KEY
from tests.claude.scripted_model import Garbage, HangUp, Refusal, Request, ScriptedModel, Trouble, Turn, bash
from tests.waiting import PATIENCE


@pytest.mark.slow
@pytest.mark.parametrize("trouble", [(), (Refusal(529),), (HangUp(),), (HangUp(3),), (Garbage(),)])
def test_claude_gets_answer_after_errors(trouble: tuple[Trouble, ...], claude: Path, tmp_path: Path) -> None:
    turns = [Turn(calls=[bash("echo $((6 * 7))")]), Turn("It is done.", before=trouble)]
    with ScriptedModel(lambda request: turns) as model:
        answer = ask_claude(claude, model, tmp_path)
    assert answer == "It is done."
    assert model.requests[-1].tool_results == ["42"]


@pytest.mark.slow
def test_play_gets_messages_of_user(claude: Path, tmp_path: Path) -> None:
    def play(request: Request) -> list[Turn]:
        return [Turn(f"You said {request.user_texts[-1]!r}.")]

    with ScriptedModel(play) as model:
        assert ask_claude(claude, model, tmp_path, "good morning") == "You said 'good morning'."


def ask_claude(claude: Path, model: ScriptedModel, home: Path, words: str = "begin") -> str:
    done = subprocess.run(
        [claude / "claude", "--permission-mode", "default", "--allowedTools", "Bash", "-p", words],
        cwd=home,
        env={"HOME": str(home), "PATH": f"{claude}:/usr/bin:/bin", "ANTHROPIC_API_KEY": KEY}
        | {"ANTHROPIC_BASE_URL": model.url, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
