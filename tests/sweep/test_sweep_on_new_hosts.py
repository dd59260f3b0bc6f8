"""A whole sweep on hosts that the real mngr makes for it, by a provider of the tests."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from swarm_tui.adapters.mngr_settings import user_settings
from swarm_tui.hosts.events import HostCreated, HostCreating, HostDestroyed
from swarm_tui.journal.events import Launching
from tests.bench.sweep_speed import make_project
from tests.isolation import isolate_mngr
from tests.loopback import can_have_own_disks, loopback_hosts
from tests.loopback_provider import loopback_pool
from tests.sweep.sweeping import Program, offline

pytestmark = [pytest.mark.slow, pytest.mark.needs("ssh", "sshd", "ssh-keygen")]


def test_hosts_are_made_for_a_sweep_and_given_back_at_its_end(tmp_path: Path, mngr_path: str) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    machines = loopback_hosts(1, path=path, has_own_disks=can_have_own_disks())
    with isolate_mngr(mngr_path) as mngr, machines as hosts:
        asyncio.run(mngr.adapter.plugins())
        settings = user_settings(mngr.host_dir)
        assert settings is not None
        with loopback_pool(mngr, hosts, settings) as pool:
            project = make_project(tmp_path, 2)
            environment = mngr.environment | pool.environment | {"SWARM_MNGR": mngr_path, "PATH": os.environ["PATH"]}
            program = Program(project.root, environment)
            on_new_hosts = ("--provider", "loopback", "--per-host", "2", "--slots", "2", "--integrator", "none")
            done = program.call("run", "--headless", *on_new_hosts, *offline("records", "--pass-env", "LOOPBACK_POOL"))
            assert done.returncode == 0, done.stderr
            assert (pool.made, len(pool.free)) == ([], 1)
            status = program.status()
            (host,) = status["hosts"]
            assert (host["state"], host["finished"]) == ("released", 2)
            assert {test["host"] for test in status["tests"]} == {host["host"]}
            events = [
                type(event)
                for event in program.newest_events()
                if isinstance(event, HostCreating | HostCreated | HostDestroyed | Launching)
            ]
            assert events == [HostCreating, HostCreated, Launching, Launching, HostDestroyed]
