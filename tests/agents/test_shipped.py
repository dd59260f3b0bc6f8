"""Programs that swarm-tui writes for agents."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from swarm_tui.agents.packaged import local_package_dir, write_offline_program


def test_concurrent_launches_write_the_same_program(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        written = list(pool.map(lambda _: write_offline_program(local_package_dir(tmp_path)), range(200)))
    assert set(written) == {str(tmp_path / "swarm-agent")}
    assert os.access(written[0], os.X_OK)
    assert [path.name for path in tmp_path.iterdir()] == ["swarm-agent"]
