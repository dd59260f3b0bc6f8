"""Writes the task file and the prompt of an agent that works on a batch of a tutorial's blocks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Final

from swarm_tui.adapters.git import Repository
from swarm_tui.agents.prompting import FILL_TEMPLATE, SYNC_TEMPLATE, render_tutorial_prompt
from swarm_tui.agents.task import Task
from swarm_tui.engine.task_file import task_for
from swarm_tui.model.state import TestRecord
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.tutorial.committed import CommittedTutorial, CommittedTutorialReader
from swarm_tui.tutorial.open_work import Action, OpenBlock, file_for, find_open_work, guess_tool, items_of_batch

_DOCS_NAMED: Final = 40
_DOC_SUFFIXES: Final = frozenset({".md", ".rst", ".adoc", ".1", ".5", ".7", ".8"})


def action_of(spec: SweepSpec) -> Action:
    assert spec.kind != "tests", "a sweep over a tutorial"
    return spec.kind


def tutorial_of(spec: SweepSpec) -> str:
    return os.path.relpath(spec.tutorial or "", spec.repository)


def reader_of(spec: SweepSpec, repository: Repository) -> CommittedTutorialReader:
    """Return a reader of a sweep's tutorial and tests at any commit."""
    return CommittedTutorialReader(repository, tutorial_of(spec), spec.tests_folder)


def items_of(spec: SweepSpec, tutorial: CommittedTutorial, record: TestRecord) -> tuple[OpenBlock, ...]:
    action = action_of(spec)
    return items_of_batch(action, find_open_work(action, tutorial), record.block)


def tutorial_task(spec: SweepSpec, record: TestRecord, items: Sequence[OpenBlock], command: str) -> Task:
    """Return the content of the task file for one batch; its command checks the batch's blocks."""
    tutorial = tutorial_of(spec)
    blocks = [f"--block={item.block.title}" for item in items]
    folder = [spec.tests_folder] if spec.tests_folder else []
    check = (command, "tutorial", "check", *blocks, "--", tutorial, *folder)
    return replace(task_for(spec, record), file=tutorial, folder="", pytest=check)


def tutorial_prompt(spec: SweepSpec, repository: Repository, record: TestRecord, command: str) -> tuple[Task, str]:
    """Return the task of a batch, and the prompt for it."""
    found = reader_of(spec, repository).read(spec.base)
    items = items_of(spec, found, record)
    task = tutorial_task(spec, record, items, command)
    template = FILL_TEMPLATE if spec.kind == "fill" else SYNC_TEMPLATE
    values = {
        "items": [
            {
                "title": item.block.title,
                "line": item.block.line,
                "section": item.block.section,
                "text": item.block.text,
                "file": file_for(item, spec.tests_folder, found.paths),
                "near": [
                    {"test": f"{miss.test.file}::{miss.test.name}", "difference": "\n".join(miss.difference)}
                    for miss in item.near_misses
                ],
            }
            for item in items
        ],
        "tutorial": tutorial_of(spec),
        "tests_folder": spec.tests_folder,
        "tool": guess_tool(found.text or ""),
        "documents": _documents(repository, spec.base),
        "material": spec.material,
        "python": spec.python,
    }
    return task, render_tutorial_prompt(Path(spec.mapper_prompt) if spec.mapper_prompt else template, task, values)


def _documents(repository: Repository, base: str) -> list[str]:
    paths = repository.run("ls-tree", "-r", "-z", "--full-tree", "--name-only", base).fields
    chosen = [path for path in paths if _is_document(PurePosixPath(path))]
    return sorted(chosen, key=lambda path: (path.count("/"), path))[:_DOCS_NAMED]


def _is_document(path: PurePosixPath) -> bool:
    is_in_docs = bool({"doc", "docs", "man"} & {part.lower() for part in path.parts[:-1]})
    return path.suffix.lower() in _DOC_SUFFIXES and (is_in_docs or path.stem.upper() == "README")
