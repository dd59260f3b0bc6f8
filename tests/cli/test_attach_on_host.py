"""`swarm-tui attach` to an agent on another host: mngr's deadly keys are harmless, and a host that dies leads back."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import pexpect
import pytest

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.adapters.mngr_settings import user_settings
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import Launched, Queued
from swarm_tui.journal.folder import SweepFolder, create_runs_folder
from swarm_tui.model.spec import SweepSpec
from tests.isolation import IsolatedMngr, isolate_mngr
from tests.loopback import LoopbackHost, loopback_hosts, mngr_settings
from tests.waiting import PATIENCE, until

pytestmark = [pytest.mark.slow, pytest.mark.needs("ssh", "sshd", "ssh-keygen")]

AGENT = "swarm-x-copy"
SESSION = f"mngr-{AGENT}"


@pytest.fixture
def host(mngr_path: str) -> Iterator[tuple[IsolatedMngr, LoopbackHost]]:
    """Return a host with an agent of a sweep, and the mngr that knows it."""
    with isolate_mngr(mngr_path) as mngr, loopback_hosts(path="/usr/bin:/bin") as (host,):
        settings = user_settings(mngr.host_dir)
        assert settings is not None
        with settings.open("a") as file:
            file.write(mngr_settings([host]))
        request = CreateRequest(
            name=AGENT, command=(str(mngr.agent),), source=mngr.repository, host="h1", provider="h1"
        )
        created = asyncio.run(mngr.adapter.create(request))
        folder = SweepFolder(create_runs_folder(mngr.repository) / "20261118-061200")
        folder.write_spec(
            SweepSpec(
                sweep=folder.name,
                repository=str(mngr.repository),
                base="0" * 40,
                created_at=1.0,
                mngr=mngr.settings,
                access=(host.access,),
            )
        )
        with JournalWriter(folder.events) as journal:
            journal.append(Queued(test="test_a.py::test_copy", agent=AGENT))
            journal.append(Launched(test="test_a.py::test_copy", agent_id=created.agent_id, host="h1"))
        yield mngr, host


def test_a_person_attaches_to_an_agent_on_a_host_which_freezes_meanwhile(
    host: tuple[IsolatedMngr, LoopbackHost],
) -> None:
    mngr, machine = host

    def screen() -> str:
        return machine.run(f"tmux capture-pane -p -t '={SESSION}:'")

    person = pexpect.spawn(
        sys.executable,
        ["-m", "swarm_tui", "attach", "test_copy"],
        cwd=str(mngr.repository),
        env=mngr.environment | {"TERM": "xterm-256color", "SWARM_MNGR": mngr.settings.path},
        dimensions=(30, 100),
        encoding="utf-8",
        timeout=PATIENCE,
    )
    person.expect("to detach: C-b d")
    person.expect_exact("[mngr-swar")
    machine.run("tmux set-option -g assume-paste-time 0")
    person.send("\x11\x14still here\r")
    until(lambda: "still here" in screen(), "the agent to live on", describe=screen)

    machine.freeze()
    person.expect("Retrying in")
    person.sendintr()
    person.expect_exact("\x1b[?1049l\x1b[?25h")
    person.expect("h1 does not answer")
    person.expect(pexpect.EOF)
    assert person.wait() == 1
    machine.freeze(False)
    assert SESSION in machine.run("tmux list-sessions")
