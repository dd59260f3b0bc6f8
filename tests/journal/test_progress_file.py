"""Writing the progress of an integration, and reading it from an untrusted file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from swarm_tui.integrator.events import Integration
from swarm_tui.integrator.tip import TESTS, Meter
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.progress_file import PROGRESS_FILE, ProgressFile, integration_progress, read_progress
from swarm_tui.model.formatting import Progress

AT = 1_000.0
GOOD = {"at": AT, "doing": "measuring", "done": 3, "total": 12, "noun": "fixes", "seconds_left": 40.0, "whole": 0.5}


def test_written_progress_is_read_with_elapsed_time(tmp_path: Path) -> None:
    path = tmp_path / PROGRESS_FILE
    path.write_text(json.dumps(GOOD))
    progress = Progress("measuring", 3, 12, "fixes", 40.0, 0.5)
    assert read_progress(path, AT) == progress
    assert read_progress(path, AT + 30) == replace(progress, seconds_left=10.0)
    assert read_progress(path, AT + 90) == replace(progress, seconds_left=0.0)
    assert read_progress(path, AT, since=AT + 1) is None


def test_progress_is_written_at_once_for_new_step(tmp_path: Path) -> None:
    file = ProgressFile(tmp_path / PROGRESS_FILE)
    for number in range(100):
        file.write(Progress("measuring", number, 100))
    found = read_progress(tmp_path / PROGRESS_FILE, 0.0)
    assert found is not None
    assert found.done < 99
    file.write(Progress("looking for flaky tests"))
    assert read_progress(tmp_path / PROGRESS_FILE, 0.0) == Progress("looking for flaky tests")
    assert [path.name for path in tmp_path.iterdir()] == [PROGRESS_FILE]
    ProgressFile(tmp_path / "nowhere" / PROGRESS_FILE).write(Progress("measuring"))


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{", b"\xff", b"[" * 5000, b"x" * 20_000, json.dumps(GOOD | {"done": []}).encode(),
     json.dumps(GOOD | {"total": 1e400}).encode(), json.dumps(GOOD | {"whole": {}}).encode()],
)  # fmt: skip
def test_invalid_progress_file_returns_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / PROGRESS_FILE).write_bytes(content)
    assert read_progress(tmp_path / PROGRESS_FILE, AT) is None


def test_progress_text_is_safe_and_numbers_bounded(tmp_path: Path) -> None:
    fields = GOOD | {"doing": "\x1b[31mred\n" * 99, "done": -5, "whole": 7.0}
    (tmp_path / PROGRESS_FILE).write_text(json.dumps(fields))
    found = read_progress(tmp_path / PROGRESS_FILE, AT)
    assert found is not None
    assert "\x1b" not in found.words
    assert "\n" not in found.words
    assert (found.done, found.part) == (0, 1.0)


def test_integrator_without_file_shows_last_line(tmp_path: Path) -> None:
    folder, integration = SweepFolder(tmp_path), Integration(state="integrating", started_at=AT)
    assert integration_progress(folder, integration, AT + 72) == Progress("for 1m12s")
    said = replace(integration, last_line="I merge the first two")
    assert integration_progress(folder, said, AT + 72) == Progress("I merge the first two")
    assert integration_progress(folder, replace(said, state="done"), AT) is None


def test_meter_never_decreases_and_forecasts() -> None:
    shown: list[Progress] = []
    meter = Meter(shown.append)
    meter.begin("reading 3 branches")
    meter.expect(100)
    meter.begin("running", 40, TESTS)
    meter.count(20)
    meter.count(20)
    meter.expect(200)
    meter.begin("measuring", 2, "fixes")
    meter.advance()
    meter.count(200)
    assert [progress.part for progress in shown] == [None, 0.0, 0.2, 0.4, 0.4, 0.4, 1.0]
    assert [(progress.done, progress.total) for progress in shown[1:6]] == [(0, 40), (20, 40), (40, 40), (0, 2), (1, 2)]
    assert shown[1].seconds_left is None
    assert shown[-1].seconds_left == 0.0
