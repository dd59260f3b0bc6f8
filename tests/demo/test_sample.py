"""The sample and its records: every test has a record, and every edit applies and has the described effect."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.pytest import SessionsHere, run_tests
from swarm_tui.agents.offline.records import Record, parse_record
from swarm_tui.cli.main import run_command_line
from swarm_tui.demo import IDENTITY, RECORDS, SAMPLE, sample_repository
from swarm_tui.errors import UsageError
from tests.waiting import PATIENCE

ALL_RECORDS = {path.stem: parse_record(path.read_text()) for path in sorted(RECORDS.glob("*.toml"))}
FLAKY = "shop_goes_aisle_by_aisle"
LEFT_RED = {"rename_keeps_everything", "list_aligns_wide_names", "export_quotes_names"}
"""Tests that stay red: one agent reports false results, one gives up, one crashes."""


def sampled_tests() -> list[str]:
    return [
        f"{path.relative_to(SAMPLE)}::{node.name}"
        for path in sorted((SAMPLE / "tests/e2e").glob("test_*.py"))
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def kinds_of(record: Record) -> set[str]:
    return {step.value for step in record.steps if step.name == "commit"}


def edited(record: Record, root: Path, *, is_revised: bool = True) -> None:
    """Apply the recorded edits, including revisions, to a copy of the sample. Each must match exactly once."""
    revised = (step for revision in record.revisions for step in revision) if is_revised else ()
    for step in (*record.steps, *revised):
        if step.name == "edit":
            path = root / step.value
            text = path.read_text()
            assert text.count(step.more["old"]) == 1, (step.value, step.more["old"])
            path.write_text(text.replace(step.more["old"], step.more["new"]))


def copied(folder: Path) -> Path:
    return Path(shutil.copytree(SAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__")))


def test_tests_and_records_match() -> None:
    recorded = [record.test for record in ALL_RECORDS.values()]
    assert sorted(recorded) == sorted(sampled_tests())
    assert 24 <= len(recorded) <= 30


def test_records_show_every_kind_of_work() -> None:
    kinds = [kind for record in ALL_RECORDS.values() for kind in kinds_of(record)]
    assert set(kinds) == {"IMPROVE_TEST", "FIX_TEST", "FIX_TUTORIAL", "FIX_IMPL"}
    steps = {step.name for record in ALL_RECORDS.values() for step in record.steps}
    assert {"ask", "crash", "claim", "fail", "escalate"} <= steps
    causes = [step.more["title"] for record in ALL_RECORDS.values() for step in record.steps if step.name == "escalate"]
    assert causes.count("LARDER_SHARE is not set") == 3
    questions = [step for record in ALL_RECORDS.values() for step in record.steps if step.name == "ask"]
    assert all(step.more["answer"] for step in questions)


@pytest.mark.parametrize("name", ALL_RECORDS)
def test_recorded_edits_apply_to_sample(name: str, tmp_path: Path) -> None:
    edited(ALL_RECORDS[name], copied(tmp_path / "copy"))


def test_revised_fix_no_longer_hides_bug(tmp_path: Path) -> None:
    record = ALL_RECORDS["import_a_delivery"]
    copy = copied(tmp_path / "copy")
    edited(record, copy)
    script = "from larder.dates import parse_date as p; print(p('2027-05'), p('2028-01-01'), p('')); p('soon')"
    done = subprocess.run([sys.executable, "-c", script], cwd=copy, capture_output=True, text=True)
    assert done.stdout == "2027-05-31 2028-01-01 None\n"
    assert "ValueError" in done.stderr
    assert record.revisions


def test_tests_cite_every_tutorial_block(capsys: pytest.CaptureFixture[str]) -> None:
    code = run_command_line(["tutorial", "check", str(SAMPLE / "tutorial.sh"), str(SAMPLE / "tests/e2e")])
    assert code == 0, capsys.readouterr().out


@pytest.mark.slow
async def test_most_sample_tests_fail_initially(tmp_path: Path) -> None:
    outcomes = await run(copied(tmp_path / "copy"), sampled_tests())
    red = {test for test, result in outcomes.items() if result == "failed"}
    still_red = {
        record.test
        for name, record in ALL_RECORDS.items()
        if (kinds_of(record) - {"IMPROVE_TEST"} or name in LEFT_RED or "share" in name) and name != FLAKY
    }
    assert red - {ALL_RECORDS[FLAKY].test} == still_red


@pytest.mark.slow
async def test_better_test_detects_fix_that_hides_bug(tmp_path: Path) -> None:
    copy = copied(tmp_path / "copy")
    edited(ALL_RECORDS["import_a_delivery"], copy, is_revised=False)
    edited(ALL_RECORDS["add_with_a_date"], copy)
    tests = [ALL_RECORDS["import_a_delivery"].test, ALL_RECORDS["add_with_a_date"].test]
    assert list((await run(copy, tests)).values()) == ["passed", "failed"]


async def run(copy: Path, tests: list[str]) -> dict[str, str]:
    made = await run_tests(SessionsHere(sys.executable, copy, timeout=PATIENCE), {test: test for test in tests})
    assert not made.complaint
    return {test: made.outcomes[test] for test in tests}


def test_new_repository_has_identity_and_one_commit(tmp_path: Path) -> None:
    repository = Repository.open(sample_repository(tmp_path / "new" / "larder"))
    identity = repository.identity()
    assert (identity.name, identity.email) == IDENTITY
    assert repository.current_branch() == "main"
    assert repository.dirty_paths() == ()
    assert (repository.root / ".gitignore").is_file()
    assert (repository.root / "bin/larder").stat().st_mode & 0o111
    assert not list(repository.root.rglob("*.pyc"))


def test_folder_of_earlier_demo_is_reused(tmp_path: Path) -> None:
    made = sample_repository(tmp_path / "larder")
    head = Repository.open(made).head()
    assert sample_repository(made) == made
    assert Repository.open(made).head() == head
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.tex").write_text("precious")
    with pytest.raises(UsageError, match="is not empty"):
        sample_repository(tmp_path / "mine")
    assert sorted(path.name for path in (tmp_path / "mine").iterdir()) == ["thesis.tex"]


def test_demo_without_folder_creates_temporary_one(tmp_path: Path) -> None:
    first, second = sample_repository(None), sample_repository(None)
    try:
        assert first != second
    finally:
        for made in (first, second):
            shutil.rmtree(made.parent)
