"""The review session: what the Fixes screen works on, without a terminal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.journal.state import SweepState
from swarm_tui.review.review import Review
from swarm_tui.review.verdicts import ReviewFolder, Verdict
from swarm_tui.room.fixes.session import ReviewSession, open_session
from swarm_tui.room.fixes.view import fix_view, plan_summary, plan_view, proposal_details
from tests.git_project import GitProject

HALF = {2: "return x / 2", 3: "return x // 2"}


class Recorder:
    """Runs the tasks of a session, and records its messages and how often it has changed."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.changes = 0
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def show_session(self) -> None:
        self.changes += 1

    def show_message(self, text: str, level: str = "info") -> None:
        self.messages.append(text)

    def start(self, work: Callable[[], Awaitable[None]], group: str) -> None:
        async def run() -> None:
            await work()

        if group in self.tasks:
            self.tasks[group].cancel()
        self.tasks[group] = asyncio.create_task(run())

    async def finish(self) -> None:
        """Wait for the tasks. Replaced tasks were cancelled."""
        await asyncio.gather(*self.tasks.values())


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    """A project with three fixes on `integrated`. The third fix depends on the second."""
    project = GitProject(tmp_path / "project")
    double, half = "def double(x):\n    return x + x\n\n\n", "def half(x):\n    {}\n"
    project.commit("base", {"lib.py": double.replace("x + x", "x + x + 1") + half.format("return x")})
    project.git("switch", "--quiet", "--create", "integrated")
    project.commit("[FIX_IMPL] Double is twice", {"lib.py": double + half.format("return x"), "notes.txt": "2\n"})
    project.commit("[FIX_IMPL] Half is half", {"lib.py": double + half.format(HALF[2])})
    project.commit("[FIX_IMPL] Half is a whole number", {"lib.py": double + half.format(HALF[3])})
    return project


@asynccontextmanager
async def open_project(project: GitProject, tmp_path: Path) -> AsyncIterator[tuple[ReviewSession, Recorder]]:
    folder = ReviewFolder(tmp_path / "verdicts.jsonl", tmp_path / "review")
    review = Review.open(Repository.open(project.root), "main", "integrated", folder=folder, by="ada")
    view = Recorder()
    session = open_session(review, view, SweepState, None)
    try:
        yield session, view
        await view.finish()
    finally:
        await session.close()


def current(session: ReviewSession) -> int:
    assert session.current is not None
    return session.current.rank


def decide(session: ReviewSession, verdict: Verdict) -> None:
    assert session.current is not None
    session.decide(session.current, verdict)


async def test_verdict_moves_to_next_open_row(project: GitProject, tmp_path: Path) -> None:
    async with open_project(project, tmp_path) as (session, view):
        assert current(session) == 1
        decide(session, Verdict.LATER)
        decide(session, Verdict.KEEP)
        assert current(session) == 3
        decide(session, Verdict.REVERT)
        assert current(session) == 1, "a fix for later is open"
        decide(session, Verdict.KEEP)
        assert view.messages == ["every fix has a verdict: press A to apply the plan"]
        assert view.changes == 4
        view_of_plan = plan_view(session)
        assert (view_of_plan.kept, view_of_plan.reverted, view_of_plan.is_known) == (2, 1, False)
        await view.finish()
        assert plan_view(session).is_known
        session.undo()
        session.undo()
        assert view.messages[1:] == ["undone: #1 is for later", "undone: #3 is open"]
        assert current(session) == 3


async def test_conflict_of_plan_is_named(project: GitProject, tmp_path: Path) -> None:
    async with open_project(project, tmp_path) as (session, view):
        second = session.fixes[1]
        session.decide(second, Verdict.REVERT)
        await view.finish()
        assert plan_view(session).conflicts == ("#2 with #3",)
        assert fix_view(session, second).is_conflicting
        await session.compute_effect(second)
        conflict = session.conflict_of(second)
        assert conflict is not None
        session.decide_all([(second, Verdict.KEEP)])
        await view.finish()
        assert plan_view(session).conflicts == ()


async def test_fix_is_split_into_hunks_and_back(project: GitProject, tmp_path: Path) -> None:
    async with open_project(project, tmp_path) as (session, view):
        first, second = session.fixes[:2]
        session.current = second
        await session.split(second)
        assert view.messages[0].startswith("this fix has one hunk")
        assert session.split_row is None
        session.current = first
        await session.split(first)
        assert (session.title, len(session.rows)) == ("#1 2 hunks", 2)
        decide(session, Verdict.REVERT)
        assert session.current is session.rows[1]
        decide(session, Verdict.KEEP)
        assert view.messages[-1] == "every hunk has a verdict: press Esc to return to the fixes"
        assert session.why_not_split(session.rows[0]) == "press Esc to return to the fixes"
        assert session.leave_split()
        assert not session.leave_split()
        assert session.current is first
        assert fix_view(session, first).verdict == "partly"
        await view.finish()
        assert plan_summary(session)[0] == "0 reverted, 1 in part"


async def test_filter_keeps_current_row_if_it_matches(project: GitProject, tmp_path: Path) -> None:
    async with open_project(project, tmp_path) as (session, _):
        session.current = session.fixes[2]
        session.set_filter("half")
        assert ([row.rank for row in session.rows], current(session)) == ([2, 3], 3)
        assert session.title == "Ranked 3 · 2 match /half"
        session.set_filter("double")
        assert ([row.rank for row in session.rows], current(session)) == ([1], 1)
        session.set_filter("nothing like this")
        assert not session.rows
        assert session.current is None


async def test_plan_is_applied_until_next_verdict(project: GitProject, tmp_path: Path) -> None:
    async with open_project(project, tmp_path) as (session, view):
        assert session.why_not_apply() == "nothing is reverted: integrated already is the result"
        session.decide(session.fixes[2], Verdict.REVERT)
        await view.finish()
        proposal = session.propose(is_drop=True)
        assert proposal_details(session, proposal)[0] == "2 fixes still open, will be kept"
        applied, hint = await session.apply(proposal)
        assert plan_view(session).applied == applied.branch
        assert hint.endswith(f"git switch {applied.branch}")
        assert HALF[2] in project.git("show", f"{applied.branch}:lib.py")
        session.decide(session.fixes[0], Verdict.REVERT)
        assert plan_view(session).applied == ""
        await view.finish()
        session.undo()
        await view.finish()
        assert plan_view(session).applied == applied.branch, "the branch has the tree of the plan again"
