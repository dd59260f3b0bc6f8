"""The page for authors of other agents, generated from the contract, the models of reports and the prompt."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from enum import StrEnum
from types import ModuleType
from typing import Final

from swarm_tui.adapters.provision import PLUGIN_PACKAGES
from swarm_tui.agents import contract
from swarm_tui.agents.contract import Task
from swarm_tui.agents.prompting import MAPPER_TEMPLATE, render_prompt
from swarm_tui.agents.types import AgentType, agent_type_of
from swarm_tui.limits.events import ApiErrorKind
from swarm_tui.model.pulled import OUTCOME_FILE, ChangeKind, ChangeStatus, EscalationKind
from swarm_tui.model.report import OUTCOME_SIZE_LIMIT, AgentReport
from tests.docs import table
from tests.openai.installed import VERSIONS

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


_PROGRAMS: Final = (
    (
        "tested version",
        ".".join(map(str, agent_type_of("claude").tested_version)),
        *(VERSIONS[name] for name in ("codex", "opencode")),
    ),
    ("mngr plugin", *(f"`{PLUGIN_PACKAGES[name]}`" for name in ("claude", "codex", "opencode"))),
    ("state, permission requests and last words", "session file, hook", "session log, hook", "our plugin"),
    (
        "`--permissions allow`",
        "reads, edits and runs commands without asking",
        "Codex's sandbox: writes only to the copy and the state folder",
        "asks only for files outside of the copy; there is no sandbox",
    ),
    ("`--permissions ask`", "asks before edits and commands", "read-only sandbox", "asks before edits and commands"),
    (
        "policy of the repository",
        "applies, with the permissions of its settings",
        "ignored: arguments take precedence",
        "ignored, with all of its `opencode.json`",
    ),
    (
        "settings of the user",
        "used",
        "model, provider and reasoning effort are used",
        "used, except for permissions",
    ),
    ("questions with options", "answered in the inbox", "not available in Codex", "answered in the inbox"),
    ("retries of requests are shown", "yes", "no, only the failed turn", "yes"),
    ("end of a limit", "yes, for subscriptions", "yes, for subscriptions", "yes, if the server sends `retry-after`"),
    ("cost", "session log, price table", "session log, price table", "opencode's own figure"),
    ("memory per agent", "not measured", "160 MB", "1 GB, and 90 MB of disk"),
    ("copies", "mirror, worktree", "mirror only", "mirror; worktree is untested"),
    ("needs at each start", "", "", "an npm registry, or a minute without one"),
)


def agents_page() -> str:
    """Return the page as Markdown."""
    lines = [
        "# For authors of other agents",
        "",
        "`swarm-tui run --agent TYPE` supports any agent type of mngr. An agent gets a copy of the repository,",
        "a prompt, and a pytest plugin that records each try. It submits one archive with its commits and",
        "its report. swarm-tui prefers data of pytest, git and the process to the report. The specifics of a type",
        "(session files, login, questions) are one module in `swarm_tui/agents/types`:",
        "",
        f"> {' '.join((AgentType.__doc__ or '').split())}",
        "",
        "## Supported programs",
        "",
        *table(("", "Claude Code", "Codex", "opencode"), _PROGRAMS),
        "",
        "Other agent types of mngr work without permissions, questions from the inbox, states and cost.",
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
