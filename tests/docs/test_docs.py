"""The pages of `docs` are up to date, and the output of commands matches the schemas."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from swarm_tui.cli.main import COMMAND_BY_NAME, run_command_line
from swarm_tui.journal.decode import parse_event
from swarm_tui.journal.events import UnknownEvent
from swarm_tui.model import shapes
from tests.docs import DOCS, pages
from tests.docs.configuration import undocumented_variables
from tests.docs.shapes import SHAPES
from tests.room.scenes import fixed_sweep, integrated_sweep


def test_pages_match_the_code() -> None:
    generated = pages()
    missing = [name for name in generated if not (DOCS / name).is_file()]
    assert missing == [], "`python -m tests.docs` writes them"
    stale = [name for name, text in generated.items() if (DOCS / name).read_text(encoding="utf-8") != text]
    assert stale == [], "`python -m tests.docs` regenerates them"
    assert {path.relative_to(DOCS).as_posix() for path in DOCS.glob("schemas/*")} <= set(generated)


def test_environment_variables_are_documented_or_internal() -> None:
    assert undocumented_variables() == set()


def test_links_of_all_pages_exist() -> None:

    for page in [*DOCS.rglob("*.md"), *DOCS.parent.glob("*.md")]:
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name} names {link}"


def json_output(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """Return the JSON output of a command."""
    assert run_command_line(list(words)) in (0, 1)
    return json.loads(capsys.readouterr().out)


def check(name: str, value: Any) -> None:
    """Check that a value has exactly the keys of a shape."""
    shape = next(shape for shape in SHAPES if shape.name == name)
    TypeAdapter(shape.type).validate_python(value, strict=True, extra="forbid")


def test_json_of_simulated_sweep_matches_schemas(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with fixed_sweep() as folder:
        check("status", json_output(capsys, "status", str(folder.root), "--json"))
        check("list", json_output(capsys, "list", str(folder.root), "--json"))
        inbox = json_output(capsys, "pending", str(folder.root), "--json")
        assert inbox["groups"], "the sweep has pending items"
        check("pending", inbox)
        check("report", json_output(capsys, "report", str(folder.root), "-o", str(tmp_path / "page"), "--json"))


def test_json_of_fixes_matches_schema(capsys: pytest.CaptureFixture[str]) -> None:
    with integrated_sweep() as folder:
        review = json_output(capsys, "fixes", str(folder.root), "--json")
        assert len(review["fixes"]) > 3
        check("fixes", review)


def test_journal_lines_match_schema() -> None:
    with fixed_sweep() as folder:
        lines = folder.events.read_text(encoding="utf-8").splitlines()
        assert lines
        assert not any(isinstance(parse_event(line.encode()), UnknownEvent) for line in lines)


def test_schemas_contain_their_version() -> None:
    schema = json.loads((DOCS / "schemas" / "status.json").read_text(encoding="utf-8"))
    assert schema["$id"] == f"swarm-tui/{shapes.SHAPES_VERSION}/status"


FOREIGN = frozenset({"--dangerously-skip-permissions", "--help", "--hypothesis-profile"})
"""Options of other programs."""
GENERATED = frozenset({"commands.md", "configuration.md", "json.md", "keys.md", "agents.md"})
PROSE = [
    DOCS.parent / "README.md",
    DOCS.parent / "SECURITY.md",
    DOCS.parent / "swarm_tui" / "cli" / "skill.md",
    *(page for page in sorted(DOCS.glob("*.md")) if page.name not in GENERATED | {"README.md"}),
]


@pytest.mark.parametrize("page", PROSE, ids=lambda page: page.stem)
def test_prose_names_only_existing_commands_and_options(page: Path) -> None:
    reference = (DOCS / "commands.md").read_text(encoding="utf-8")
    ours = [
        line
        for part in re.findall(r"```sh\n(.*?)```|`([^`\n]+)`", page.read_text(encoding="utf-8"), re.DOTALL)
        for line in "".join(part).splitlines()
    ]
    calls = [found for line in ours for found in re.findall(r"\bswarm-tui ([a-z][a-z-]+)", line)]
    assert [name for name in calls if name not in COMMAND_BY_NAME and name != "help"] == []
    options = [
        word
        for line in ours
        if line.startswith(("-", "swarm-tui ")) and "pip install" not in line
        for word in re.findall(r"(?<!\S)(--[a-z][a-z-]+)", line.partition(" -- ")[0])
    ]
    assert [word for word in options if f"`{word}" not in reference and word not in FOREIGN] == []


def test_the_readme_is_short() -> None:
    assert len((DOCS.parent / "README.md").read_text(encoding="utf-8").split()) <= 1_000
