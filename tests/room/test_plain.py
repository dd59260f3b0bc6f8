"""The room as plain lines says what the room says."""

from swarm_tui.room.open_work import open_items
from swarm_tui.room.plain import plain_lines_of
from tests.room.scenes import fixed_sweep, integrated_sweep, open_store


def test_every_test_and_every_number_is_in_the_lines_without_a_sign() -> None:
    with fixed_sweep(60) as folder:
        store = open_store(folder)
        lines = list(plain_lines_of(store))
    text = "\n".join(lines)
    assert all(test in text for test in store.state.records)
    counts = store.state.counts
    assert f"{counts['clean']} clean, " in text
    assert f"Inbox: {len(open_items(store))} things" in lines
    assert f"Patterns: {len(store.patterns())}" in lines
    assert not set("✓✗●◆■◐◌·│╭▲▼…") & set(text)


def test_a_sweep_that_is_over_says_what_comes_next() -> None:
    with integrated_sweep() as folder:
        lines = list(plain_lines_of(open_store(folder)))
    assert "Next 5 fixes are ready: 3" in lines
    assert "5 fixes are ready to be reviewed" in lines
