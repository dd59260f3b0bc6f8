"""Programs of ours that are written for agents."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from swarm_tui.agents.shipped import shelf_here, write_offline_program


def test_many_launches_at_once_write_the_same_program(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        written = list(pool.map(lambda _: write_offline_program(shelf_here(tmp_path)), range(200)))
    assert set(written) == {str(tmp_path / "swarm-agent")}
    assert os.access(written[0], os.X_OK)
    assert [path.name for path in tmp_path.iterdir()] == ["swarm-agent"]
