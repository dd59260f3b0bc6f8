"""Which files outside of a project its CLAUDE.md imports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from swarm_tui.agents.claude.outside_imports import FILES_LIMIT, exclusion_patterns, outside_imports
from swarm_tui.agents.kinds import AgentStart, kind_of
from swarm_tui.agents.shipped import shelf_here


def found_in(files: dict[str, str]) -> tuple[str, ...]:
    return outside_imports(lambda path: files.get(path, "").encode())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        ("See @/etc/rules.md and @~/.claude/mine.md", ("/etc/rules.md", "~/.claude/mine.md")),
        ("@docs/style.md @./a.md @README", ()),
        ("write to ann@example.org (@/in/brackets.md)", ()),
        ("@../beside.md @a/../../../far.md", ()),
        ("@/with\\\\ space.md", ("/with space.md",)),
        ("@pytest.fixture @-c @:(top)x @$(id)", ()),
    ],
)
def test_only_paths_that_lead_out_of_the_project_count(text: str, found: tuple[str, ...]) -> None:
    assert found_in({"CLAUDE.md": text.replace("\\\\", "\\")}) == found


def test_what_is_imported_may_import_more_and_itself() -> None:
    files = {".claude/CLAUDE.md": "@../docs/a.md", "docs/a.md": "@a.md @b.md", "docs/b.md": "@/etc/b.md @/etc/b.md"}
    assert found_in(files) == ("/etc/b.md",)


def test_a_chain_of_imports_ends() -> None:
    asked: list[str] = []

    def read(path: str) -> bytes:
        asked.append(path)
        return f"@{len(asked)}.md".encode()

    assert outside_imports(read) == ()
    assert len(asked) == FILES_LIMIT


def test_claude_is_told_to_leave_them_out(tmp_path: Path) -> None:
    start = AgentStart((), shelf_here(tmp_path), "/state", outside_imports=("/etc/a.md", "~/b.md"))
    words = kind_of("claude").prepare_command(start)
    settings = json.loads(Path(words[words.index("--settings") + 1]).read_text())
    assert settings["claudeMdExcludes"] == ["/etc/a.md", str(Path.home() / "b.md"), "/{root,home/*,Users/*}/b.md"]
    assert exclusion_patterns(()) == []
