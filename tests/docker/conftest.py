"""Fixtures of sweeps on containers: one daemon and one mngr for all tests of this process."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.docker.daemon import DockerDaemon, mngr_with_docker, private_daemon
from tests.isolation import IsolatedMngr, isolate_mngr


@pytest.fixture(scope="session")
def daemon() -> Iterator[DockerDaemon]:
    with private_daemon() as daemon:
        yield daemon


@pytest.fixture(scope="session")
def docker_mngr(daemon: DockerDaemon) -> Iterator[IsolatedMngr]:
    """Return a mngr with the docker plugin, which uses the private daemon."""
    with isolate_mngr(mngr_with_docker()) as mngr:
        more = {"DOCKER_HOST": daemon.address, "SWARM_MNGR": mngr.settings.path, "PATH": os.environ["PATH"]}
        mngr.environment.update(more)
        mngr.adapter.environment.update(more)
        yield mngr
