"""Learns test ids from agents that mngr still knows, where the page of a run does not tell them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from swarm_tui.adapters.mngr_messages import AgentDetails
from swarm_tui.journal.pulled_files import read_start
from swarm_tui.model.text import plain
from swarm_tui.tmr.page import TEST_LIMIT
from swarm_tui.tmr.run_folder import TmrAgent, TmrRun, is_named_after

LABELS: Final = ("mapreduce_task_id", "test")
RECORD_LIMIT: Final = 1 << 22
_PYTEST: Final = re.compile(
    r"pytest(?: +-{1,2}[\w-]+(?:=[^\s`]+)?)* +"  # with its options
    r"['\"]?([^\s`'\"\[]+::[^\s`'\"\[]+(?:\[[^\n`]*\])?)"
)


def with_live_ids(run: TmrRun, live: Mapping[str, AgentDetails], host_dir: Path) -> TmrRun:
    """Return a run with the ids that its living agents tell, by a label or by their prompts on this machine."""
    taken = {agent.test for agent in run.agents if not agent.is_guessed}
    agents = []
    for agent in run.agents:
        details = live.get(agent.name) if agent.is_guessed else None
        test = test_of(agent, details, _prompt_of(host_dir, details)) if details is not None else ""
        if test and test not in taken:
            taken.add(test)
            agent = replace(agent, test=test, is_guessed=False)
        agents.append(agent)
    return replace(run, agents=tuple(agents))


def test_of(agent: TmrAgent, details: AgentDetails, prompt: str) -> str:
    """Return the test that an agent works on; empty where neither its labels nor its prompt say so."""
    labelled = next((details.labels[name] for name in LABELS if "::" in details.labels.get(name, "")), "")
    if labelled:
        return plain(labelled, TEST_LIMIT)
    # A prompt may speak of other tests, too.
    found = (plain(match, TEST_LIMIT) for match in _PYTEST.findall(prompt))
    return next((test for test in found if is_named_after(agent.test, test)), "")


def _prompt_of(host_dir: Path, details: AgentDetails | None) -> str:
    if details is None or re.fullmatch(r"agent-[0-9a-f]{1,64}", details.id) is None:
        return ""
    content = read_start(host_dir / "agents" / details.id / "data.json", RECORD_LIMIT)
    try:
        record = json.loads(content.raw) if content is not None else {}
    except (ValueError, RecursionError):
        return ""
    prompt = record.get("initial_message") if isinstance(record, dict) else ""
    return prompt if isinstance(prompt, str) else ""
