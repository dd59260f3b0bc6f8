"""What prevents a sweep before anything is created: a missing login, arguments that the program rejects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.lab import agent_lab
from tests.isolation import IsolatedMngr, isolate_mngr
from tests.openai.installed import mngr_with_plugins

pytestmark = pytest.mark.slow


@pytest.fixture
def mngr() -> Iterator[IsolatedMngr]:
    with isolate_mngr(mngr_with_plugins()) as isolated:
        yield isolated


def test_missing_login_of_codex_prevents_the_sweep(mngr: IsolatedMngr, tmp_path: Path) -> None:
    with agent_lab("codex", mngr, tmp_path / "shop", ["total_clean"]) as lab:
        del lab.program.environment["SCRIPTED_KEY"]
        done = lab.program.call("run", "--headless", "--agent", "codex", "--no-preflight")
        assert done.returncode == 2
        assert "Codex is not logged in on this machine" in done.stderr
        assert not (lab.project.root / ".swarm").exists()
        checked = lab.program.call("doctor", "--agent", "codex")
        assert "Codex is not logged in on this machine" in checked.stdout


def test_rejected_argument_of_codex_prevents_the_sweep(mngr: IsolatedMngr, tmp_path: Path) -> None:
    with agent_lab("codex", mngr, tmp_path / "shop", ["total_clean"]) as lab:
        words = ("--agent-argument=-c", "--agent-argument=approval_policy=sometimes")
        done = lab.program.call("run", "--headless", "--agent", "codex", "--no-preflight", *words)
        assert done.returncode == 2
        assert "unknown variant `sometimes`" in done.stderr
        assert not (lab.project.root / ".swarm").exists()
