"""The page for authors of other agents, generated from the contract, the models of reports and the prompt."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from enum import StrEnum
from types import ModuleType
from typing import Final

from swarm_tui.agents import contract
from swarm_tui.agents.contract import Task
from swarm_tui.agents.prompting import MAPPER_TEMPLATE, render_prompt
from swarm_tui.agents.types import AgentType
from swarm_tui.limits.events import ApiErrorKind
from swarm_tui.model.pulled import OUTCOME_FILE, ChangeKind, ChangeStatus, EscalationKind
from swarm_tui.model.report import OUTCOME_SIZE_LIMIT, AgentReport
from tests.docs import table

_TASK: Final = Task(
    sweep="20261118-061200",
    test="tests/test_share.py::test_two_people",
    agent="swarm-20261118-061200-two-people-0",
    branch="swarm/20261118-061200/two-people-0",
    base="4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    repository="/home/ann/project",
    file="tests/test_share.py",
    rest="test_two_people",
    folder="",
    pytest=("/home/ann/project/.venv/bin/python", "-m", "pytest", "tests/test_share.py::test_two_people"),
    outcome=".test_output/testing_agent_outcome.json",
)


def agents_page() -> str:
    """Return the page as Markdown."""
    lines = [
        "# For authors of other agents",
        "",
        "`swarm-tui run --agent TYPE` supports any agent type of mngr. An agent gets a copy of the repository,",
        "a prompt, and a pytest plugin that records each try. It submits one archive with its commits and",
        "its report. swarm-tui prefers data of pytest, git and the process to the report. The specifics of a type",
        "(session files, login, questions) are one module in `swarm_tui/agents/kinds`:",
        "",
        f"> {' '.join((AgentType.__doc__ or '').split())}",
        "",
        "## Shared names",
        "",
        *table(("name", "value", "meaning"), _constants(contract)),
        "",
        "## The task file",
        "",
        f"JSON, at the path in `{contract.TASK_VARIABLE}`:",
        "",
        *table(("key", "meaning"), _attributes(Task)),
        "",
        "## The report",
        "",
        f"`{OUTCOME_FILE}` in `{contract.OUTPUT_FOLDER}`, at most {OUTCOME_SIZE_LIMIT:,} bytes; its",
        "[schema](schemas/outcome.json). Missing keys have defaults, unknown keys are kept.",
        "",
        *table(("key", "default"), _fields()),
        "",
        f"`changes` maps {_words(ChangeKind)} to a `status` ({_words(ChangeStatus)}) and a `summary_markdown`.",
        "An escalation has a `kind`, a `description_markdown` whose first line is its title, and `locations`:",
        "",
        *table(("kind", "meaning"), _members(EscalationKind)),
        "",
        f"The API errors (`api_error` in `{contract.CONDITION_PATH}`) are {_words(ApiErrorKind)}.",
        "",
        "## The prompt",
        "",
        "The prompt for an example test; `run --mapper-prompt FILE` uses another template.",
        "",
        "````markdown",
        render_prompt(MAPPER_TEMPLATE, _TASK).rstrip(),
        "````",
    ]
    return "\n".join(lines) + "\n"


def _words(words: type[StrEnum]) -> str:
    return ", ".join(f"`{word.value}`" for word in words)


def _constants(module: ModuleType) -> Iterator[tuple[str, str, str]]:
    """Yield the constants of a module with their values and docstrings."""
    for name, text in _documented(ast.parse(inspect.getsource(module)).body):
        yield f"`{name}`", f"`{getattr(module, name)}`", text


def _attributes(of: type) -> Iterator[tuple[str, str]]:
    body = ast.parse(inspect.getsource(of)).body[0]
    assert isinstance(body, ast.ClassDef)
    yield from ((f"`{name}`", text) for name, text in _documented(body.body))


def _members(words: type[StrEnum]) -> Iterator[tuple[str, str]]:
    body = ast.parse(inspect.getsource(words)).body[0]
    assert isinstance(body, ast.ClassDef)
    yield from ((f"`{name}`", text) for name, text in _documented(body.body))


def _documented(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Yield the assigned names in a body with the strings below them."""
    for statement, below in zip(body, [*body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign):
            target: ast.expr = statement.target
        elif isinstance(statement, ast.Assign):
            target = statement.targets[0]
        else:
            continue
        is_text = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        text = str(below.value.value) if is_text else ""  # type: ignore[union-attr]
        if isinstance(target, ast.Name):
            yield target.id, " ".join(text.split())


def _fields() -> Iterator[tuple[str, str]]:
    for name, field in AgentReport.model_fields.items():
        if name != "unknown_changes":
            yield f"`{name}`", f"`{field.get_default(call_default_factory=True)!r}`"
