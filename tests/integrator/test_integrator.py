"""The built-in integrator on real branches: squashed, picked, folded and left-out commits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swarm_tui.integrator.branches import read_branches
from swarm_tui.integrator.inputs import IntegratorInputs
from swarm_tui.integrator.program import integrate
from swarm_tui.integrator.tip import Meter
from swarm_tui.model.formatting import Progress
from swarm_tui.model.report import IntegratorReport, parse_integrator_report
from swarm_tui.review.ranking import sentences_about_branch
from tests.git_project import file_contents
from tests.integrator.integrator_project import CODE, README, SWEEP, TEST_FILE, TESTS, SweptProject, changed

ADD = changed(CODE, "first - second", "first + second")
DOUBLE = changed(CODE, "number * 3", "number * 2")


@pytest.fixture
def project(tmp_path: Path) -> SweptProject:
    return SweptProject(tmp_path / "project")


async def integrated(project: SweptProject, inputs: IntegratorInputs, meter: Meter | None = None) -> IntegratorReport:
    outcome = await integrate(project.repository, inputs, lambda line: None, meter=meter)
    # The report has to survive a round trip through its file.
    return parse_integrator_report(outcome.model_dump_json().encode())


def reasons(outcome: IntegratorReport) -> dict[str, str]:
    return {entry.branch.rpartition("/")[2]: entry.reason for entry in outcome.failed}


async def test_tests_and_docs_are_squashed_fixes_stay_separate(project: SweptProject) -> None:
    better = changed(TESTS, "    assert halve(4) == 2\n", "    assert halve(4) == 2\n    assert halve(1) == 0.5\n")
    named = changed(TESTS, '"Sums"', '"sums"')
    project.agent("test_halve", [("[IMPROVE_TEST] Halve one", {TEST_FILE: better})])
    project.agent(
        "test_name",
        [("[FIX_TEST] Expect the real name", {TEST_FILE: named}), ("[FIX_TUTORIAL] Say so", {"README.md": "# Sums\n"})],
    )
    project.agent("test_add", [("[FIX_IMPL] Add instead of subtracting", {"sums.py": ADD})])
    project.agent("test_double", [("[FIX_IMPL] Double instead of tripling", {"sums.py": DOUBLE})])
    inputs = project.inputs()
    outcome = await integrated(project, inputs)

    first, *fixes = project.subjects(inputs)
    assert first == "[TEST/DOC] 1 better test, 1 test fix, 1 tutorial fix"
    assert sorted(fixes) == ["[FIX_IMPL] Add instead of subtracting", "[FIX_IMPL] Double instead of tripling"]
    assert outcome.squashed_branches == (f"swarm/{SWEEP}/test-halve", f"swarm/{SWEEP}/test-name")
    assert set(outcome.impl_commit_hashes) == set(outcome.impl_priority)
    assert not outcome.failed
    assert project.file(inputs, TEST_FILE) == changed(better, '"Sums"', '"sums"')
    assert project.file(inputs, "sums.py") == changed(ADD, "number * 3", "number * 2")


async def test_weaker_test_is_not_counted_as_better(project: SweptProject) -> None:
    looser = changed(TESTS, "halve(4) == 2", "halve(4)")
    project.agent("test_halve", [("[IMPROVE_TEST] Halve", {TEST_FILE: looser})], weaker="assertion loosened")
    inputs = project.inputs()
    await integrated(project, inputs)
    assert project.subjects(inputs) == ["[TEST/DOC] 1 weaker test"]


async def test_fix_keeps_author_and_message_and_gets_trailers(project: SweptProject) -> None:
    project.git.git("config", "user.name", "An Agent")
    project.git.git("config", "user.email", "agent@example.org")
    message = "[FIX_IMPL] Add instead of subtracting\n\nThe sign was wrong since the beginning."
    source = project.agent("test_add", [(message, {"sums.py": ADD})])
    project.git.git("config", "user.name", "Ada Lovelace")
    project.git.git("config", "user.email", "ada@example.org")
    authored = project.git.git("log", "-1", "--format=%ad", source.tip)
    outcome = await integrated(project, project.inputs())

    fix = outcome.impl_commit_hashes[source.branch]
    shown = project.git.git("log", "-1", "--format=%an <%ae>%n%ad%n%cn%n%B", fix).rstrip("\n").split("\n")
    assert shown[:3] == ["An Agent <agent@example.org>", authored, "Ada Lovelace"]
    assert "\n".join(shown[3:]) == (
        f"{message}\n\nAgent: swarm-{SWEEP}-test-add\nTest: {TEST_FILE}::test_add\nSweep: {SWEEP}"
    )
    trailers = project.git.git("log", "-1", "--format=%(trailers:key=Test,valueonly)", fix).strip()
    assert trailers == f"{TEST_FILE}::test_add"


async def test_squashed_commit_names_its_authors(project: SweptProject) -> None:
    for name, number in (("One", "1"), ("Two", "2")):
        project.git.git("config", "user.name", name)
        project.git.git("config", "user.email", f"{name.lower()}@example.org")
        text = f"{README}\n" if name == "One" else f"\n{README}"
        project.agent(f"test_{number}", [(f"[FIX_TUTORIAL] Line {number}", {"README.md": text})])
    outcome = await integrated(project, project.inputs())
    assert outcome.squashed_commit_hash
    named = project.git.git(
        "log", "-1", "--format=%(trailers:key=Co-authored-by,valueonly)", outcome.squashed_commit_hash
    )
    assert named.split("\n")[:2] == ["One <one@example.org>", "Two <two@example.org>"]


async def test_same_fix_of_several_agents_is_one_commit(project: SweptProject) -> None:
    commented = changed(ADD, "    return first + second\n", "    # Not minus.\n    return first + second\n")
    one = project.agent("test_add", [("[FIX_IMPL] Add", {"sums.py": ADD})])
    two = project.agent("test_add_negative", [("[FIX_IMPL] Really add", {"sums.py": ADD})])
    three = project.agent("test_halve", [("[FIX_IMPL] Add at last", {"sums.py": commented})])
    inputs = project.inputs()
    outcome = await integrated(project, inputs)

    assert project.subjects(inputs) == ["[FIX_IMPL] Add"]
    assert len({outcome.impl_commit_hashes[source.branch] for source in (one, two, three)}) == 1
    body = project.git.git("log", "-1", "--format=%B", outcome.impl_commit_hashes[one.branch])
    assert all(f"Agent: {source.agent}\n" in body for source in (one, two, three))
    assert "3 agents" in outcome.normalizations[0].summary_markdown


async def test_revision_is_folded_into_its_fix(project: SweptProject) -> None:
    first = changed(CODE, "number * 3", "number + number")
    better = changed(TESTS, "    assert double(4) == 8\n", "    assert double(4) == 8\n    assert double(1) == 2\n")
    made = [("[FIX_IMPL] Double by adding", {"sums.py": first})]
    sent_back = project.agent("test_double", made, name="first").tip
    project.branches.clear()
    project.git.git("checkout", "--quiet", "--detach", sent_back)
    project.git.commit("[IMPROVE_TEST] Double one", {TEST_FILE: better})
    tip = project.git.commit("[FIX_IMPL] Double by two", {"sums.py": DOUBLE})
    project.git.git("checkout", "--quiet", "main")
    source = project.agent("test_double", [], tip=tip, revised_after=sent_back)
    inputs = project.inputs()
    outcome = await integrated(project, inputs)

    assert project.subjects(inputs) == ["[TEST/DOC] 1 better test", "[FIX_IMPL] Double by two"]
    assert (project.file(inputs, "sums.py"), project.file(inputs, TEST_FILE)) == (DOUBLE, better)
    assert list(outcome.impl_commit_hashes) == [source.branch]


@pytest.mark.slow
async def test_dependent_fix_is_measured_on_its_parent_fix(project: SweptProject) -> None:
    checked = changed(ADD, "    return first + second", "    total = first + second\n    return total")
    spoilt = changed(checked, "    return total", "    return total + number")
    commits = [("Add", ADD), ("Name the sum", checked), ("Spoil it", spoilt)]
    project.agent("test_add", [(f"[FIX_IMPL] {title}", {"sums.py": code}) for title, code in commits])
    inputs = project.inputs(measure_seconds=600.0)
    outcome = await integrated(project, inputs)
    assert project.subjects(inputs) == [f"[FIX_IMPL] {title}" for title, _ in commits]
    assert [entry["why"] for entry in (outcome.model_extra or {})["ranking"]] == [
        "turns 2 tests green, 2 lines",
        "turns 0 tests green, builds on 'Add', 3 lines",
        "turns 0 tests green, breaks 2, builds on 'Name the sum', 2 lines",
    ]


async def test_commits_with_wrong_kind_are_classified_by_files(project: SweptProject) -> None:
    project.agent("test_add", [("[FIX_TEST] Not only a test", {"sums.py": ADD, TEST_FILE: TESTS + "\n"})])
    project.agent("test_double", [("Tripled, sorry", {"sums.py": DOUBLE})])
    project.agent("test_name", [("Words", {"README.md": "# Sums\n"})])
    inputs = project.inputs()
    outcome = await integrated(project, inputs)
    assert project.subjects(inputs) == [
        "[TEST/DOC] 1 other change",
        "[FIX_IMPL] Tripled, sorry",
        "[FIX_IMPL] Not only a test",
    ]
    notes = " ".join(note.summary_markdown for note in outcome.normalizations)
    assert "declares FIX_TEST but changes sums.py" in notes
    assert "declares no kind and changes sums.py" in notes
    assert "declares no kind, and changes only tests and docs" in notes


async def test_merge_commit_counts_as_one_change(project: SweptProject) -> None:
    git = project.git
    git.git("checkout", "--quiet", "-b", "side", project.base)
    git.commit("[FIX_IMPL] Double", {"sums.py": DOUBLE})
    git.git("checkout", "--quiet", "--detach", project.base)
    git.commit("[FIX_IMPL] Add", {"sums.py": ADD})
    git.git("merge", "--quiet", "--no-edit", "side")
    merged = git.git("rev-parse", "HEAD")
    git.git("update-ref", f"refs/swarm/{SWEEP}/test-add", merged)
    git.git("checkout", "--quiet", "main")
    project.agent("test_add", [], tip=merged)
    inputs = project.inputs()
    await integrated(project, inputs)
    listed = git.git("log", "--format=%p", f"{project.base}..{inputs.branch}").split("\n")
    assert all(" " not in parents for parents in listed), "the integrated branch is linear"
    assert project.file(inputs, "sums.py") == git.git("show", f"{merged}:sums.py") + "\n"


async def test_binary_files_are_accepted_huge_commits_rejected(project: SweptProject) -> None:
    project.agent("test_add", [("[FIX_IMPL] A picture", {"sums.bin": bytes(range(256))})])
    project.agent("test_double", [("[FIX_IMPL] All of it", {"data.py": "x = 1\n" * 20_001})])
    inputs = project.inputs()
    outcome = await integrated(project, inputs)
    assert project.subjects(inputs) == ["[FIX_IMPL] A picture"]
    assert "20,001 lines" in reasons(outcome)["test-double"]


async def test_unusual_file_names_are_read_unchanged(project: SweptProject) -> None:
    odd = {"odd\nname.py": "first = 1\n", "tab\there.py": "second = 2\n", "é.py": "third = 3\n"}
    like_a_heading = f"{project.base} {project.base}.py"
    project.agent("test_add", [("[FIX_IMPL] Odd names", {**odd, "sums.py": ADD, like_a_heading: "fourth = 4\n"})])
    inputs = project.inputs()
    commits, _ = read_branches(project.repository, inputs)
    assert set(commits[0].paths) == {*odd, "sums.py", like_a_heading}
    assert commits[0].lines == 6
    assert "+    return first + second" in commits[0].patch
    await integrated(project, inputs)
    assert project.file(inputs, "odd\nname.py") == "first = 1\n"


async def test_missing_and_rewritten_branches_are_reported(project: SweptProject) -> None:
    project.agent("test_add", [], tip="1" * 40)
    git = project.git
    git.git("checkout", "--quiet", "--orphan", "elsewhere")
    unrelated = git.commit("[FIX_IMPL] From nowhere", {"sums.py": ADD})
    git.git("checkout", "--quiet", "main")
    project.agent("test_double", [], tip=unrelated)
    project.agent("test_name", [])
    outcome = await integrated(project, project.inputs())
    told = reasons(outcome)
    assert "its commits are missing" in told["test-add"]
    assert "rewritten" in told["test-double"]
    assert "no commit that changes anything" in told["test-name"]


async def test_missing_branch_is_read_from_its_bundle(project: SweptProject, tmp_path: Path) -> None:
    source = project.agent("test_add", [("[FIX_IMPL] Add", {"sums.py": ADD})])
    git = project.git
    git.git("branch", source.branch, source.tip)
    bundle = tmp_path / "branch.bundle"
    git.git("bundle", "create", "--quiet", str(bundle), f"{project.base}..refs/heads/{source.branch}")
    lying = tmp_path / "lying.bundle"
    git.git("bundle", "create", "--quiet", str(lying), "main")
    for ref in (f"refs/heads/{source.branch}", f"refs/swarm/{SWEEP}/test-add"):
        git.git("update-ref", "-d", ref)
    git.git("reflog", "expire", "--expire=now", "--all")
    git.git("gc", "--quiet", "--prune=now")
    project.branches[0] = source.model_copy(update={"bundle": str(lying)})
    assert "its bundle is unusable" in reasons(await integrated(project, project.inputs()))["test-add"]
    project.branches[0] = source.model_copy(update={"bundle": str(bundle)})
    inputs = project.inputs()
    await integrated(project, inputs)
    assert project.subjects(inputs) == ["[FIX_IMPL] Add"]


async def test_no_usable_branch_makes_no_integrated_branch(project: SweptProject) -> None:
    inputs = project.inputs()
    outcome = await integrated(project, inputs)
    assert outcome.squashed_commit_hash is None
    assert not outcome.impl_commit_hashes
    assert project.repository.ref(f"refs/heads/{inputs.branch}") is None


async def test_hostile_names_and_messages_are_not_executed(project: SweptProject) -> None:
    message = "[FIX_IMPL] \x1b[31mred\x1b[0m $(touch /tmp/x)\n\n\x07--upload-pack"
    project.agent("test_add", [(message, {"--output=x": "1\n", "a\nb.py": "x = 1\n", "sums.py": ADD})])
    inputs = project.inputs()
    outcome = await integrated(project, inputs)
    assert project.subjects(inputs) == ["[FIX_IMPL] red $(touch /tmp/x)"]
    assert not outcome.failed


async def test_messages_ignore_the_log_encoding_setting(project: SweptProject) -> None:
    project.git.git("config", "i18n.logOutputEncoding", "ISO-8859-1")
    project.agent("test_add", [("[FIX_IMPL] Grüße für alle", {"sums.py": ADD})])
    await integrated(project, inputs := project.inputs())
    assert project.git.git("log", "-1", "--encoding=UTF-8", "--format=%s", inputs.branch) == "[FIX_IMPL] Grüße für alle"


async def test_undecodable_file_names_are_reported(project: SweptProject) -> None:
    project.agent("test_add", [("Odd", {os.fsdecode(b"\xff.py"): "x = 1\n"})])
    outcome = await integrated(project, project.inputs())
    assert outcome.normalizations[0].summary_markdown.endswith(
        "declares no kind and changes \ufffd.py: kept as a separate fix"
    )


@pytest.mark.slow
async def test_fixes_are_ranked_by_measured_effects(project: SweptProject) -> None:
    named = changed(CODE, '"sums"', '"Sums"')
    breaking = changed(named, "number / 2", "number // 0")
    project.agent("test_name", [("[FIX_IMPL] Rename, and break halve", {"sums.py": breaking})])
    project.agent("test_double", [("[FIX_IMPL] Double", {"sums.py": DOUBLE})])
    project.agent("test_add", [("[FIX_IMPL] Add", {"sums.py": ADD})])
    before = file_contents(project.git.root / "tests")
    inputs = project.inputs(measure_seconds=600.0, cache=str(project.git.root.parent / "cache.json"))
    shown = list[Progress]()
    outcome = await integrated(project, inputs, Meter(shown.append))

    said = dict.fromkeys(progress.doing for progress in shown)
    assert list(said) == [
        "reading 3 branches",
        "combining 0 test and doc commits",
        "running the tests without any fix",
        "measuring",
        "looking for flaky tests",
        "ranking the fixes",
        "running all tests on the branch",
        "finding the fix that breaks 1 test",
    ]
    last = {progress.doing: progress.numbers.partition(",")[0] for progress in shown}
    assert last["running the tests without any fix"] == "4 of 4 tests"
    assert last["measuring"] == "3 of 3 fixes"
    assert last["running all tests on the branch"] == "5 of 5 tests"
    parts = [progress.part or 0.0 for progress in shown]
    assert parts == sorted(parts)
    assert parts[-1] == 1.0
    assert project.subjects(inputs) == [
        "[FIX_IMPL] Add",
        "[FIX_IMPL] Double",
        "[FIX_IMPL] Rename, and break halve",
    ]
    assert outcome.impl_priority[0] == f"swarm/{SWEEP}/test-add"
    extra = outcome.model_extra or {}
    assert [entry["why"] for entry in extra["ranking"]] == [
        "turns 2 tests green, 2 lines",
        "turns 1 test green, 2 lines",
        "turns 1 test green, breaks 1, 4 lines",
    ]
    halve = f"{TEST_FILE}::test_halve"
    nothing_else = {
        "complaint": "",
        "flaky": [],
        "failed_before": [],
        "not_run": [],
        "doubts": [],
        "missing": [],
        "skipped": [],
    }
    assert extra["final_run"] == {"passed": 4, "failed": [halve], "regressed": [halve], **nothing_else}
    assert extra["problems"] == [f"1 test that passed before integration fails on the integrated branch: {halve}"]
    assert outcome.escalations[0].title == "1 test that passed before integration fails after it"
    assert file_contents(project.git.root / "tests") == before


@pytest.mark.slow
async def test_unmeasured_effects_have_a_reason(project: SweptProject) -> None:
    project.agent("test_add", [("[FIX_IMPL] Add", {"sums.py": ADD})])
    outcome = await integrated(project, project.inputs(measure_seconds=600.0, python="/nowhere/python"))
    (entry,) = (outcome.model_extra or {})["ranking"]
    assert entry["is_measured"] is False
    assert "not installed" in entry["why"]
    unmeasured = await integrated(project, project.inputs())
    assert "measuring is disabled" in (unmeasured.model_extra or {})["ranking"][0]["why"]


@pytest.mark.slow
async def test_copies_are_set_up_and_failure_is_reported(project: SweptProject) -> None:
    needy = "from ready import READY\n\n\n" + ADD
    project.agent("test_add", [("[FIX_IMPL] Add when ready", {"sums.py": needy})])
    project.agent("test_double", [("[FIX_IMPL] Double", {"sums.py": DOUBLE})])
    ready = await integrated(project, project.inputs(measure_seconds=600.0, setup="echo READY = 1 > ready.py"))
    whys = [entry["why"] for entry in (ready.model_extra or {})["ranking"]]
    assert whys == ["turns 2 tests green, 5 lines", "turns 1 test green, 2 lines"]
    failing = await integrated(project, project.inputs(measure_seconds=600.0, setup="exit 3"))
    extra = failing.model_extra or {}
    assert "the set-up command failed with code 3" in extra["ranking"][0]["why"]
    assert "code 3" in extra["final_run"]["complaint"]
    # It also fails on the base, so the branch is not the cause.
    assert extra["problems"] == []
    (sentence,) = sentences_about_branch(failing)
    assert sentence.startswith("5 tests not run on the branch: the set-up command failed with code 3")


async def test_fix_that_changes_conftest_is_not_measured(project: SweptProject) -> None:
    hook = (
        "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
        "    outcome = yield\n    outcome.get_result().outcome = 'passed'\n"
    )
    project.agent("test_add", [("[FIX_IMPL] Add", {"conftest.py": hook})])
    project.agent("test_double", [("[FIX_IMPL] Double", {"sums.py": DOUBLE})])
    outcome = await integrated(project, project.inputs(measure_seconds=600.0))
    ranking = {entry["tests"][0].rpartition("::")[2]: entry for entry in (outcome.model_extra or {})["ranking"]}
    assert ranking["test_double"]["is_measured"]
    assert not ranking["test_add"]["is_measured"]
    assert ranking["test_add"]["why"].startswith("not measured: changes conftest.py, ")
