"""Branches of coding agents: measured like those of the built-in integrator, and replaced if those are better."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from swarm_tui.integrator.inputs import BranchInput, Submission
from swarm_tui.integrator.program import integrate
from swarm_tui.model.report import IntegratorReport, parse_integrator_report
from tests.integrator.integrator_project import CODE, SWEEP, TEST_FILE, TESTS, SweptProject, changed

ADD = changed(CODE, "first - second", "first + second")
DOUBLE = changed(CODE, "number * 3", "number * 2")
NAME = changed(TESTS, '"Sums"', '"sums"')
REF = f"refs/swarm-fetched/{SWEEP}"
TEST_ADD, TEST_NEGATIVE, TEST_DOUBLE, TEST_HALVE, TEST_NAME = (
    f"{TEST_FILE}::test_{name}" for name in ("add", "add_negative", "double", "halve", "name")
)


class Swept(SweptProject):
    """Two fixes and one test fix of agents, and the branch that an integrator submits."""

    def __init__(self, root: Path, cache: Path) -> None:
        super().__init__(root)
        self.cache = str(cache)
        self.let_agents_work()

    def let_agents_work(self) -> None:
        self.branches.clear()
        self.add = self.agent("test_add", [("[FIX_IMPL] Add", {"sums.py": ADD})])
        self.double = self.agent("test_double", [("[FIX_IMPL] Double", {"sums.py": DOUBLE})])
        self.name = self.agent("test_name", [("[FIX_TEST] The real name", {TEST_FILE: NAME})])

    def pick(self, *sources: BranchInput) -> dict[str, str]:
        """Cherry-pick the agents' commits on a new branch at the base; return the commit of each branch."""
        self.git.git("checkout", "--quiet", "--detach", self.base)
        return {source.branch: self._pick(source) for source in sources}

    def _pick(self, source: BranchInput) -> str:
        self.git.git("cherry-pick", source.tip)
        return self.git.git("rev-parse", "HEAD")

    def pick_all(self) -> dict[str, Any]:
        """Cherry-pick all work in the form that the prompt requires; return the report."""
        self.pick(self.name)
        self.git.git("commit", "--quiet", "--amend", "-m", "[TEST/DOC] 1 test fix")
        squashed = self.git.git("rev-parse", "HEAD")
        named = {source.branch: self._pick(source) for source in (self.add, self.double)}
        return {
            "squashed_branches": [self.name.branch],
            "squashed_commit_hash": squashed,
            "impl_priority": list(named),
            "impl_commit_hashes": named,
        }

    def change(self, message: str, path: str, old: str, new: str) -> str:
        return self.git.commit(message, {path: changed((self.git.root / path).read_text(), old, new)})

    async def integrate(
        self, report: Mapping[str, Any] | None = None, *, problem: str = "", **inputs: object
    ) -> IntegratorReport:
        """Submit the checked-out branch, and return the result."""
        tip = self.git.git("rev-parse", "HEAD")
        self.git.git("update-ref", REF, tip)
        self.git.git("checkout", "--quiet", "main")
        said = parse_integrator_report(IntegratorReport.model_validate(report or {}).model_dump_json().encode())
        submission = Submission(tip=tip, ref=REF, problem=problem, report=said)
        made = self.inputs(**{"measure_seconds": 600.0, "cache": self.cache, "submission": submission, **inputs})  # type: ignore[arg-type]
        self.made = made
        outcome = await integrate(self.repository, made, lambda line: None)
        return parse_integrator_report(outcome.model_dump_json().encode())

    def tip_of(self) -> str:
        return self.git.git("rev-parse", f"refs/heads/{self.made.branch}")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one cache for all tests, because most of these tests result in the same trees."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def swept(tmp_path: Path, cache: Path) -> Swept:
    return Swept(tmp_path / "project", cache)


def extra(outcome: IntegratorReport) -> dict[str, Any]:
    return outcome.model_extra or {}


def reasons(outcome: IntegratorReport) -> dict[str, str]:
    return {entry.branch.rpartition("/")[2]: entry.reason for entry in outcome.failed}


