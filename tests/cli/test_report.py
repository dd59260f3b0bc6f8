"""`swarm-tui report`, called as a person or a script calls it."""

import json
from pathlib import Path

import pytest

from swarm_tui.cli.main import run_command_line
from tests.report.sweeps import SWEEP, make_sweep


def test_it_prints_where_the_page_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = make_sweep(tmp_path / "project", 3)
    monkeypatch.chdir(tmp_path / "project")
    assert run_command_line(["report"]) == 0
    printed = capsys.readouterr()
    page = made.folder.root / "report" / "index.html"
    assert printed.out == f"{page}\n"
    assert printed.err.startswith("3 tests, ")
    assert page.is_file()
    assert made.project.git("status", "--porcelain") == ""


def test_a_script_reads_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_sweep(tmp_path / "project", 3)
    monkeypatch.chdir(tmp_path / "project")
    assert run_command_line(["report", SWEEP[:8], "-o", "../page", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["page"] == str(tmp_path / "page" / "index.html")
    assert (told["tests"], told["sweep"]) == (3, SWEEP)
    assert told["bytes"] > 100_000


def test_a_sweep_that_came_from_elsewhere_is_named_by_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = make_sweep(tmp_path / "project", 3)
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["report", str(made.folder.root), "-o", "page"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'page' / 'index.html'}\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing"], "unknown sweep: 'nothing'"),
        (["-o", "."], "contains other files than a report of swarm-tui"),
        (["--serve", "99999"], "cannot serve on port 99999"),
    ],
)
def test_misuse_is_a_sentence(
    words: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_sweep(tmp_path / "project", 2)
    monkeypatch.chdir(tmp_path / "project")
    assert run_command_line(["report", *words]) in (1, 2)
    assert sentence in capsys.readouterr().err
