"""A sweep with --record: what an agent's terminal showed can be played back afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_tui.report.details import read_recording
from tests.isolation import IsolatedMngr
from tests.sweep.endings import make_endings
from tests.sweep.sweeping import Program, offline

pytestmark = pytest.mark.slow


def test_the_terminal_of_an_agent_is_recorded_from_its_launch_to_its_end(
    isolated_mngr: IsolatedMngr, tmp_path: Path
) -> None:
    project = make_endings(tmp_path / "project")
    program = Program(project.root, {**isolated_mngr.environment, "SWARM_MNGR": isolated_mngr.settings.path})
    done = program.call("run", "--headless", "--record", *offline("records", "--speed", "20"), "--", "-k", "fixed")
    assert done.returncode == 0, done.stderr
    folder = program.newest()
    cast = folder.recordings(f"swarm-{folder.name}-test-fixed") / "agent-1.cast"
    assert "Done. The work is submitted." in read_recording(cast).text
    assert program.call("report", "-o", str(tmp_path / "page")).returncode == 0
    assert "agent-1.cast" in (tmp_path / "page" / "data" / "test-0.js").read_text()
    program.call("clean", "--yes")