def green(outcome: IntegratorReport) -> dict[str, int]:
    """Return the number of tests that each commit turns green, by commit."""
    return {entry["commit"]: len(entry["turned_green"]) for entry in extra(outcome)["ranking"]}


@pytest.mark.slow
async def test_submission_of_all_work_is_used_with_measured_effects(swept: Swept) -> None:
    report = swept.pick_all()
    tip = swept.git.git("rev-parse", "HEAD")
    outcome = await swept.integrate(report)
    assert (extra(outcome)["by"], extra(outcome)["problems"], swept.tip_of()) == ("agent", [], tip)
    add, double = report["impl_commit_hashes"].values()
    assert [(entry["commit"], entry["why"], entry["is_measured"]) for entry in extra(outcome)["ranking"]] == [
        (add, "turns 2 tests green, 2 lines", True),
        (double, "turns 1 test green, 2 lines", True),
    ]
    assert extra(outcome)["final_run"]["passed"] == 5
    assert outcome.squashed_commit_hash == report["squashed_commit_hash"]
    assert (outcome.failed, extra(outcome)["by_integrator"]) == ((), {})


@pytest.mark.slow
async def test_submission_gets_evidence_of_builtin_integrator(swept: Swept) -> None:
    agents = await swept.integrate(swept.pick_all())
    swept.git.git("update-ref", "-d", f"refs/heads/{swept.made.branch}")
    ours = await integrate(swept.repository, swept.made.model_copy(update={"submission": None}), lambda line: None)

    def evidence(outcome: IntegratorReport) -> list[dict[str, Any]]:
        return [{**entry, "commit": ""} for entry in extra(outcome)["ranking"]]

    assert evidence(agents) == evidence(ours)
    assert extra(agents)["final_run"] == extra(ours)["final_run"]


Spoil = Callable[[Swept, dict[str, Any]], None]


def undo(swept: Swept, report: dict[str, Any]) -> None:
    swept.git.git("checkout", "--quiet", swept.base, "--", "sums.py")
    swept.git.git("commit", "--quiet", "-m", "[FIX_IMPL] Tidy up")


def make_other_tests_pass(swept: Swept, report: dict[str, Any]) -> None:
    """Break one test, and add another one that passes without proving anything."""
    swept.change("[FIX_IMPL] Halve", "sums.py", "number / 2", "number // 3")
    swept.git.commit("[FIX_TEST] More", {"tests/test_more.py": "def test_a():\n    pass\n"})


def leave_markers(swept: Swept, report: dict[str, Any]) -> None:
    swept.change(
        "[FIX_IMPL] Merge",
        "sums.py",
        "    return number / 2\n",
        "<<<<<<< ours\n    return number / 2\n=======\n    return 0\n>>>>>>> theirs\n",
    )


def leave_markers_in_a_document(swept: Swept, report: dict[str, Any]) -> None:
    swept.change("[FIX_IMPL] Merge", "README.md", "Adds,", "<<<<<<< ours\nAdds,\n=======\nAdds and\n>>>>>>> theirs\n")


def drop_a_fix(swept: Swept, report: dict[str, Any]) -> None:
    report["impl_commit_hashes"] = swept.pick(swept.add)


def drop_a_test(swept: Swept, report: dict[str, Any]) -> None:
    report |= {"squashed_branches": [], "squashed_commit_hash": None}
    report["impl_commit_hashes"] = swept.pick(swept.add, swept.double)


def undo_and_spoil_the_test(swept: Swept, report: dict[str, Any]) -> None:
    undo(swept, report)
    swept.change("[FIX_TEST] Wrong", TEST_FILE, "    assert add(2, 3) == 5\n", "    assert add(2, 3)\n")


def configure_pytest(swept: Swept, report: dict[str, Any]) -> None:
    hook = "def pytest_runtest_makereport(item, call):\n    call.excinfo = None\n"
    swept.git.commit("[FIX_IMPL] Configure", {"conftest.py": hook})


