"""The inbox with real agents: three kinds of dialogs, each group answered with two keys, and a rule for the rest."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from swarm_tui.model.formatting import counted
from tests.claude.lab import CHECKS, ClaudeLab, claude_lab
from tests.claude.sweep import LONGEST
from tests.isolation import IsolatedMngr, isolate_mngr
from tests.terminal import ProgramTerminal
from tests.waiting import until

pytestmark = pytest.mark.slow

AGENTS_OF_EACH = int(os.environ.get("SWARM_AGENTS_OF_EACH", "1"))
"""The number of agents for each kind of dialog; 7 are 21 agents, which a small machine launches slowly."""
FUNCTIONS = [name for name in CHECKS if name != "total"]


@pytest.fixture
def mngr(mngr_path: str) -> Iterator[IsolatedMngr]:
    with isolate_mngr(mngr_path) as isolated:
        yield isolated


@pytest.fixture
def lab(mngr: IsolatedMngr, claude: Path, tmp_path: Path) -> Iterator[Callable[[list[str]], ClaudeLab]]:
    opened: list[Any] = []

    def begin(tests: list[str]) -> ClaudeLab:
        lab = claude_lab(mngr, claude, tmp_path / "shop", tests)
        opened.append(lab)
        return lab.__enter__()

    yield begin
    for lab in opened:
        lab.__exit__(None, None, None)


def pending(lab: ClaudeLab) -> list[dict[str, Any]]:
    listed = lab.program.call("pending", "--json")
    groups: list[dict[str, Any]] = json.loads(listed.stdout)["groups"] if listed.returncode == 0 else []
    return groups


def kinds(lab: ClaudeLab) -> Counter[str]:
    found: Counter[str] = Counter()
    for group in pending(lab):
        found[group["kind"]] += len(group["items"])
    return found


def given(lab: ClaudeLab) -> Counter[str]:
    """Return how often each question was answered, by its agent and its id."""
    lines = (lab.program.newest().root / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    return Counter(f"{event['test']} {event['question']}" for event in events if event["type"] == "question_answered")


def test_dialog_groups_and_rule_are_answered(
    lab: Callable[[list[str]], ClaudeLab],
) -> None:
    plays = ["twice", "options", "fetch"]
    functions = [f"{FUNCTIONS[place % len(FUNCTIONS)]}_{place}" for place in range(AGENTS_OF_EACH)]
    here = lab([f"{function}_{play}" for play in plays for function in functions])
    number = AGENTS_OF_EACH * len(plays)
    words = ("--agent", "claude", "--ignore-load", f"--slots={number}", "--integrator", "none")
    sweep = here.program.start("run", "--headless", *words)
    wanted = Counter({"permission": 2 * AGENTS_OF_EACH, "question": AGENTS_OF_EACH})
    until(lambda: kinds(here) == wanted, "all to ask", seconds=LONGEST, describe=lambda: str(kinds(here)))
    command = [sys.executable, "-m", "swarm_tui", "open"]
    environment = here.program.environment | {"PYTHONPATH": str(Path(__file__).parents[2])}
    with ProgramTerminal(command, environment=environment, folder=here.project.root) as terminal:
        terminal.wait_until(lambda screen: screen.has_list(f"Tests {number}"))
        terminal.press("5")
        terminal.wait_until(lambda screen: screen.has_list(f"Inbox {number}"))
        for _ in plays:
            terminal.press("A")
            screen = terminal.wait_for("Answer all")
            terminal.press("1" if screen.has("question: ") else "n" if screen.has("permission: WebFetch") else "y")
            terminal.wait_for(f"{counted(AGENTS_OF_EACH, 'agent')} answered")
            terminal.wait_until_gone("Answer all")
        assert list(given(here).values()) == [1] * number
        # Some agents ask for more now, and a rule allows it.
        terminal.wait_for("9/stock")
        terminal.press("r")
        terminal.wait_for("commands that begin with `curl`")
        terminal.press("3")
        terminal.wait_for("Always answer yes, until this sweep ends?")
        terminal.press("y")
        terminal.wait_for(f"{AGENTS_OF_EACH} answer")
    assert sweep.wait(timeout=LONGEST) == 0
    assert list(given(here).values()) == [1] * (number + AGENTS_OF_EACH)
    heard = [text for request in here.model.requests for text in request.tool_results]
    assert any('"Which rate is right?"="19 percent"' in text for text in heard)
    state = here.program.opened().state
    assert state.rule_uses == {"r1": AGENTS_OF_EACH}
    assert len([line for line in state.log if "by rule r1" in line.text]) == AGENTS_OF_EACH
