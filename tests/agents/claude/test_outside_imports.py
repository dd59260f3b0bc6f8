"""Files outside of a project that its CLAUDE.md imports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from swarm_tui.agents.packaged import local_package_dir
from swarm_tui.agents.types import AgentStart, agent_type_of
from swarm_tui.agents.types.claude import FILES_LIMIT, exclusion_patterns, outside_imports


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
def test_only_outside_paths_are_found(text: str, found: tuple[str, ...]) -> None:
    assert found_in({"CLAUDE.md": text.replace("\\\\", "\\")}) == found


def test_nested_and_cyclic_imports_are_read() -> None:
    files = {".claude/CLAUDE.md": "@../docs/a.md", "docs/a.md": "@a.md @b.md", "docs/b.md": "@/etc/b.md @/etc/b.md"}
    assert found_in(files) == ("/etc/b.md",)


def test_depth_of_imports_is_limited() -> None:
    asked: list[str] = []

    def read(path: str) -> bytes:
        asked.append(path)
        return f"@{len(asked)}.md".encode()

    assert outside_imports(read) == ()
    assert len(asked) == FILES_LIMIT


def test_outside_imports_are_excluded_in_settings(tmp_path: Path) -> None:
    start = AgentStart((), local_package_dir(tmp_path), "/state", outside_imports=("/etc/a.md", "~/b.md"))
    words = agent_type_of("claude").prepare_command(start)
    settings = json.loads(Path(words[words.index("--settings") + 1]).read_text())
    assert settings["claudeMdExcludes"] == ["/etc/a.md", str(Path.home() / "b.md"), "/{root,home/*,Users/*}/b.md"]
    assert exclusion_patterns(()) == []