def submit_other_work_only(swept: Swept, report: dict[str, Any]) -> None:
    swept.git.git("checkout", "--quiet", "--detach", swept.base)
    swept.git.commit("[FIX_IMPL] My own idea", {"idea.py": "x = 1\n"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (undo, "3 tests that pass on the built-in integrator's branch fail on its: "),
        (make_other_tests_pass, "1 test that passes on the built-in integrator's branch fails on its: "),
        (leave_markers, "conflict markers in sums.py; no test could be run on its branch: "),
        (drop_a_fix, "2 tests that pass on the built-in integrator's branch fail on its: "),
    ],
)
async def test_submission_with_more_failures_is_replaced(swept: Swept, spoil: Spoil, words: str) -> None:
    report = swept.pick_all()
    spoil(swept, report)
    refused = swept.git.git("rev-parse", "HEAD")
    tests = swept.inputs().tests
    unresolved = tests[0].model_copy(update={"test": "tests/test_more.py::test_a", "result": "unresolved"})
    outcome = await swept.integrate(report, tests=(*tests, unresolved))
    assert words in extra(outcome)["refused"]
    assert (extra(outcome)["by"], extra(outcome)["refused_tip"], extra(outcome)["problems"]) == ("builtin", refused, [])
    assert swept.subjects(swept.made) == ["[TEST/DOC] 1 test fix", "[FIX_IMPL] Add", "[FIX_IMPL] Double"]
    assert extra(outcome)["final_run"]["passed"] == 5


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (leave_markers_in_a_document, "conflict markers in README.md"),
        (drop_a_test, "its branch lacks work without a reason: '[FIX_TEST] The real name' of "),
        (undo_and_spoil_the_test, "without a reason: '[FIX_IMPL] Add' of "),
        (configure_pytest, "its branch cannot be measured: '[FIX_IMPL] Configure' changes conftest.py"),
        (submit_other_work_only, "its branch contains nothing of the agents' work"),
    ],
)
async def test_submission_with_less_work_or_markers_is_replaced(swept: Swept, spoil: Spoil, words: str) -> None:
    report = swept.pick_all()
    spoil(swept, report)
    outcome = await swept.integrate(report, measure_seconds=0.0)
    assert words in extra(outcome)["refused"]
    assert len(swept.subjects(swept.made)) == 3


def submit_nothing(swept: Swept) -> None:
    swept.git.git("checkout", "--quiet", "--detach", swept.base)


def submit_a_merge(swept: Swept) -> None:
    swept.pick(swept.add)
    swept.git.git("merge", "--quiet", "--no-edit", "-m", "Merge", swept.double.tip)


def submit_another_history(swept: Swept) -> None:
    swept.git.git("checkout", "--quiet", "--orphan", "elsewhere")
    swept.git.commit("[FIX_IMPL] Elsewhere", {"sums.py": ADD})


def submit_many_commits(swept: Swept) -> None:
    tree = swept.git.git("rev-parse", f"{swept.base}^{{tree}}")
    who = "Ada <ada@example.org> 1763445120 +0000"
    commit = f'commit refs/heads/many\ncommitter {who}\ndata 4\nmore\n%sM 040000 {tree} ""\n'
    stream = commit % f"from {swept.base}\n" + commit % "" * 9_999
    swept.git.git("fast-import", "--quiet", stdin=stream.encode())
    swept.git.git("checkout", "--quiet", "--detach", "many")


@pytest.mark.parametrize(
    ("submit", "words"),
    [
        (submit_nothing, "it submitted no commit, although 3 agents submitted work"),
        (submit_a_merge, " is a merge commit"),
        (submit_another_history, "its branch is not based on the commit that the sweep started from"),
        (submit_many_commits, "its branch has 10,000 commits, although the agents have only 3"),
    ],
)
async def test_unusable_submission_is_replaced(swept: Swept, submit: Callable[[Swept], None], words: str) -> None:
    submit(swept)
    outcome = await swept.integrate(measure_seconds=0.0)
    assert words in extra(outcome)["refused"]
    assert len(swept.subjects(swept.made)) == 3


async def test_submission_with_a_problem_is_replaced(swept: Swept) -> None:
    report = swept.pick_all()
    outcome = await swept.integrate(report, problem="it submitted no report", measure_seconds=0.0)
    assert (extra(outcome)["by"], extra(outcome)["refused"]) == ("builtin", "it submitted no report")


