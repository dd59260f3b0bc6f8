"""The Fixes screen, key by key, on a real repository."""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from traceback import walk_stack
from types import FrameType

import pytest
from textual.pilot import Pilot

from swarm_tui.adapters.git import Repository
from swarm_tui.errors import SwarmError
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.report import IntegratorReport, LeftOut
from swarm_tui.model.spec import MngrSettings, SweepSpec
from swarm_tui.review.apply import apply_plan, plan_apply, reviewed_branch
from swarm_tui.review.review import Review
from swarm_tui.review.verdicts import ReviewFolder
from swarm_tui.room.app import RoomApp
from swarm_tui.room.fixes.screen import FixesScreen
from swarm_tui.room.settings import Settings
from swarm_tui.room.store import Store
from swarm_tui.room.widgets.lines import Band
from tests.git_project import GitProject, file_contents
from tests.room.scenes import resize, text_on_screen
from tests.waiting import eventually


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    """A project with two faulty functions and three fixes on `integrated`. The third fix depends on the second."""
    project = GitProject(tmp_path / "project")
    project.commit(
        "base",
        {
            "conftest.py": "",
            "lib.py": "def double(x):\n    return x + x + 1\n\n\ndef half(x):\n    return x\n",
            "tests/test_lib.py": "from lib import double, half\n\n\n"
            "def test_double():\n    assert double(2) == 4\n\n\ndef test_half():\n    assert half(4) == 2\n",
        },
    )
    project.git("switch", "--quiet", "--create", "integrated")
    double = "def double(x):\n    return x + x\n\n\n"
    project.commit("[FIX_IMPL] Double is twice", {"lib.py": double + "def half(x):\n    return x\n"})
    project.commit("[FIX_IMPL] Half is half", {"lib.py": double + "def half(x):\n    return x / 2\n"})
    project.commit("[FIX_IMPL] Half is a whole number", {"lib.py": double + "def half(x):\n    return x // 2\n"})
    project.git("switch", "--quiet", "main")
    return project


def spec_folder(tmp_path: Path) -> SweepFolder:
    folder = SweepFolder(tmp_path / "review-room")
    spec = SweepSpec(sweep="main..integrated", repository="", base="", created_at=1.0, mngr=MngrSettings(path=""))
    folder.write_spec(spec)
    return folder


def review_folder(tmp_path: Path) -> ReviewFolder:
    return ReviewFolder(tmp_path / "verdicts.jsonl", tmp_path / "review")


@asynccontextmanager
async def merge_view(
    project: GitProject, tmp_path: Path, size: tuple[int, int] = (120, 30), failed: Sequence[LeftOut] = ()
) -> AsyncIterator[tuple[RoomApp, FixesScreen, Pilot[str]]]:
    verdicts = review_folder(tmp_path)

    def open_it() -> Review:
        outcome = IntegratorReport(failed=tuple(failed))
        repository = Repository.open(project.root)
        return Review.open(repository, "main", "integrated", folder=verdicts, outcome=outcome, by="ada")

    app = RoomApp(Store(spec_folder(tmp_path)), Settings(notify="none"), home="fixes", given_review=open_it)
    async with app.run_test(size=size) as pilot:
        screen = app.screen
        assert isinstance(screen, FixesScreen)
        await until(pilot, lambda: screen.session is not None and screen.session.preview is not None)
        yield app, screen, pilot


async def until(pilot: Pilot[str], is_so: Callable[[], bool]) -> None:
    await eventually(is_so, inspect.getsource(is_so).strip(), describe=lambda: text_on_screen(pilot.app))
    await pilot.pause()


def verdicts_of(screen: FixesScreen) -> list[str]:
    assert screen.session is not None
    given = (screen.session.review.verdict(fix) for fix in screen.session.fixes)
    return [verdict.value if verdict else "" for verdict in given]


async def test_verdict_key_moves_to_next_open_fix(project: GitProject, tmp_path: Path) -> None:
    async with merge_view(project, tmp_path) as (app, screen, pilot):
        await pilot.press("y", "n", "l")
        assert verdicts_of(screen) == ["keep", "revert", "later"]
        await pilot.press("z", "z")
        assert verdicts_of(screen) == ["keep", "", ""]
        assert screen.lines.cursor == 1
        await pilot.press("Z")
        assert verdicts_of(screen) == ["keep", "revert", ""]
        await pilot.press("u")
        assert verdicts_of(screen) == ["keep", "", ""]
        assert app.closing_line() == "reviewed 1 of 3, 0 reverted, 2 open"


