"""Everything that a test's cell can show stands in one table, and all who show it find it there."""

from swarm_tui.cli.display import _STYLES
from swarm_tui.model.states import ACTIVE_STATES, ALONG_BAR, HINDERED, MARKS, PULLED_RESULTS, Result, State, mark_of
from swarm_tui.report.page import render_page
from swarm_tui.room.colours import ROLES
from swarm_tui.room.draw.glyphs import PILLS, mark_of_pill


def test_every_state_and_result_has_a_mark_and_no_other() -> None:
    states = {state.value for state in State if state is not State.DONE}
    assert set(MARKS) == states | {HINDERED} | {result.value for result in Result}
    for state in State:
        assert mark_of(state, None) == state.value
        assert mark_of(state, Result.CLEAN) == ("clean" if state is State.DONE else state.value)


def test_the_room_the_command_line_and_the_page_have_a_colour_for_every_role() -> None:
    page = render_page({})
    for mark in MARKS.values():
        assert mark.role in ROLES
        assert mark.role in _STYLES
        assert f".{mark.name} {{ --mark: var(--{mark.role}); }}" in page
        assert f"\n  --{mark.role}:" in page
        assert f'"{mark.name}":{{"glyph":"{mark.glyph}","word":"{mark.word}","pill":"{mark.pill}"}}' in page


def test_what_looks_alike_is_counted_together() -> None:
    for mark in MARKS.values():
        same = {other.pill for other in MARKS.values() if mark.glyph == other.glyph}
        assert same == {mark.pill}
        assert {other.ascii_glyph for other in MARKS.values() if mark.glyph == other.glyph} == {mark.ascii_glyph}
        assert mark.ascii_glyph.isascii()
    assert len({mark.ascii_glyph for mark in MARKS.values()}) == len({mark.glyph for mark in MARKS.values()})


def test_a_bar_begins_with_what_is_done_and_ends_with_what_waits() -> None:
    assert [mark.name for mark in ALONG_BAR] == [
        *Result,
        *["stopped", "waiting", "hindered", "running", "harvesting", "launching", "queued"],
    ]
    assert list(PILLS) == [
        *["clean", "skipped", "fixed", "impl_fix", "unresolved", "blocked", "failed"],
        *["stopped", "waiting", "hindered", "running", "launching", "queued"],
    ]
    assert PILLS["fixed"] == ("better", "test_fix", "tutorial_fix")
    assert PILLS["running"] == ("running", "harvesting")
    assert [mark_of_pill(pill).word for pill in ("fixed", "impl_fix")] == ["fixed", "impl fix"]
    assert mark_of_pill("fixed")[1:] == MARKS["better"][1:]


def test_which_states_take_a_slot_and_which_results_carry_work() -> None:
    assert {State.LAUNCHING, State.RUNNING, State.HARVESTING} == ACTIVE_STATES
    assert {Result.BETTER, Result.TEST_FIX, Result.TUTORIAL_FIX, Result.IMPL_FIX} == PULLED_RESULTS
