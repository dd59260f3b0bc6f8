"""Parsing diffs: positions of files and hunks, even if file content looks like git output."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.model.commits import parse_diff, visible
from tests.git_project import GitProject


def test_parse_diff_returns_positions_of_files_and_hunks(tmp_path: Path) -> None:
    project = GitProject(tmp_path)
    lines = [f"line {number}\n" for number in range(60)]
    project.commit("base", {"a.txt": "".join(lines), "gone.txt": "gone\n", "old name.txt": "".join(lines) + "end\n"})
    lines[3], lines[50] = "changed\n", "changed too\n"
    project.git("mv", "old name.txt", "new name.txt")
    project.write({"a.txt": "".join(lines), "gone.txt": None, "b.bin": bytes(range(256)), "run.sh": "#!/bin/sh\n"})
    project.git("add", "--all")
    project.git("update-index", "--chmod=+x", "a.txt")
    project.git("commit", "--quiet", "-m", "change")
    diff = parse_diff(project.git("diff", "-M", "HEAD~1", "HEAD").encode())
    found = {file.path: file for file in diff.files}
    assert list(found) == ["a.txt", "b.bin", "gone.txt", "new name.txt", "run.sh"]
    assert (found["a.txt"].added, found["a.txt"].removed) == (2, 2)
    assert found["a.txt"].mode_change == "100644 -> 100755"
    assert [diff.lines[place].split(" ")[0] for place in found["a.txt"].hunks] == ["@@", "@@"]
    assert found["b.bin"].is_binary
    assert found["new name.txt"].old_path == "old name.txt"
    assert (found["gone.txt"].removed, found["gone.txt"].hunks != ()) == (1, True)
    assert [diff.lines[file.start].startswith("diff --git") for file in diff.files] == [True] * 5
    assert [file.end for file in diff.files[:-1]] == [file.start for file in diff.files[1:]]
    assert diff.files[-1].end == len(diff.lines)


def test_file_content_never_starts_file_or_hunk() -> None:
    header = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n"
    raw = header + b"+one\rdiff --git a/evil b/evil\r@@ -1 +1 @@\n+\x1b]0;two\n+three\n"
    diff = parse_diff(raw)
    assert [file.path for file in diff.files] == ["x"]
    assert len(diff.files[0].hunks) == 1
    assert diff.lines[-1] == "+three"
    assert "\u240d" in diff.lines[4]


@given(st.text())
def test_visible_removes_control_characters(text: str) -> None:
    shown = visible(text)
    assert not any((ord(character) < 32 and character != "\n") or 0x7F <= ord(character) < 0xA0 for character in shown)
    assert shown.count("\n") == text.count("\n")


def test_empty_diff_has_no_lines() -> None:
    assert parse_diff(b"").lines == ()
