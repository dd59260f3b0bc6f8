"""Test ids from the labels and the prompts of agents that are still there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from swarm_tui.adapters.mngr_messages import AgentDetails
from swarm_tui.tmr.live_ids import with_live_ids
from swarm_tui.tmr.run_folder import TmrAgent, TmrRun

ID = "agent-0123456789abcdef"


def run_of(*guessed: str) -> TmrRun:
    agents = tuple(TmrAgent(f"tmr-1-{name}", name, True, None, "") for name in guessed)
    return TmrRun(Path("/run"), agents, None, (), has_bundles=False)


def ids_of(path: Path, guessed: str, record: object, **labels: str) -> tuple[str, bool]:
    folder = path / "agents" / ID
    folder.mkdir(parents=True)
    (folder / "data.json").write_text(json.dumps(record))
    live = {f"tmr-1-{guessed}": AgentDetails(id=ID, name=f"tmr-1-{guessed}", labels=labels)}
    (agent,) = with_live_ids(run_of(guessed), live, path).agents
    return agent.test, agent.is_guessed


@pytest.mark.parametrize(
    ("guessed", "test"),
    [
        ("test-sum", "tests/test_shop.py::test_sum"),
        ("test-sum-2", "tests/test_shop.py::TestTotal::test_sum"),
        ("test-sum-a-b-x", "tests/test_shop.py::test_sum[a b-X]"),
    ],
)
def test_a_prompt_names_the_test_that_its_agent_is_called_after(tmp_path: Path, guessed: str, test: str) -> None:
    prompt = f"As `pytest tests/test_other.py::test_other` shows.\nRun `pytest --timeout=120 -q {test}` first."
    assert ids_of(tmp_path, guessed, {"initial_message": prompt}) == (test, False)


def test_a_label_is_believed_before_the_prompt(tmp_path: Path) -> None:
    record = {"initial_message": "pytest a.py::test_sum"}
    assert ids_of(tmp_path, "test-sum", record, mapreduce_task_id="b.py::test_it") == ("b.py::test_it", False)


@pytest.mark.parametrize("record", [{}, [], {"initial_message": 7}, {"initial_message": "pytest a.py::test_other"}])
def test_what_tells_nothing_leaves_the_guess(tmp_path: Path, record: object) -> None:
    assert ids_of(tmp_path, "test-sum", record) == ("test-sum", True)