async def test_commit_without_agent_is_ranked_and_labelled(swept: Swept) -> None:
    report = swept.pick_all()
    own = swept.git.commit("Tidy up", {"idea.py": "x = 1\n"})
    outcome = await swept.integrate(report, measure_seconds=0.0)
    assert extra(outcome)["by"] == "agent"
    assert extra(outcome)["by_integrator"] == {own: "not a commit of an agent"}
    (entry,) = [entry for entry in extra(outcome)["ranking"] if entry["commit"] == own]
    assert (entry["agents"], entry["tests"], entry["is_measured"]) == ([], [], False)


@pytest.mark.slow
async def test_better_submission_names_cause_of_regression(swept: Swept) -> None:
    tests = "from pair import FIRST, SECOND\n\n\ndef test_first():\n    assert FIRST == 10\n\n\n"
    tests += "def test_second():\n    assert SECOND == 20\n"
    pair = "FIRST = 1\nSECOND = 2\n"
    swept.base = swept.git.commit("A pair", {"pair.py": pair, "tests/test_pair.py": tests})
    swept.let_agents_work()
    first = swept.agent("test_first", [("[FIX_IMPL] First", {"pair.py": changed(pair, "1", "10")})])
    second = swept.agent("test_second", [("[FIX_IMPL] Second", {"pair.py": changed(pair, "2", "20")})])
    more = [
        swept.inputs().tests[0].model_copy(update={"test": f"tests/test_pair.py::{name}", "result": "impl_fix"})
        for name in ("test_first", "test_second")
    ]
    swept.branches[-2:] = [
        source.model_copy(update={"test": test.test}) for source, test in zip((first, second), more, strict=True)
    ]
    report = swept.pick_all()
    report["impl_commit_hashes"][first.branch] = swept._pick(first)
    # The built-in integrator leaves the second fix out because of a conflict. This solution breaks another test.
    spoiled = changed((swept.git.root / "sums.py").read_text(), "number / 2", "number // 3")
    solved = swept.git.commit("[FIX_IMPL] Second", {"pair.py": "FIRST = 10\nSECOND = 20\n", "sums.py": spoiled})
    report["impl_commit_hashes"][second.branch] = solved
    outcome = await swept.integrate(report, tests=(*swept.inputs().tests, *more))
    assert extra(outcome)["by"] == "agent"
    assert extra(outcome)["problems"] == [
        f"1 test that passed before integration fails on the integrated branch: {TEST_HALVE}"
    ]
    assert extra(outcome)["by_integrator"] == {solved: "differs from its agent's commit"}
    (entry,) = [entry for entry in extra(outcome)["ranking"] if entry["commit"] == solved]
    assert (entry["turned_green"], entry["broken"]) == ([more[1].test], [TEST_HALVE])


@pytest.mark.slow
async def test_reason_for_left_out_fix_is_listed(swept: Swept) -> None:
    named = swept.pick(swept.add)
    failed = [
        {"branch": swept.double.branch, "commit": swept.double.tip, "reason": "it hides\x1b[31m a bug"},
        {"branch": swept.name.branch, "reason": "the name is right"},
    ]
    outcome = await swept.integrate({"impl_commit_hashes": named, "failed": failed})
    assert (extra(outcome)["by"], extra(outcome)["problems"]) == ("agent", [])
    assert reasons(outcome) == {
        "test-double": "'[FIX_IMPL] Double' was left out by the integrator: it hides a bug",
        "test-name": "was left out by the integrator: the name is right",
    }


@pytest.mark.slow
async def test_claims_of_report_are_ignored(swept: Swept) -> None:
    report = swept.pick_all()
    add, double = report["impl_commit_hashes"].values()
    forged = {"commit": add, "turned_green": [TEST_HALVE, TEST_NAME], "is_measured": True, "why": "measured"}
    report |= {
        "impl_commit_hashes": {swept.add.branch: double, swept.double.branch: add, "swarm/other": add},
        "ranking": [forged],
        "final_run": {"passed": 1_000, "failed": []},
        "problems": [],
        "by": "builtin",
    }
    outcome = await swept.integrate(report)
    assert outcome.impl_commit_hashes == {swept.add.branch: add, swept.double.branch: double}
    assert green(outcome) == {add: 2, double: 1}
    assert (extra(outcome)["final_run"]["passed"], extra(outcome)["by"]) == (5, "agent")
    assert "swarm/other" not in outcome.model_dump_json()


