"""Programs that swarm-tui writes for agents."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from swarm_tui.agents.packaged import local_package_dir, packed_package, write_offline_program


def test_concurrent_launches_write_the_same_program(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        written = list(pool.map(lambda _: write_offline_program(local_package_dir(tmp_path)), range(200)))
    assert set(written) == {str(tmp_path / "swarm-agent")}
    assert os.access(written[0], os.X_OK)
    assert [path.name for path in tmp_path.iterdir()] == ["swarm-agent"]


def test_packed_programs_need_no_installed_package(tmp_path: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(packed_package())) as archive:
        archive.extractall(tmp_path, filter="data")
    script = (
        "import runpy, sys; sys.path.insert(0, sys.argv[1])\n"
        "import swarm_tui.agents.offline.program\n"
        "runpy.run_path(f'{sys.argv[1]}/swarm_tui/agents/hook.py')\n"
        "print([name for name in ('msgspec', 'pydantic', 'textual', 'git') if name in sys.modules])"
    )
    command = [sys.executable, "-I", "-S", "-c", script, str(tmp_path / "package")]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert (finished.returncode, finished.stdout) == (0, "[]\n"), finished.stderr
