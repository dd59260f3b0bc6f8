"""An environment for Claude Code: the real program, a separate home, an invented key, a scripted model."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.claude.plays import play
from tests.claude.scripted_model import ScriptedModel
from tests.git_project import GitProject
from tests.isolation import IsolatedMngr
from tests.sweep.sweeping import Program

KEY: Final = "sk-ant-api03-" + "0" * 40

SHOP: Final = '''\
"""A small shop: prices, stock and receipts."""


def total(prices):
    return sum(prices)


def discount(price, percent):
    return price - price * percent // 10


def receipt(lines):
    return "\\n".join(f"{name} {price}" for name, price in lines)


def stock(count, taken):
    return count - taken


def currency(amount):
    return f"{amount / 100} EUR"


def vat(price):
    return round(price * 1.16)
'''

CHECKS: Final = {
    "total": "total([100, 250]) == 350",
    "discount": "discount(1000, 10) == 900",
    "receipt": 'receipt([("tea", 350)]) == "tea  3.50"',
    "stock": "stock(1, 2) == 0",
    "currency": 'currency(1050) == "10.50 EUR"',
    "vat": "vat(100) == 119",
}


@dataclass(frozen=True)
class ClaudeLab:
    """The project, the swarm-tui program, and the scripted model."""

    project: GitProject
    program: Program
    model: ScriptedModel


def lost_messages(lab: ClaudeLab) -> list[str]:
    """Return completely sent messages that are missing from the transcripts of the newest sweep."""
    transcripts = [path.read_text() for path in lab.program.newest().root.rglob("transcript.jsonl")]
    # Titles and summaries are not part of a conversation.
    said = {key: text for key, text in lab.model.told.items() if not text.startswith(("{", "<summary>"))}
    return [text or key for key, text in said.items() if not any(f'"{key}"' in each for each in transcripts)]


def make_project(
    root: Path, tests: Sequence[str], settings: str = '{"permissions": {"ask": ["Bash(curl:*)"]}}'
) -> GitProject:
    """Create a repository with tests named `FUNCTION_PLAY`: the tested function, and the play of the agent."""
    project = GitProject(root)
    rates = root.with_name("rates.md")
    rates.write_text("VAT is 19 percent.\n")
    bodies = [f"def test_{name}():\n    assert {CHECKS[name.partition('_')[0]]}\n" for name in tests]
    project.commit(
        "A small shop",
        {
            "shop.py": SHOP,
            "tests/test_shop.py": "\n\n".join(["from shop import *  # noqa\n", *bodies]),
            "conftest.py": "",
            "pytest.ini": "[pytest]\n",
            ".claude/settings.json": settings,
            # Claude Code would ask at its start whether it may use these.
            "CLAUDE.md": f"Rates: @{rates}\n",
            ".mcp.json": '{"mcpServers": {"notes": {"command": "cat"}}}',
            ".gitignore": textwrap.dedent("""\
                __pycache__/
                .pytest_cache/
                """),
        },
    )
    return project


@contextlib.contextmanager
def claude_lab(
    mngr: IsolatedMngr, claude: Path, root: Path, tests: Sequence[str], variables: Mapping[str, str] | None = None
) -> Iterator[ClaudeLab]:
    """Set up a machine where the user has exported a key, and nothing else."""
    with ScriptedModel(play) as model:
        project = make_project(root, tests)
        environment = mngr.environment | {
            "PATH": f"{claude}:{mngr.environment['PATH']}",
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": KEY,
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "SWARM_MNGR": mngr.settings.path,
        }
        yield ClaudeLab(project, Program(root, environment | dict(variables or {})), model)