@pytest.mark.slow
async def test_claim_about_missing_fix_is_listed(swept: Swept) -> None:
    named = swept.pick(swept.add)
    other = swept.git.commit("[FIX_IMPL] Double", {"idea.py": "x = 1\n"})
    outcome = await swept.integrate({"impl_commit_hashes": {**named, swept.double.branch: other}})
    assert extra(outcome)["by"] == "builtin"
    assert TEST_DOUBLE in extra(outcome)["refused"]


async def test_solved_conflict_is_used_and_labelled(swept: Swept) -> None:
    both = changed(CODE, "    return first - second", "    total = first + second\n    return total")
    swept.agent("test_add_negative", [("[FIX_IMPL] Add by name", {"sums.py": both})])
    source = swept.branches[-1]
    report = swept.pick_all()
    kept = swept.change("[FIX_IMPL] Add by name", "sums.py", "return first + second", "return (first + second)")
    report["impl_commit_hashes"][source.branch] = kept
    outcome = await swept.integrate(report, measure_seconds=0.0)
    assert extra(outcome)["by"] == "agent"
    assert extra(outcome)["by_integrator"] == {kept: "differs from its agent's commit"}
    assert outcome.failed == ()
    assert outcome.impl_commit_hashes[source.branch] == kept


async def test_changed_test_commit_is_noted(swept: Swept) -> None:
    report = swept.pick_all()
    swept.pick(swept.name)
    swept.change("x", TEST_FILE, "assert halve(4) == 2", "assert halve(4)")
    swept.git.git("reset", "--quiet", "--soft", swept.base)
    swept.git.git("commit", "--quiet", "-m", "[TEST/DOC] 1 test fix")
    squashed = swept.git.git("rev-parse", "HEAD")
    named = {source.branch: swept._pick(source) for source in (swept.add, swept.double)}
    report |= {"squashed_commit_hash": squashed, "impl_commit_hashes": named}
    outcome = await swept.integrate(report, measure_seconds=0.0)
    assert extra(outcome)["by"] == "agent"
    assert extra(outcome)["by_integrator"] == {squashed: f"it differs from the agents' work in {TEST_FILE}"}


@pytest.mark.slow
async def test_test_that_fails_once_is_flaky(swept: Swept, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    once = f"import os\n\n\ndef test_once():\n    seen = os.path.exists({str(seen)!r})\n"
    once += f"    open({str(seen)!r}, 'w').close()\n    assert seen\n"
    swept.base = swept.git.commit("Flaky", {"tests/test_flaky.py": once})
    swept.let_agents_work()
    tests = swept.inputs().tests
    clean = tests[0].model_copy(update={"test": "tests/test_flaky.py::test_once", "result": "clean"})
    outcome = await swept.integrate(swept.pick_all(), tests=(*tests, clean))
    assert (extra(outcome)["by"], extra(outcome)["problems"]) == ("agent", [])
    assert extra(outcome)["final_run"]["flaky"] == [clean.test]


@pytest.mark.slow
async def test_failure_without_integration_is_not_a_regression(swept: Swept) -> None:
    elsewhere = "def test_service():\n    assert False, 'no such service on this machine'\n"
    swept.base = swept.git.commit("A service", {"tests/test_service.py": elsewhere})
    swept.let_agents_work()
    tests = swept.inputs().tests
    clean = tests[0].model_copy(update={"test": "tests/test_service.py::test_service", "result": "clean"})
    outcome = await swept.integrate(swept.pick_all(), tests=(*tests, clean))
    assert (extra(outcome)["by"], extra(outcome)["problems"]) == ("agent", [])
    assert extra(outcome)["final_run"]["failed_before"] == [clean.test]
