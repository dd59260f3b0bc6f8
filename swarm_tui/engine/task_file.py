"""Writes down what an agent is to do, as the content of its task file."""

from __future__ import annotations

import os

from swarm_tui.adapters.pytest import pytest_argument
from swarm_tui.agents.contract import OUTPUT_FOLDER
from swarm_tui.agents.task import Task
from swarm_tui.model.outcome import OUTCOME_FILE
from swarm_tui.model.state import TestRecord
from swarm_tui.model.sweep import SweepSpec


def task_for(spec: SweepSpec, record: TestRecord, python: str = "") -> Task:
    """Return the task of one test; `python` is the agent's own, where it is not the one of the sweep."""
    python = python or spec.python
    if python and not os.path.isabs(python):
        # Named from the top of the copy, and never looked up on PATH.
        python = os.path.join(os.curdir, os.path.relpath(python, spec.folder or os.curdir))
    return Task(
        sweep=spec.sweep,
        test=record.test,
        agent=record.agent,
        branch=record.branch,
        base=spec.base,
        repository=spec.repository,
        file=record.file,
        rest=record.test.partition("::")[2],
        folder=spec.folder,
        pytest=(python, "-m", "pytest", *spec.run_options, pytest_argument(record.test, record.file, spec.folder)),
        outcome=f"{OUTPUT_FOLDER}/{OUTCOME_FILE}",
        records=spec.records or "",
        speed=spec.speed,
        identity=spec.identity,
        revision=record.revision.number if record.revision is not None else 0,
    )
