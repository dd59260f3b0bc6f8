"""Claims are checked on the host of their agent."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from swarm_tui.hosts.registry import open_hosts
from swarm_tui.journal.events import Pulled
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.pulled import ClaimCheck, PulledWork
from swarm_tui.model.results import Result
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.verify import ClaimChecks
from tests.git_project import PYTEST_INI
from tests.loopback import LoopbackHost, loopback_hosts
from tests.sweep.scripted_sweep import QuickMngr, record_launch, scripted_sweep_of
from tests.waiting import eventually

pytestmark = pytest.mark.slow

needs_sshd = pytest.mark.needs("sshd", "ssh")


@pytest.fixture
def host() -> Iterator[LoopbackHost]:
    with loopback_hosts(path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin") as (host,):
        yield host


def submit(context: SweepContext, record: TestRecord, host: str) -> None:
    """Record that an agent on a host has submitted its work, without commits."""
    record_launch(context, record, replace(context.address_of(record.agent, 1), host=host))
    work = PulledWork(check=ClaimCheck(claim="clean"))
    context.record(Pulled(test=record.test, result=Result.CLAIMED, reason="", pulled=work))


def prepare(host: LoopbackHost, root: Path, content: str, *tests: str) -> SweepContext:
    """Return a sweep in which agents on h1 have submitted their work, without commits."""
    wishes = {"verifies": True, "python": sys.executable, "import_roots": (".",), "access": (host.access,)}
    files = {"test_it.py": content, "pytest.ini": PYTEST_INI}
    context = scripted_sweep_of(
        root, files, [f"test_it.py::{test}" for test in tests], QuickMngr(root / "mngr"), **wishes
    )
    context = replace(context, hosts=open_hosts(context.spec))
    for record in list(context.state.tests()):
        submit(context, record, "h1")
    return context


def results(context: SweepContext) -> list[tuple[Result | None, str]]:
    return [(record.result, record.reason) for record in context.state.tests()]


@needs_sshd
async def test_first_claims_of_a_host_are_checked_at_the_same_time(host: LoopbackHost, tmp_path: Path) -> None:
    context = prepare(host, tmp_path, "def test_a(): pass\ndef test_b(): pass\n", "test_a", "test_b")
    checks = ClaimChecks(context, lambda _: None)
    async with asyncio.TaskGroup() as group:
        for record in context.state.tests():
            checks.add(record.test)
        checks.work(group, (), ())
        assert checks.hosts == {"h1": 2}
    await checks.close()
    await context.hosts.close()
    assert results(context) == [(Result.CLEAN, "")] * 2


@needs_sshd
async def test_check_is_repeated_when_its_host_is_back(host: LoopbackHost, tmp_path: Path) -> None:
    started = tmp_path / "started"
    content = f"""import pathlib, signal
def test_a():
    started = pathlib.Path({str(started)!r})
    if not started.exists():
        started.touch()
        signal.pause()
"""
    context = prepare(host, tmp_path, content, "test_a")
    (record,) = context.state.tests()
    checks = ClaimChecks(context, lambda _: None)

    def unreachable() -> list[str]:
        return [report.host for report in context.hosts.reports() if not report.is_there]

    async with asyncio.TaskGroup() as group:
        checks.add(record.test)
        checks.work(group, (), ())
        await eventually(started.exists, "the test to run")
        await asyncio.to_thread(host.stop)
        await eventually(lambda: not checks.running, "the end of the lost run")
        checks.work(group, unreachable(), ())
        assert not checks.running
        await asyncio.to_thread(host.start)
        await eventually(lambda: not unreachable(), "the host to be back")
        checks.work(group, unreachable(), ())
    await checks.close()
    await context.hosts.close()
    assert results(context) == [(Result.CLEAN, "")]


async def test_claim_of_a_destroyed_host_stays_claimed(tmp_path: Path) -> None:
    context = scripted_sweep_of(tmp_path, {"test_it.py": ""}, ["test_it.py::test_a"], QuickMngr(tmp_path / "mngr"))
    (record,) = context.state.tests()
    submit(context, record, "destroyed")
    checks = ClaimChecks(context, lambda _: None)
    async with asyncio.TaskGroup() as group:
        checks.add(record.test)
        checks.work(group, (), ())
    assert not checks.is_busy
    assert "swarm-tui cannot run the test: not a host of this sweep: destroyed" in results(context)[0][1]
