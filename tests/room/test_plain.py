"""Plain lines have the same contents as the room."""

from swarm_tui.room.view import open_items, plain_lines_of
from tests.room.scenes import fixed_sweep, integrated_sweep, open_store


def test_plain_lines_have_every_test_and_number() -> None:
    with fixed_sweep(60) as folder:
        store = open_store(folder)
        lines = list(plain_lines_of(store))
    text = "\n".join(lines)
    assert all(test in text for test in store.state.records)
    counts = store.state.counts
    assert f"{counts['clean']} clean, " in text
    assert f"Inbox: {len(open_items(store))} items" in lines
    assert f"Patterns: {len(store.patterns())}" in lines
    assert not set("✓✗●◆■◐◌·│╭▲▼…") & set(text)


def test_plain_lines_of_finished_sweep_have_next_steps() -> None:
    with integrated_sweep() as folder:
        lines = list(plain_lines_of(open_store(folder)))
    assert "Next 5 fixes are ready: 3" in lines
    assert "5 fixes are ready for review" in lines
