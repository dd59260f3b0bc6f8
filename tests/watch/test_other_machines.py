"""Watching agents on another machine: a real sshd on the loopback interface."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import pytest

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.adapters.mngr_settings import user_settings
from tests.isolation import isolate_mngr
from tests.loopback import loopback_hosts, mngr_settings
from tests.terminal import ProgramTerminal
from tests.waiting import until
from tests.watch.test_stories import environment_of

pytestmark = [pytest.mark.slow, pytest.mark.needs("ssh", "sshd", "ssh-keygen")]


def test_agent_on_other_machine_can_be_used(mngr_path: str, tmp_path: Path) -> None:
    with isolate_mngr(mngr_path) as isolated, loopback_hosts(path="/usr/bin:/bin") as (host,):
        settings = user_settings(isolated.host_dir)
        assert settings is not None
        with settings.open("a") as file:
            file.write(mngr_settings([host]))
        # Otherwise mngr's welcome opens as a popup over the first terminal of a new user, and takes its keys.
        (settings.parent / "tmux_onboarding_shown").touch()
        command = (str(isolated.agent),)
        request = CreateRequest(name="far", command=command, source=isolated.repository, host="h1", provider="h1")
        asyncio.run(isolated.adapter.create(request))
        words = [sys.executable, "-m", "swarm_tui", "watch"]
        environment = environment_of(isolated, tmp_path)
        with ProgramTerminal(words, environment=environment, folder=isolated.repository) as terminal:
            terminal.wait_until(lambda screen: screen.has_list("Agents 1"))
            terminal.wait_for("host h1.h1")
            terminal.press("m")
            terminal.wait_for("Enter send")
            terminal.type("knock\r")
            until(lambda: "heard: knock" in host.run("tmux capture-pane -p -t '=mngr-far:'"), "the message")
            terminal.wait_for("message 1 agent: done")
            terminal.press("a")
            terminal.wait_for("heard: knock")
            terminal.send(b"\x02d")
            terminal.wait_for(re.compile("back from far"))
            terminal.press("q")
            assert terminal.wait_for_end() == 0
