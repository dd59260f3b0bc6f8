"""`swarm-tui integrate` and `swarm-tui demo` where there is nothing to work on: a sentence, and nothing changed."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from swarm_tui.cli.main import run_command_line
from swarm_tui.integrator.events import IntegrationStarted
from swarm_tui.journal.append import EngineLock, JournalWriter, engine_process_id
from swarm_tui.journal.folder import SweepFolder, create_runs_folder
from swarm_tui.journal.requests import RequestFollower, RequestKind
from swarm_tui.model.spec import MngrSettings, SweepSpec
from tests.git_project import GitProject, file_contents


def spec_of(repository: Path, base: str, **more: str) -> SweepSpec:
    return msgspec.convert(
        {
            "sweep": "20261118-061200",
            "repository": str(repository),
            "base": base,
            "created_at": 1.0,
            "agent_type": "offline",
            "mngr": MngrSettings(path="/nowhere/mngr"),
            **more,
        },
        SweepSpec,
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SweepFolder:
    project = GitProject(tmp_path / "project")
    base = project.commit("Begin", {"README.md": "x\n"})
    folder = SweepFolder(create_runs_folder(project.root) / "20261118-061200")
    folder.write_spec(spec_of(project.root, base))
    monkeypatch.chdir(project.root)
    return folder


def test_without_a_sweep_it_says_how_to_start_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["integrate"]) == 2
    assert "swarm-tui run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"), [(["integrate"], "integrating sweep 2026"), (["open", "20261118"], "requires a terminal")]
)
def test_a_sweep_is_found_from_a_folder_inside_of_its_repository(
    folder: SweepFolder,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    told: str,
) -> None:
    inside = folder.root.parents[2] / "src"
    inside.mkdir()
    monkeypatch.chdir(inside)
    run_command_line(words)
    assert told in capsys.readouterr().err


def test_a_living_engine_is_asked_to_do_it(folder: SweepFolder, capsys: pytest.CaptureFixture[str]) -> None:
    lock = EngineLock(folder.lock)
    lock.acquire()
    try:
        assert run_command_line(["integrate"]) == 0
    finally:
        lock.release()
    ((request,), _) = RequestFollower(folder).read()
    assert request.kind is RequestKind.INTEGRATE
    assert "will integrate when its last test is pulled" in capsys.readouterr().err
    assert not folder.events.exists()


def test_a_sweep_without_work_has_no_branch(folder: SweepFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["integrate", "--json"]) == 1
    captured = capsys.readouterr()
    assert '"impl_commit_hashes": {}' in captured.out
    assert "no integrated branch: no agent has a change to integrate" in captured.err
    assert engine_process_id(folder.lock) is None
    # What is said then sends nobody round in circles.
    assert run_command_line(["fixes"]) == 2
    said = capsys.readouterr().err
    assert "has no fixes: no agent submitted a usable change" in said
    assert "swarm-tui integrate" not in said


def test_the_offline_agent_is_no_integrator(folder: SweepFolder, capsys: pytest.CaptureFixture[str]) -> None:
    before = file_contents(folder.root)
    assert run_command_line(["integrate", "--integrator", "agent"]) == 2
    assert "--integrator builtin" in capsys.readouterr().err
    assert file_contents(folder.root) == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--slots", "0"], "--slots: 0"),
        (["--speed", "-1"], "--speed: -1"),
        (["--mngr", "/nowhere/mngr"], "/nowhere/mngr"),
    ],
)
def test_a_demo_that_cannot_be_begun_leaves_nothing(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["demo", str(tmp_path / "larder"), "--headless", *words]) == 2
    assert said in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_a_demo_does_not_touch_a_folder_of_somebody_else(
    tmp_path: Path, mngr_path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    assert run_command_line(["demo", str(tmp_path), "--headless", "--mngr", mngr_path]) == 2
    assert f"{tmp_path} is not empty" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_an_integration_that_nobody_works_on_any_more_is_not_waited_for(
    folder: SweepFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    with JournalWriter(folder.events) as journal:
        journal.append(IntegrationStarted())
    lock = EngineLock(folder.lock)
    lock.acquire()
    try:
        assert run_command_line(["fixes"]) == 2
        assert "is being integrated\nhint: run `swarm-tui open" in capsys.readouterr().err
    finally:
        lock.release()
    assert run_command_line(["fixes"]) == 2
    assert "is not integrated yet\nhint: run `swarm-tui integrate" in capsys.readouterr().err
