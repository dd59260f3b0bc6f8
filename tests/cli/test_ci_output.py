"""What `run` writes for CI systems, and what scripts and editors get from `status`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import structs

from swarm_tui.cli.ci_output import CiOutput, annotations_of, outputs_of, summary_of
from swarm_tui.cli.main import run_command_line
from swarm_tui.errors import UsageError
from swarm_tui.journal.open import open_sweep
from swarm_tui.model.results import Result
from swarm_tui.testing.reports import read_failed_run
from tests.room.scenes import fixed_sweep, integrated_sweep


def test_output_of_integrated_sweep_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    variables = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary"), "GITHUB_OUTPUT": str(tmp_path / "output")}
    (tmp_path / "summary").write_text("earlier step\n")
    output = CiOutput(tmp_path / "junit.xml", True)
    output.check(variables)
    with integrated_sweep() as folder:
        opened = open_sweep(folder)
        output.write(opened, variables)
        tests = {record.test for record in opened.state.tests()}
        branch = opened.state.integration.branch
    assert set(read_failed_run(tmp_path / "junit.xml", tests).baselines) == tests
    assert (tmp_path / "summary").read_text().startswith("earlier step\n### swarm-tui: ")
    assert f"branch={branch}\n" in (tmp_path / "output").read_text()
    errors = capsys.readouterr().out.splitlines()
    assert all(line.startswith("::error file=") for line in errors)


def test_text_of_agents_adds_no_markup_and_no_commands() -> None:
    with fixed_sweep() as folder:
        opened = open_sweep(folder)
        name, record = next(iter(opened.state.records.items()))
        hostile = "a\r\n::set-output name=x::y | <img src=x> **b** ](http://e) %0A"
        opened.state.records[name] = structs.replace(record, result=Result.UNRESOLVED, reason=hostile)
        summary, lines = summary_of(opened), list(annotations_of(opened))
        outputs = outputs_of(opened)
    assert " <img" not in summary
    assert " **b" not in summary
    assert all(line.count("\n") == 0 and line.startswith("::error") for line in lines)
    assert any("%250A" in line for line in lines)
    assert len(outputs.splitlines()) == 3


def test_unwritable_file_is_refused_before_launch(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        CiOutput(tmp_path / "missing" / "junit.xml").check({})
    with pytest.raises(UsageError, match="cannot write"):
        CiOutput(tmp_path).check({})
    with pytest.raises(UsageError, match="GITHUB_STEP_SUMMARY"):
        CiOutput(is_github=True).check({})


def test_ci_options_require_headless(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["run", "--github"]) == 2
    assert "hint: add --headless" in capsys.readouterr().err


def test_quickfix_lines_name_files_and_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with fixed_sweep() as folder:
        assert run_command_line(["status", str(folder.root), "--format=vim"]) == 0
        files = {record.file for record in open_sweep(folder).state.tests()}
    lines = capsys.readouterr().out.splitlines()
    assert lines
    for line in lines:
        file, number, word, _ = line.split(":", 3)
        assert file in files
        assert number.isdigit()
        assert word.strip()


def test_status_without_text_has_only_facts(capsys: pytest.CaptureFixture[str]) -> None:
    with fixed_sweep() as folder:
        run_command_line(["status", str(folder.root), "--json"])
        whole = json.loads(capsys.readouterr().out)
        run_command_line(["status", str(folder.root), "--json", "--no-text"])
        printed = capsys.readouterr().out
    texts = {test[key] for test in whole["tests"] for key in ("reason", "question", "stuck") if len(test[key]) > 12}
    assert texts
    assert [text for text in texts if text in printed] == []
    assert len(json.loads(printed)["tests"]) == len(whole["tests"])


def test_skill_names_existing_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["--skill"]) == 0
    assert "swarm-tui wait --until" in capsys.readouterr().out
