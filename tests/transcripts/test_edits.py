"""Edits in transcripts of any agent are shown as small diffs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.transcripts.entries import Role, edit_text, parse_record
from swarm_tui.transcripts.layout import Density, TextStyle, lay_out


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ({"file_path": "a.py", "old_string": "x = 1\ny = 2\n", "new_string": "x = 1\ny = 3\n"}, " x = 1|-y = 2|+y = 3"),
        ({"path": "a.py", "old_str": "", "new_str": "x"}, "+x"),
        ({"file": "a.py", "old": "x", "new": ""}, "-x"),
        ({"file_path": "a.py", "content": "x\ny\n"}, "+x|+y"),
        (
            {"file_path": "a.py", "edits": [{"old_string": "a", "new_string": "b"}, {"old_string": "c"}]},
            "-a|+b|-c",
        ),
        ({"file_path": "a.py"}, None),
        ({"command": "ls", "content": "x"}, None),
        ({"file_path": 3, "content": "x"}, None),
    ],
)
def test_edit_arguments_become_file_and_changed_lines(given: dict[str, Any], lines: str | None) -> None:
    expected = None if lines is None else "\n".join(["a.py", *lines.split("|")])
    assert edit_text(given) == expected


@given(st.dictionaries(st.sampled_from(["file_path", "old_string", "new_string", "edits", "content"]), st.text()))
def test_any_edit_arguments_are_accepted(given: dict[str, str]) -> None:
    found = edit_text(given)
    assert found is None or all(line[:1] in "+- " for line in found.split("\n")[1:])


def test_edit_is_shown_as_coloured_diff() -> None:
    content = [{"type": "tool_use", "id": "1", "name": "Edit", "input": EDIT}]
    record = {"type": "assistant", "sessionId": "s", "message": {"role": "assistant", "content": content}}
    (entry,) = parse_record(json.dumps(record).encode())
    assert entry.role is Role.CALL
    lines = lay_out([entry], 80, Density.READABLE)
    assert [(line.runs[-1].text, line.runs[-1].style) for line in lines] == [
        ("a.py", TextStyle.PLAIN),
        ("-old", TextStyle.REMOVED),
        ("+new", TextStyle.ADDED),
    ]


EDIT = {"file_path": "a.py", "old_string": "old\0", "new_string": "new"}
