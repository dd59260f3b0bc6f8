"""A demo that fails at the start removes its home, which `clean` could not find without a sweep."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_tui.demo import DemoOptions, begin_demo, sample_repository
from swarm_tui.errors import JournalError

# Records its home, and has no plugins.
STAND_IN = """#!/bin/sh
echo "$HOME" > {noted}
[ "$1" = --version ] && echo "mngr 0.3.0" || echo '{{"plugins": []}}'
"""


async def test_failed_demo_removes_its_home(tmp_path: Path) -> None:
    noted, mngr = tmp_path / "noted", tmp_path / "mngr"
    mngr.write_text(STAND_IN.format(noted=noted))
    mngr.chmod(0o755)
    repository = sample_repository(tmp_path / "larder")
    (repository / ".swarm").write_text("no folder\n")
    with pytest.raises(JournalError, match="cannot be created"):
        await begin_demo(DemoOptions(folder=repository, mngr=str(mngr)), lambda _: None)
    home = Path(noted.read_text().strip())
    assert home.parent.name.startswith("sw")
    assert not home.parent.exists()
