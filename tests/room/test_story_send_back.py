"""In a real terminal: a fix is sent back with a comment, and a revised fix is shown with its difference."""

from __future__ import annotations

import json
import sys

import pytest

from swarm_tui.e2e import E2eSession
from swarm_tui.integrator.events import Revision
from swarm_tui.journal.events import EngineStarted, Queued
from swarm_tui.model.pulled import INTEGRATOR_OUTCOME_FILE
from tests.room.larder import begin_larder

pytestmark = pytest.mark.slow


def test_fix_is_sent_back_with_comment(e2e: E2eSession) -> None:
    sweep = begin_larder(e2e.folder / "larder")
    sweep.work()
    sweep.begin_integrating()
    sweep.integrate()
    terminal = e2e.tmux(f"cd larder && {sys.executable} -m swarm_tui fixes", width=120, height=35)
    terminal.wait_for("8 fixes · 0 keep")
    terminal.send_keys("r")
    terminal.wait_for("Message to 1 agent")
    terminal.type_text("Only where it is a date.")
    terminal.send_keys("Enter")
    terminal.wait_for("#1: requested to send it back to")
    terminal.wait_for("later")
    terminal.send_keys("q", "q")
    (line,) = (sweep.folder.root / "requests.jsonl").read_text().splitlines()
    asked = json.loads(line)
    assert (asked["kind"], asked["text"]) == ("send_back", "Only where it is a date.")
    assert asked["tests"] == [sweep.tests["soon_includes_today"].test]
    assert asked["fix"] == sweep.project.git("rev-list", "--reverse", f"main..{sweep.branch}").split("\n")[1]


@pytest.mark.parametrize("is_there", [False, True])
def test_list_shows_state_of_sent_back_fixes(e2e: E2eSession, is_there: bool) -> None:
    sweep = begin_larder(e2e.folder / "larder")
    sweep.work()
    sweep.begin_integrating()
    sweep.integrate()
    first, second = sweep.project.git("rev-list", "--reverse", f"main..{sweep.branch}").split("\n")[1:3]
    comment = "Only where it is a date."
    if is_there:
        path = sweep.folder.integrator / INTEGRATOR_OUTCOME_FILE
        came = {"old": second, "new": first, "comment": comment, "by": "ada"}
        path.write_text(json.dumps(json.loads(path.read_text()) | {"revisions": [came]}))
    else:
        test = sweep.tests["soon_includes_today"].test
        sent = Revision(fix=first, comment=comment, by="ada", tip=first)
        sweep.append(EngineStarted(pid=1, slots=6), Queued(test=test, revision=sent))
    terminal = e2e.tmux(f"cd larder && {sys.executable} -m swarm_tui fixes", width=120, height=40)
    terminal.wait_for("8 fixes · 0 keep")
    terminal.wait_for("1 new" if is_there else "1 sent")
    terminal.wait_for("revised by its agent" if is_there else "sent back by ada: its agent is working on it")
    terminal.wait_for(comment)
    terminal.send_keys("v")
    terminal.wait_for("#1 since it was sent back" if is_there else "it was not sent back")
    terminal.send_keys("q", "q")
