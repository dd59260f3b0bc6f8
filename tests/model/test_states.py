"""All states and results are displayed through one table."""

from swarm_tui.cli.follow import _STYLES
from swarm_tui.model.results import ACTIVE_STATES, ALONG_BAR, API_ERROR, MARKS, PULLED_RESULTS, Result, State, mark_of
from swarm_tui.report.page import render_page
from swarm_tui.room.colours import ROLES
from swarm_tui.room.draw.glyphs import PILLS, mark_of_pill


def test_marks_match_states_and_results() -> None:
    states = {state.value for state in State if state is not State.DONE}
    assert set(MARKS) == states | {API_ERROR} | {result.value for result in Result}
    for state in State:
        assert mark_of(state, None) == state.value
        assert mark_of(state, Result.CLEAN) == ("clean" if state is State.DONE else state.value)


def test_every_role_has_a_colour_everywhere() -> None:
    page = render_page({})
    for mark in MARKS.values():
        assert mark.role in ROLES
        assert mark.role in _STYLES
        assert f".{mark.name} {{ --mark: var(--{mark.role}); }}" in page
        assert f"\n  --{mark.role}:" in page
        assert f'"{mark.name}":{{"glyph":"{mark.glyph}","word":"{mark.word}","pill":"{mark.pill}"}}' in page


def test_same_pill_means_same_look() -> None:
    for mark in MARKS.values():
        same = {other.pill for other in MARKS.values() if mark.glyph == other.glyph}
        assert same == {mark.pill}
        assert {other.ascii_glyph for other in MARKS.values() if mark.glyph == other.glyph} == {mark.ascii_glyph}
        assert mark.ascii_glyph.isascii()
    assert len({mark.ascii_glyph for mark in MARKS.values()}) == len({mark.glyph for mark in MARKS.values()})


def test_bar_order_starts_with_results_ends_with_queued() -> None:
    assert [mark.name for mark in ALONG_BAR] == [
        *Result,
        *["stopped", "waiting", "api_error", "running", "pulling", "launching", "queued"],
    ]
    assert list(PILLS) == [
        *["clean", "skipped", "fixed", "impl_fix", "claimed", "unresolved", "blocked", "error"],
        *["stopped", "waiting", "api_error", "running", "launching", "queued"],
    ]
    assert PILLS["fixed"] == ("better", "test_fix", "tutorial_fix")
    assert PILLS["running"] == ("running", "pulling")
    assert [mark_of_pill(pill).word for pill in ("fixed", "impl_fix")] == ["fixed", "impl fix"]
    assert mark_of_pill("fixed")[1:] == MARKS["better"][1:]


def test_active_states_and_pulled_results() -> None:
    assert {State.LAUNCHING, State.RUNNING, State.PULLING} == ACTIVE_STATES
    assert {Result.BETTER, Result.TEST_FIX, Result.TUTORIAL_FIX, Result.IMPL_FIX} == PULLED_RESULTS
