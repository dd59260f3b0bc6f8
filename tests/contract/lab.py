"""The environment of each agent type: the real program, a separate home, an invented key, a scripted model."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from swarm_tui.money.prices import ModelPrice, Prices
from tests.claude.installed import claude_folder
from tests.claude.lab import KEY, make_project
from tests.claude.plays import play
from tests.claude.scripted_model import ScriptedModel
from tests.git_project import GitProject
from tests.isolation import IsolatedMngr
from tests.openai.installed import program_folder
from tests.openai.scripted_model import OpenAIModel
from tests.programs import require_program, skip_without_program
from tests.sweep.sweeping import Program, offline

MODEL: Final = "gpt-5.5"
PRICES: Final = {MODEL: ModelPrice(5, 30, 0.5, 5, 5), "model-1": ModelPrice(2, 8, 0.5, 2, 2)}
SCRIPTED_KEY: Final = "any-word"


@dataclass(frozen=True)
class AgentLab:
    """The project, the swarm-tui program, and the scripted model of one agent type."""

    agent_type: str
    project: GitProject
    program: Program
    model: ScriptedModel | OpenAIModel | None
    prices: Prices = field(default_factory=dict)
    """The prices of the models that its programs use."""
    words: Sequence[str] = field(default=())
    """Arguments of `run` that this lab needs."""


def require_agent(agent_type: str) -> Path:
    """Return the folder with the program of an agent type; skip the test if it cannot be installed."""
    if agent_type == "claude":
        # mngr's hooks for Claude Code are shell scripts that use jq.
        require_program("jq")
    folder = claude_folder() if agent_type == "claude" else program_folder(agent_type)
    if folder is None:
        require_program("npm")
        skip_without_program(agent_type, "npm could not install it")
    return folder


@contextlib.contextmanager
def agent_lab(
    agent_type: str, mngr: IsolatedMngr, root: Path, tests: Sequence[str], variables: Mapping[str, str] | None = None
) -> Iterator[AgentLab]:
    """Set up a machine where the user can run the program of an agent type, and nothing else."""
    folder = require_agent(agent_type) if agent_type != "offline" else Path("/bin")
    project = make_project(root, tests)
    environment = mngr.environment | {
        "PATH": f"{folder}:{mngr.environment['PATH']}",
        "SWARM_MNGR": mngr.settings.path,
        **(variables or {}),
    }
    home = Path(environment["HOME"])
    if agent_type == "offline":
        words = offline(str(_write_records(root.with_name("records"))))
        yield AgentLab(agent_type, project, Program(root, environment), None, words=words)
        return
    with ScriptedModel(play) if agent_type == "claude" else OpenAIModel() as model:
        words = ()
        if agent_type == "claude":
            environment |= {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": KEY, "DISABLE_AUTOUPDATER": "1"}
            environment |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        elif agent_type == "codex":
            environment["SCRIPTED_KEY"] = SCRIPTED_KEY
            _write_codex_settings(home, model.url)
        else:
            environment["SCRIPTED_KEY"] = SCRIPTED_KEY
            _write_opencode_settings(home, model.url)
        yield AgentLab(agent_type, project, Program(root, environment), model, PRICES, words)


RECORDS: Final = {
    "clean": """
test = "tests/test_shop.py::test_total_clean"
summary = "The test is good as it is."

[[step]]
run = "as it was"
""",
    "fixed": """
test = "tests/test_shop.py::test_vat_fixed"
summary = "The rate was old."

[[step]]
run = "as it was"

[[step]]
edit = "shop.py"
old = "1.16"
new = "1.19"

[[step]]
commit = "FIX_IMPL"
message = "Take today's VAT"

[[step]]
run = "with today's rate"
""",
    "question": """
test = "tests/test_shop.py::test_stock_question"
summary = "Stock is never negative."

[[step]]
ask = "May stock be negative on purpose, for orders that are late?"

[[step]]
edit = "shop.py"
old = "return count - taken"
new = "return max(0, count - taken)"

[[step]]
commit = "FIX_IMPL"
message = "Never let stock fall below nothing"

[[step]]
run = "with the lower limit"
""",
}
"""The work that the offline agent replays."""


def _write_records(folder: Path) -> Path:
    folder.mkdir()
    for name, record in RECORDS.items():
        (folder / f"{name}.toml").write_text(record)
    return folder


def _write_codex_settings(home: Path, url: str) -> None:
    """Write the settings of a user with a provider of their company, whose key is in a variable."""
    folder = home / ".codex"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(
        f'model = "{MODEL}"\nmodel_provider = "scripted"\n\n[model_providers.scripted]\nname = "Scripted"\n'
        f'base_url = "{url}"\nwire_api = "responses"\nenv_key = "SCRIPTED_KEY"\n'
    )


def _write_opencode_settings(home: Path, url: str) -> None:
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    cost = {"input": 2, "output": 8, "cache_read": 0.5, "cache_write": 2}
    model = {"name": "Scripted", "limit": {"context": 200_000, "output": 8_000}, "tool_call": True, "cost": cost}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": url, "apiKey": "{env:SCRIPTED_KEY}"},
        "models": {"model-1": model},
    }
    settings = {
        "model": "scripted/model-1",
        "small_model": "scripted/model-1",
        "autoupdate": False,
        "provider": {"scripted": provider},
    }
    (folder / "opencode.json").write_text(json.dumps(settings))
