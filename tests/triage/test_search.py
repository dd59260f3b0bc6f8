"""The histories that a search at random found are kept and read back as they were."""

from __future__ import annotations

from pathlib import Path

from tests.triage.found import FoundHistory, add_found_history, read_found_histories


def test_what_was_found_is_kept_once(tmp_path: Path) -> None:
    examples = tmp_path / "found.json"
    examples.write_text("[]")
    found = FoundHistory([[("rename folder", 0, 0, 0)], [("edit", 1, 2, 0), ("mode", 0, 0, 0)]], [0, 1], "true")
    assert add_found_history(found, examples)
    assert not add_found_history(found, examples)
    assert read_found_histories(examples) == [found]
    assert found.name == "rename_folder+edit+mode-true"
