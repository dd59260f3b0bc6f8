"""A sweep with `--no-verify` says in every view that its results are not verified."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from swarm_tui.cli.follow import follow_sweep
from swarm_tui.report.content import build_page
from swarm_tui.review.open import review_sweep
from swarm_tui.room.view import plain_lines_of
from tests.cli.command_line import run_swarm_tui
from tests.report.sweeps import SWEEP, make_sweep
from tests.room.scenes import open_store

SENTENCE = "results are not verified: they are what the agents report"


def test_sweep_without_verification_says_so_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = make_sweep(tmp_path, 24)

    def views() -> dict[str, bool]:
        follow_sweep(made.folder)
        closing = capsys.readouterr().err
        with review_sweep(made.folder) as review:
            doubts = review.branch.doubts
        plain_room = "\n".join(plain_lines_of(open_store(made.folder)))
        status = json.loads(run_swarm_tui("status", SWEEP, "--json", folder=tmp_path).stdout)
        return {
            "run": SENTENCE in closing,
            "merge view": SENTENCE in doubts,
            "report": SENTENCE in build_page(made.open(), 0.0, lambda name, data: None)["problems"],
            "room": "not verified" in plain_room,
            "status": SENTENCE in run_swarm_tui("status", SWEEP, folder=tmp_path).stdout,
            "list": SENTENCE in run_swarm_tui("list", folder=tmp_path).stdout,
            "fixes": SENTENCE in run_swarm_tui("fixes", SWEEP, "--list", folder=tmp_path).stderr,
            "status --json": SENTENCE in status["integrity_warnings"] and not status["is_verified"],
        }

    assert set(views().values()) == {False}
    made.folder.write_spec(dataclasses.replace(made.open().spec, verifies=False))
    assert set(views().values()) == {True}
