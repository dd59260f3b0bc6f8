"""Agents of this machine are destroyed although mngr wants to destroy an empty host with them, and cannot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.adapters.mngr_settings import user_settings
from tests.isolation import IsolatedMngr, isolate_mngr
from tests.loopback import LoopbackHost, loopback_hosts, mngr_settings

pytestmark = [pytest.mark.slow, pytest.mark.needs("ssh", "sshd", "ssh-keygen")]


@pytest.fixture
def beside(mngr_path: str) -> Iterator[tuple[IsolatedMngr, LoopbackHost]]:
    """Return a mngr whose settings name a machine, which counts as unused at once."""
    with isolate_mngr(mngr_path) as mngr, loopback_hosts(path="/usr/bin:/bin") as (host,):
        settings = user_settings(mngr.host_dir)
        assert settings is not None
        with settings.open("a") as file:
            file.write(
                mngr_settings([host]).replace('backend = "ssh"', 'backend = "ssh"\nmin_online_host_age_seconds = 0')
            )
        yield mngr, host


async def test_agent_is_destroyed_despite_empty_host(beside: tuple[IsolatedMngr, LoopbackHost]) -> None:
    mngr, host = beside
    far = CreateRequest(name="far", command=("sleep", "1000"), source=mngr.repository, host="h1", provider="h1")
    here = CreateRequest(name="here", command=("sleep", "1000"), source=mngr.repository, transfer="git-mirror")
    await mngr.adapter.create(far)
    folder = host.access.host_dir
    # As after a person was connected to an agent there, which is gone since.
    host.run(f"tmux kill-server; rm -rf {folder}/agents/* {folder}/copies/*; mkdir {folder}/activity")
    host.run(f"echo '{{}}' > {folder}/activity/ssh")
    await mngr.adapter.create(here)
    report = await mngr.adapter.destroy(["here"])
    assert report.failed == ()
    assert (await mngr.adapter.list_agents()).agents == ()
    assert list((mngr.host_dir / "copies").iterdir()) == []
