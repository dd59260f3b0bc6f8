"""Found histories are stored and read back unchanged."""

from __future__ import annotations

from pathlib import Path

from tests.review.found import FoundHistory, add_found_history, read_found_histories


def test_found_history_is_stored_once(tmp_path: Path) -> None:
    examples = tmp_path / "found.json"
    examples.write_text("[]")
    found = FoundHistory([[("rename folder", 0, 0, 0)], [("edit", 1, 2, 0), ("mode", 0, 0, 0)]], [0, 1], "true")
    assert add_found_history(found, examples)
    assert not add_found_history(found, examples)
    assert read_found_histories(examples) == [found]
    assert found.name == "rename_folder+edit+mode-true"
