"""The pages of `docs` say what the code does, and what the commands print has the shape that the schemas say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from swarm_tui.cli.commands import COMMAND_BY_NAME
from swarm_tui.cli.main import run_command_line
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model import shapes
from tests.docs import DOCS, pages
from tests.docs.configuration import undocumented_variables
from tests.docs.shapes import SHAPES
from tests.room.scenes import fixed_sweep, integrated_sweep


def test_every_page_is_what_is_made_of_the_code_today() -> None:
    made = pages()
    there = {
        path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8")
        for path in DOCS.rglob("*")
        if path.suffix in (".md", ".json")
    }
    assert sorted(there) == sorted(made), "`python -m tests.docs` writes them anew"
    stale = [name for name, text in made.items() if there[name] != text]
    assert stale == [], "`python -m tests.docs` writes them anew"


def test_every_variable_of_ours_is_on_the_page_or_between_engine_and_agents() -> None:
    assert undocumented_variables() == set()


def test_links_of_all_pages_lead_somewhere() -> None:

    for page in [*DOCS.rglob("*.md"), DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md"]:
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name} names {link}"


def said(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """Return what a command prints as JSON."""
    assert run_command_line(list(words)) in (0, 1)
    return json.loads(capsys.readouterr().out)


def check(name: str, value: Any) -> None:
    """Check a value against the shape of that name: every key of it is there, and no other."""
    shape = next(shape for shape in SHAPES if shape.name == name)
    TypeAdapter(shape.type).validate_python(value, strict=True, extra="forbid")


def test_a_simulated_sweep_is_shown_in_these_shapes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with fixed_sweep() as folder:
        check("status", said(capsys, "status", str(folder.root), "--json"))
        check("list", said(capsys, "list", str(folder.root), "--json"))
        inbox = said(capsys, "pending", str(folder.root), "--json")
        assert inbox["groups"], "the sweep asks something"
        check("pending", inbox)
        check("report", said(capsys, "report", str(folder.root), "-o", str(tmp_path / "page"), "--json"))


def test_the_fixes_of_a_sweep_are_shown_in_this_shape(capsys: pytest.CaptureFixture[str]) -> None:
    with integrated_sweep() as folder:
        review = said(capsys, "fixes", str(folder.root), "--json")
        assert len(review["fixes"]) > 3
        check("fixes", review)


def test_every_line_of_a_journal_fits_its_schema() -> None:
    event = TypeAdapter[Any](next(shape.type for shape in SHAPES if shape.name == "event"))
    old = Path(__file__).parents[1] / "journal" / "sweep_of_0_1"
    with fixed_sweep() as folder:
        for journal in (folder.events, SweepFolder(old).events):
            lines = journal.read_text(encoding="utf-8").splitlines()
            assert lines
            for line in lines:
                event.validate_json(line)


def test_the_version_of_shapes_is_in_each_schema() -> None:
    schema = json.loads((DOCS / "schemas" / "status.json").read_text(encoding="utf-8"))
    assert schema["$id"] == f"swarm-tui/{shapes.SHAPES_VERSION}/status"


FOREIGN = frozenset({"--dangerously-skip-permissions", "--hypothesis-profile"})
"""Options of other programs."""
PROSE = (DOCS.parent / "README.md", DOCS.parent / "tutorial" / "sweeps.md", DOCS.parent / "tutorial" / "walk.md")


@pytest.mark.parametrize("page", PROSE, ids=lambda page: page.name)
def test_what_is_written_by_hand_names_only_commands_and_options_that_exist(page: Path) -> None:
    reference = (DOCS / "commands.md").read_text(encoding="utf-8")
    ours = [
        line
        for part in re.findall(r"```sh\n(.*?)```|`([^`\n]+)`", page.read_text(encoding="utf-8"), re.DOTALL)
        for line in "".join(part).splitlines()
    ]
    calls = [found for line in ours for found in re.findall(r"\bswarm-tui ([a-z][a-z-]+)", line)]
    assert calls
    assert [name for name in calls if name not in COMMAND_BY_NAME and name != "help"] == []
    options = [
        word
        for line in ours
        if line.startswith(("-", "swarm-tui ")) and "pip install" not in line
        for word in re.findall(r"(?<!\S)(--[a-z][a-z-]+)", line.partition(" -- ")[0])
    ]
    assert [word for word in options if f"`{word}" not in reference and word not in FOREIGN] == []


def test_the_readme_is_short() -> None:
    assert len((DOCS.parent / "README.md").read_text(encoding="utf-8").split()) <= 2_900