async def test_plan_line_is_few_calls_below_verdict_key(project: GitProject, tmp_path: Path) -> None:
    chains: list[list[str]] = []

    def follow(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is Band.show.__code__ and frame.f_locals["self"].id == "plan":
            codes = [caller.f_code for caller, _ in walk_stack(frame)]
            chains.append([code.co_name for code in codes if "swarm_tui/room" in code.co_filename])

    async with merge_view(project, tmp_path) as (_, _, pilot):
        sys.setprofile(follow)
        try:
            await pilot.press("n")
        finally:
            sys.setprofile(None)
    of_key = next(chain for chain in chains if "press_key" in chain)
    # Four functions before these deliver the key: `RoomApp.on_event` and three of `KeyQueue`.
    assert len(of_key) <= 15 - 4, of_key


async def test_unlisted_commits_are_counted(project: GitProject, tmp_path: Path) -> None:
    project.git("switch", "--quiet", "integrated")
    project.commit("Tidy up", {"notes.txt": "tidy\n"})
    project.git("switch", "--quiet", "main")
    async with merge_view(project, tmp_path, (80, 24)) as (_, screen, pilot):
        assert screen.session is not None
        assert len(screen.session.fixes) == 3
        assert "Ranked 3 · 1 commit not listed: --all" in text_on_screen(pilot.app)


async def test_diff_follows_cursor(project: GitProject, tmp_path: Path) -> None:
    async with merge_view(project, tmp_path) as (app, _, pilot):
        await until(pilot, lambda: "return x + x" in text_on_screen(app))
        await pilot.press("j")
        await until(pilot, lambda: "+    return x / 2" in text_on_screen(app))
        await pilot.press("e")
        await until(pilot, lambda: "Evidence for #2 Half is half" in text_on_screen(app))


async def test_preloaded_diff_is_drawn_with_cursor(project: GitProject, tmp_path: Path) -> None:
    async with merge_view(project, tmp_path) as (_, screen, pilot):
        merge = screen.session
        assert merge is not None
        await until(pilot, lambda: merge.review.known_diff(merge.fixes[1]) is not None)
        screen.lines.move(1)
        assert screen.diff.diff is merge.review.known_diff(merge.fixes[1])


async def test_conflict_offers_to_revert_later_fix(project: GitProject, tmp_path: Path) -> None:
    async with merge_view(project, tmp_path) as (app, screen, pilot):
        await pilot.press("j", "n", "k")
        await until(pilot, lambda: "conflicts with #3 in lib.py" in text_on_screen(app))
        assert "plan conflict #2 with #3" in text_on_screen(app)
        await pilot.press("c")
        await until(pilot, lambda: "revert #3 too" in text_on_screen(app))
        assert "Reverting #2 conflicts with #3" in text_on_screen(app)
        assert "lib.py: 1 place, 2 lines" in text_on_screen(app)
        await pilot.press("r")
        await until(pilot, lambda: screen.session is not None and screen.session.preview is not None)
        assert verdicts_of(screen) == ["", "revert", "revert"]
        assert "plan clean" in text_on_screen(app)


@pytest.mark.slow
async def test_left_out_fix_is_swapped_in_for_conflicting_ones(project: GitProject, tmp_path: Path) -> None:
    project.git("switch", "--quiet", "--create", "better", "main")
    whole = "def double(x):\n    return x + x + 1\n\n\ndef half(x):\n    return divmod(x, 2)[0]\n"
    better = project.commit("[FIX_IMPL] Half by divmod", {"lib.py": whole, "more.py": "MORE = 1\n"})
    project.git("switch", "--quiet", "main")
    left_out = LeftOut(branch="swarm/x/better", commit=better, reason="conflicts")
    async with merge_view(project, tmp_path, failed=[left_out]) as (app, screen, pilot):
        await pilot.press("s")
        assert "already on the branch" in text_on_screen(app)
        await pilot.press("G")
        await until(pilot, lambda: "if swapped in: conflicts with #2, #3 in lib.py  s: swap in" in text_on_screen(app))
        assert "4 out    Half by divmod" in text_on_screen(app)
        await pilot.press("H")
        assert "not in the plan: press s to swap it in" in text_on_screen(app)
        await pilot.press("r")
        assert "not on the branch" in text_on_screen(app)
        await pilot.press("escape")
        await pilot.press("s")
        await until(pilot, lambda: "#4 is in the plan for #2, #3" in text_on_screen(app))
        await until(pilot, lambda: "plan clean" in text_on_screen(app))
        assert "4 IN     Half by divmod" in text_on_screen(app)
        state = screen.session
        assert state is not None
        assert state.preview is not None
        assert state.preview.tree is not None
        assert any("divmod" in line for line in state.review.net_diff().lines)
        await pilot.press("A", "r")
        await until(pilot, lambda: "+ [FIX_IMPL] Half by divmod" in text_on_screen(app))
        await pilot.press("escape", "s")
        await until(pilot, lambda: "4 out    Half by divmod" in text_on_screen(app))
        await pilot.press("z")
        assert "undone: #4 is swapped in" in text_on_screen(app)
        assert verdicts_of(screen) == ["", "revert", "revert"]
        await pilot.press("z")
        assert "undone: #2+#3 are open, #4 is out" in text_on_screen(app)
        assert verdicts_of(screen) == ["", "", ""]
        await pilot.press("Z")
        assert "again: #2+#3 are reverted, #4 is swapped in" in text_on_screen(app)
        screen.lines.move_to(3)
        await pilot.press("H")
        await until(pilot, lambda: "#4 2 hunks" in text_on_screen(app))
        await pilot.press("j", "n", "escape")
        await until(pilot, lambda: "4 IN     Half by divmod" in text_on_screen(app))
        assert "1 hunk out" in text_on_screen(app)
        await until(pilot, lambda: "plan clean" in text_on_screen(app))
        assert not any("MORE" in line for line in state.review.net_diff().lines)
        await pilot.press("s")
        await until(pilot, lambda: "4 out    Half by divmod" in text_on_screen(app))


@pytest.mark.slow
async def test_run_without_fix_shows_red_tests(project: GitProject, tmp_path: Path) -> None:
    async with merge_view(project, tmp_path) as (app, _, pilot):
        await pilot.press("T")
        await until(pilot, lambda: "if reverted: clean · 1 test goes red" in text_on_screen(app))


async def test_x_stops_background_run(project: GitProject, tmp_path: Path) -> None:
    async with merge_view(project, tmp_path) as (app, screen, pilot):
        await pilot.press("X")
        assert "no test run in the background" in text_on_screen(app)
        await pilot.press("T")
        await until(pilot, lambda: "without #1:" in text_on_screen(app))
        await pilot.press("V")
        assert "one run at a time, press X to stop it" in text_on_screen(app)
        await pilot.press("X")
        state = screen.session
        assert state is not None
        await until(pilot, lambda: not state.running)
        assert "stopped" in text_on_screen(app)
        await pilot.press("W")
        assert "this branch changes no test" in text_on_screen(app)


async def test_apply_asks_and_keeps_checkout(project: GitProject, tmp_path: Path) -> None:
    async with merge_view(project, tmp_path) as (app, screen, pilot):
        await pilot.press("A")
        assert "nothing is reverted" in text_on_screen(app)
        await pilot.press("n")
        await until(pilot, lambda: screen.session is not None and screen.session.preview is not None)
        work_tree = {name: text for name, text in file_contents(project.root).items() if not name.startswith(".git")}
        await pilot.press("A", "r")
        await until(pilot, lambda: "Your checkout is unchanged" in text_on_screen(app))
        await pilot.press("enter")
        assert "Your checkout is unchanged" in text_on_screen(app)
        await pilot.press("y")
        await until(pilot, lambda: "Created. To check it out" in text_on_screen(app))
    branch = project.git("branch", "--list", "swarm/*", "--format=%(refname:short)")
    assert project.git("log", "-1", "--format=%s", branch) == 'Revert "[FIX_IMPL] Double is twice"'
    assert {
        name: text for name, text in file_contents(project.root).items() if not name.startswith(".git")
    } == work_tree


async def test_fixes_screen_draws_on_tiny_terminal(project: GitProject, tmp_path: Path) -> None:
    async with merge_view(project, tmp_path, (20, 5)) as (app, _, _):
        assert "3 fixes" in text_on_screen(app)


async def test_plan_is_shown_as_one_diff(project: GitProject, tmp_path: Path) -> None:
    async with merge_view(project, tmp_path) as (app, screen, pilot):
        await pilot.press("n")
        await until(pilot, lambda: screen.session is not None and screen.session.preview is not None)
        await pilot.press("D")
        await until(pilot, lambda: "The plan against the base" in text_on_screen(app))
        assert "+    return x // 2" in text_on_screen(app)
        assert "+    return x + x" not in text_on_screen(app)
        await pilot.press("k")
        await until(pilot, lambda: "Double is twice" in text_on_screen(app) and "as a whole" not in text_on_screen(app))


async def test_unreadable_branch_is_read_again(project: GitProject, tmp_path: Path) -> None:
    errors = [SwarmError("no git process can be started")] * 2

    def open_it() -> Review:
        if errors:
            raise errors.pop()
        return Review.open(Repository.open(project.root), "main", "integrated", folder=review_folder(tmp_path))

    # The pause between two tries does not depend on the clock of the room.
    store = Store(spec_folder(tmp_path), clock=lambda: 5.0)
    app = RoomApp(store, Settings(notify="none"), home="fixes", given_review=open_it)
    async with app.run_test(size=(120, 30)) as pilot:
        await until(pilot, lambda: "3 fixes" in text_on_screen(app))


async def test_rewritten_branch_is_read_again_with_verdicts(project: GitProject, tmp_path: Path) -> None:
    async with merge_view(project, tmp_path) as (app, screen, pilot):
        await pilot.press("y")
        project.git("switch", "--quiet", "integrated")
        project.commit("[FIX_IMPL] One more", {"more.py": "MORE = True\n"})
        await until(pilot, lambda: "the branch was rewritten" in text_on_screen(app))
        assert verdicts_of(screen) == ["keep", "", "", ""]


async def test_evidence_appears_when_terminal_grows(project: GitProject, tmp_path: Path) -> None:
    why = "A half with a fraction surprised all callers that counted with it."
    project.git("switch", "--quiet", "integrated")
    project.git("commit", "--quiet", "--amend", "--message", f"[FIX_IMPL] Half is a whole number\n\n{why}")
    project.git("switch", "--quiet", "main")
    async with merge_view(project, tmp_path, (100, 24)) as (app, _, pilot):
        await pilot.press("G")
        await until(pilot, lambda: "return x // 2" in text_on_screen(app))
        assert why not in text_on_screen(app)
        await resize(pilot, 140, 40)
        await until(pilot, lambda: why in text_on_screen(app))


async def test_applied_plan_is_recognized_in_new_room(project: GitProject, tmp_path: Path) -> None:
    async with merge_view(project, tmp_path) as (app, _, pilot):
        await pilot.press("G", "n")
        await until(pilot, lambda: "not applied" in text_on_screen(app))
    repository = Repository.open(project.root)
    verdicts = ReviewFolder(tmp_path / "verdicts.jsonl", tmp_path / "review")
    with Review.open(repository, "main", "integrated", folder=verdicts, by="ada") as review:
        applied = apply_plan(review, plan_apply(review, reviewed_branch(review)))
    async with merge_view(project, tmp_path) as (app, _, pilot):
        await until(pilot, lambda: f"applied on {applied.branch}" in text_on_screen(app))
        await pilot.press("g", "n")
        await until(pilot, lambda: "not applied" in text_on_screen(app))


async def test_missing_branch_is_read_when_it_returns(project: GitProject, tmp_path: Path) -> None:
    async with merge_view(project, tmp_path) as (app, screen, pilot):
        tip = project.git("rev-parse", "integrated")
        project.git("branch", "--delete", "--force", "integrated")
        await until(pilot, lambda: screen.session is None and "No fixes" in text_on_screen(app))
        project.git("branch", "integrated", tip)
        await until(pilot, lambda: "3 fixes" in text_on_screen(app))
