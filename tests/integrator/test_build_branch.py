"""Commits of the integrated branch: none is empty, and conflicts name the other fixes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.integrator.branches import AgentCommit, read_branch
from swarm_tui.integrator.build import BranchFixes, RejectedCommit, Tip, add_fixes, conflict_reason, squash, works_of
from swarm_tui.integrator.duplicates import DistinctFix
from swarm_tui.model.commit_messages import fix_message, squash_message
from swarm_tui.review.picking import tree_with
from tests.integrator.integrator_project import README, SWEEP, TEST_FILE, SweptProject


def lines(**changed: str) -> str:
    """Return forty numbered lines, some of them changed: `lines(n5="x")` changes the fifth."""
    return "".join(f"{changed.get(f'n{number}', number)}\n" for number in range(1, 41))


class Workshop:
    """A project, the commits of its agents, and branches built from them."""

    def __init__(self, root: Path) -> None:
        self.project = SweptProject(root)
        self.project.base = self.project.git.commit("Lines", {"lines.txt": lines(), "other.txt": lines()})
        self.space = ObjectSpace(self.project.repository)
        self.base = Tip(self.project.base, self.project.repository.tree_of(self.project.base))

    def commits(self, name: str, *made: tuple[str, dict[str, str | bytes | None]]) -> list[AgentCommit]:
        source = self.project.agent(name, made)
        return read_branch(self.project.repository, source, self.project.inputs())

    def fix(self, name: str, **files: str) -> AgentCommit:
        """Return the only commit of an agent, which changes `lines` or `other`."""
        (commit,) = self.commits(name, (f"[FIX_IMPL] {name}", {f"{file}.txt": text for file, text in files.items()}))
        return commit

    def squash(self, commits: Sequence[AgentCommit]) -> tuple[Tip, list[AgentCommit], list[RejectedCommit]]:
        return squash(self.space, self.project.inputs(), self.base, commits)

    def add(self, *commits: AgentCommit) -> tuple[Tip, BranchFixes]:
        fixes = [DistinctFix((commit,)) for commit in commits]
        return add_fixes(self.space, self.project.inputs(), self.base, fixes)

    def shown(self, commit: str, form: str) -> str:
        return self.space.repository.run("log", "-1", f"--format={form}", commit, "--").text.strip()


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    made = Workshop(tmp_path / "project")
    with made.space:
        yield made


def left_out(made: list[tuple[DistinctFix, str]]) -> dict[str, str]:
    return {fix.chosen.subject.removeprefix("[FIX_IMPL] "): reason for fix, reason in made}


def test_fixes_are_picked_in_order(workshop: Workshop) -> None:
    one, two = workshop.fix("one", lines=lines(n5="one")), workshop.fix("two", lines=lines(n25="two"))
    tip, fixes = workshop.add(two, one)
    assert [entry.fix.chosen for entry in fixes.picked] == [two, one]
    assert (fixes.picked[0].tree, tip) == (two.tree, Tip(fixes.picked[1].commit, fixes.picked[1].tree))
    assert workshop.shown(tip.commit, "%P") == fixes.picked[0].commit
    assert workshop.shown(fixes.picked[0].commit, "%P") == workshop.base.commit
    assert workshop.shown(tip.commit, "%T") == tip.tree
    content = workshop.space.entry(tip.tree, "lines.txt")
    assert content is not None
    assert workshop.space.read(content.id)[1].decode() == lines(n5="one", n25="two")


def test_fix_without_new_changes_makes_no_commit(workshop: Workshop) -> None:
    both, part = workshop.fix("both", lines=lines(n5="x", n25="y")), workshop.fix("part", lines=lines(n25="y"))
    tip, fixes = workshop.add(both, part)
    assert [entry.fix.chosen for entry in fixes.picked] == [both]
    assert tip.commit == fixes.picked[-1].commit
    assert left_out(fixes.left_out) == {"part": "it adds nothing that is not already on the branch"}


def test_conflict_names_only_the_conflicting_fixes(workshop: Workshop) -> None:
    near = workshop.fix("near", lines=lines(n5="near"))
    far = workshop.fix("far", lines=lines(n25="far"))
    elsewhere = workshop.fix("elsewhere", other=lines(n5="elsewhere"))
    rival = workshop.fix("rival", lines=lines(n5="rival"), other=lines(n30="rival"))
    tip, fixes = workshop.add(far, elsewhere, near, rival)
    assert [entry.fix.chosen for entry in fixes.picked] == [far, elsewhere, near]
    assert left_out(fixes.left_out) == {
        "rival": f"conflicts in lines.txt with '[FIX_IMPL] near' of swarm-{SWEEP}-near",
    }
    assert tip.commit == fixes.picked[-1].commit


def test_conflict_names_fixes_that_do_not_apply_alone(workshop: Workshop) -> None:
    first, second = workshop.commits(
        "chain",
        ("[FIX_IMPL] first", {"lines.txt": lines(n5="first")}),
        ("[FIX_IMPL] second", {"lines.txt": lines(n5="second")}),
    )
    rival = workshop.fix("rival", lines=lines(n5="rival"))
    assert tree_with(workshop.space, workshop.base.tree, [second]) is None
    assert tree_with(workshop.space, workshop.base.tree, [first]) == first.tree
    _, fixes = workshop.add(second, first, rival)
    # The second is retried after the first, and the rival after both.
    assert [entry.fix.chosen for entry in fixes.picked] == [first, second]
    agent = f"swarm-{SWEEP}-chain"
    assert left_out(fixes.left_out) == {
        "rival": f"conflicts in lines.txt with '[FIX_IMPL] first' of {agent} and '[FIX_IMPL] second' of {agent}"
    }


def test_conflicting_test_commit_is_rejected_with_reason(workshop: Workshop) -> None:
    (words,) = workshop.commits("words", ("[FIX_TUTORIAL] Words", {"README.md": f"{README}\n"}))
    (test,) = workshop.commits("test", ("[FIX_TEST] Test", {TEST_FILE: "def test_add(): pass\n"}))
    (rival,) = workshop.commits("rival", ("[FIX_TEST] Rival", {TEST_FILE: "def test_other(): pass\n"}))
    tip, squashed, rejected = workshop.squash([words, test, rival])
    assert squashed == [words, test]
    reason = f"conflicts in {TEST_FILE} with '[FIX_TEST] Test' of swarm-{SWEEP}-test"
    assert rejected == [RejectedCommit(rival, reason)]
    assert workshop.shown(tip.commit, "%P|%T|%s") == (
        f"{workshop.base.commit}|{tip.tree}|[TEST/DOC] 1 test fix, 1 tutorial fix"
    )


@pytest.mark.parametrize(
    ("emails", "author"), [(["a@x", "a@x"], "One <a@x>"), (["a@x", "b@x"], "Ada Lovelace <ada@example.org>")]
)
def test_squashed_commit_has_common_author(workshop: Workshop, emails: list[str], author: str) -> None:
    git, made = workshop.project.git, []
    git.git("config", "user.name", "One")
    for number, email in enumerate(emails):
        git.git("config", "user.email", email)
        made += workshop.commits(f"t{number}", (f"[FIX_TEST] {number}", {f"tests/test_{number}.py": "pass\n"}))
    git.git("config", "user.name", "An Integrator")
    tip, _, _ = workshop.squash(made)
    assert workshop.shown(tip.commit, "%an <%ae>, %cn") == f"{author}, An Integrator"


def test_squashed_commits_that_cancel_make_no_commit(workshop: Workshop) -> None:
    there, back = workshop.commits(
        "t",
        ("[FIX_TUTORIAL] There", {"README.md": "# other\n"}),
        ("[FIX_TUTORIAL] Back", {"README.md": README}),
    )
    tip, squashed, rejected = workshop.squash([there, back])
    assert tip is workshop.base
    assert (squashed, rejected) == ([there, back], [])


def test_conflict_reason_names_three_files_and_fixes(workshop: Workshop) -> None:
    commits = [workshop.fix(f"fix-{number}", lines=lines(n5=str(number))) for number in range(4)]
    assert conflict_reason(["a", "b"], []) == "conflicts in a, b"
    sides = " and ".join(f"'[FIX_IMPL] fix-{number}' of {commits[number].source.agent}" for number in range(3))
    assert conflict_reason(["a", "b", "c", "d"], commits) == f"conflicts in a, b, c with {sides}"


def test_squashed_message_lists_agents_and_commits(workshop: Workshop) -> None:
    one, two = workshop.commits(
        "one",
        ("[IMPROVE_TEST] Better\n\nWhy.", {TEST_FILE: "1\n"}),
        ("Words", {"README.md": "2\n"}),
    )
    (other,) = workshop.commits("two", ("[IMPROVE_TEST] Best", {"tests/test_two.py": "1\n"}))
    assert squash_message(works_of([one, two, other]), "s1") == (
        "[TEST/DOC] 2 better tests, 1 other change\n\n"
        f"* Better\n  {TEST_FILE}::one\n* Words\n  {TEST_FILE}::one\n* Best\n  {TEST_FILE}::two\n\n"
        f"Agent: swarm-{SWEEP}-one\nAgent: swarm-{SWEEP}-two\nSweep: s1\n"
    )


@pytest.mark.parametrize(
    ("message", "begins"),
    [
        ("[FIX_IMPL] Add", "[FIX_IMPL] Add\n\nAgent: a\n"),
        ("[FIX_TEST] Add", "[FIX_IMPL] Add\n\nAgent: a\n"),
        ("Add\n\n\nWhy.\n\n", "[FIX_IMPL] Add\n\nWhy.\n\nAgent: a\n"),
        ("Add\n\nWhy.\n\nRefs: 1\nSee-also: 2", "[FIX_IMPL] Add\n\nWhy.\n\nRefs: 1\nSee-also: 2\nAgent: a\n"),
        ("Add\n\nRefs: 1", "[FIX_IMPL] Add\n\nRefs: 1\nAgent: a\n"),
    ],
)
def test_fix_message_has_prefix_and_one_trailer_block(message: str, begins: str) -> None:
    assert fix_message(message, ["a"], ["t.py::t"], "s1") == f"{begins}Test: t.py::t\nSweep: s1\n"
