"""Sweeps of earlier versions can be read: `sweep_of_0_1` is a sweep of 0.1.0 with the output of its `status`."""

import json
import shutil
from pathlib import Path
from typing import Any

from swarm_tui.cli.status import describe_sweep
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import open_sweep

OLD = Path(__file__).parent / "sweep_of_0_1"


def test_sweep_of_0_1_has_same_status(tmp_path: Path) -> None:
    folder = shutil.copytree(OLD, tmp_path / "oldsweep")
    then = json.loads((folder / "status.json").read_text())
    now: dict[str, Any] = {**describe_sweep(open_sweep(SweepFolder(folder)))}
    then_tests, now_tests = then.pop("tests"), now["tests"]
    assert {key: now[key] for key in then} == then
    assert len(now_tests) == len(then_tests) == 8
    for old, new in zip(then_tests, now_tests, strict=True):
        old_tries, new_tries = old.pop("tries"), new["tries"]
        assert {key: new[key] for key in old} == old
        assert [{key: made[key] for key in old_tries[0]} for made in new_tries] == old_tries
    assert now["doubts"] == ["results are not verified: they are what the agents report"]
