"""What people and machines are told of a sweep."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from swarm_tui.cli.follow import follow_sweep
from swarm_tui.errors import UsageError
from swarm_tui.integrator.events import Integrated, IntegrationFailed
from swarm_tui.journal.append import EngineLock, is_stopped
from swarm_tui.journal.events import AgentStateChanged, EngineEnded, Launched, Pulled
from swarm_tui.journal.open import open_sweep
from swarm_tui.journal.work_events import TryFinished
from swarm_tui.model.pulled import PulledChange, PulledWork
from swarm_tui.model.results import Result, State
from swarm_tui.sweep.context import SweepContext
from tests.cli.command_line import run_swarm_tui
from tests.programs import end_with_parent
from tests.sweep.scripted_sweep import QuickMngr, scripted_sweep
from tests.waiting import until


@pytest.fixture
def context(tmp_path: Path) -> SweepContext:
    """Return a sweep of four tests: one done, one that waits, one that runs, one queued."""
    context = scripted_sweep(tmp_path, 4, QuickMngr(tmp_path / "mngr"))
    done, waiting, running, _ = (record.test for record in context.state.tests())
    for test in (done, waiting, running):
        context.record(Launched(test=test))
    context.record(TryFinished(test=done, number=1, passed=False, seconds=0.5, failure="assert 0"))
    change = PulledChange(kind="FIX_IMPL", status="SUCCEEDED", summary="done", commit="c" * 40)
    context.record(Pulled(test=done, result=Result.IMPL_FIX, pulled=PulledWork(changes=(change,), tip="c" * 40)))
    context.record(AgentStateChanged(test=waiting, state=State.WAITING, question="\x1b[31mWhich?\x1b[0m [/red]"))
    return context


def swarm_tui(context: SweepContext, *words: str) -> subprocess.CompletedProcess[str]:
    return run_swarm_tui(*words, folder=Path(context.spec.repository))


def test_a_machine_is_told_everything(context: SweepContext) -> None:
    status = json.loads(swarm_tui(context, "status", "--json").stdout)
    assert status["sweep"] == context.folder.name
    assert status["state"] == "lost"
    assert (status["base"], status["integrated"]) == (context.spec.base, None)
    assert status["counts"] == {"impl_fix": 1, "waiting": 1, "running": 1, "queued": 1}
    done = status["tests"][0]
    assert (done["state"], done["result"]) == ("done", "impl_fix")
    assert done["tries"][0] | {"at": 0} == {
        "passed": False,
        "outcome": "",
        "seconds": 0.5,
        "at": 0,
        "failure": "assert 0",
    }
    assert done["changes"] == {"FIX_IMPL": {"status": "SUCCEEDED", "summary": "done", "commit": "c" * 40}}


def test_an_integration_that_failed_is_told_with_the_way_to_repeat_it(context: SweepContext) -> None:
    context.record(IntegrationFailed(reason="no space left on \x1b[31mthe disk"))
    told = swarm_tui(context, "status").stdout
    assert (
        f"not integrated: no space left on the disk\n  to try again: `swarm-tui integrate {context.folder.name}`"
        in told
    )
    context.record(Integrated(branch="swarm/1/integrated", fixes=1))
    assert "not integrated" not in swarm_tui(context, "status").stdout


def test_a_sweep_that_ends_without_its_branch_does_not_end_well(tmp_path: Path) -> None:
    context = scripted_sweep(tmp_path, 1, QuickMngr(tmp_path / "mngr"))
    context.record(Pulled(test=next(context.state.tests()).test, result=Result.CLEAN))
    context.record(IntegrationFailed(reason="no space left on the disk"))
    context.record(EngineEnded(why="finished"))
    assert follow_sweep(context.folder) == 1
    context.record(Integrated(branch=None))
    assert follow_sweep(context.folder) == 0


def test_the_state_of_a_sweep_is_one_word(context: SweepContext) -> None:
    lock = EngineLock(context.folder.lock)
    lock.acquire()
    try:
        assert json.loads(swarm_tui(context, "status", "--json").stdout)["state"] == "running"
    finally:
        lock.release()
    context.record(Integrated(branch="swarm/x/integrated"))
    context.record(EngineEnded(why="finished"))
    status = json.loads(swarm_tui(context, "status", "--json").stdout)
    assert (status["state"], status["integrated"]) == ("finished", "swarm/x/integrated")
    listed = json.loads(swarm_tui(context, "list", "--json").stdout)
    assert [(row["sweep"], row["state"]) for row in listed] == [(context.folder.name, "finished")]


def test_people_read_lines_without_escapes_and_are_told_what_to_do(context: SweepContext) -> None:
    shown = swarm_tui(context, "status")
    assert shown.returncode == 0
    assert "Which? [/red]" in shown.stdout
    assert "\x1b" not in shown.stdout
    assert f"to resume: `swarm-tui resume {context.folder.name}`" in shown.stdout
    only = swarm_tui(context, "status", "--only", "impl-fix").stdout.splitlines()
    assert [line.split()[0] for line in only if line.startswith("  ")] == ["impl"]
    assert swarm_tui(context, "status", "--only", "nonsense").returncode == 2
    assert swarm_tui(context, "status", "2019").returncode == 2


def test_a_sweep_that_cannot_be_read_is_listed_with_the_reason(context: SweepContext) -> None:
    context.folder.spec.write_text("{")
    shown = swarm_tui(context, "list")
    assert shown.returncode == 0
    assert "unreadable" in shown.stdout


def test_asking_a_sweep_without_an_engine_says_how_to_get_one(context: SweepContext) -> None:
    asked = swarm_tui(context, "request", "slots", "3")
    assert asked.returncode == 2
    assert "resume the sweep: " in asked.stderr
    assert swarm_tui(context, "request", "slots", "many").returncode == 2
    context.record(EngineEnded(why="finished"))
    assert "swarm-tui run --only-failed-of" in swarm_tui(context, "request", "slots", "3").stderr
    assert swarm_tui(context, "stop").returncode == 0


@pytest.mark.parametrize("name", ["test_", "nothing"])
def test_every_command_refuses_a_name_in_the_same_words(context: SweepContext, name: str) -> None:
    refused = {
        swarm_tui(context, *words, name).stderr for words in (["attach"], ["request", "retry"], ["request", "stop"])
    }
    assert len(refused) == 1
    with pytest.raises(UsageError) as told:
        open_sweep(context.folder).find_test(name)
    assert refused == {f"swarm-tui: {told.value.report}\n"}


def test_without_utf_8_all_is_told_but_the_signs_that_are_missing(context: SweepContext) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    context.record(AgentStateChanged(test=next(context.state.tests()).test, state=State.WAITING, question="☃?"))
    done = subprocess.run(
        [sys.executable, "-m", "swarm_tui", "status"],
        cwd=context.spec.repository,
        env=environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    assert b"??" in done.stdout


def test_an_engine_that_was_stopped_by_a_signal_is_said_with_the_way_out(context: SweepContext) -> None:
    holding = (
        "import sys, time; from pathlib import Path; from swarm_tui.journal.append import EngineLock;"
        "lock = EngineLock(Path(sys.argv[1])); lock.acquire(); print('held', flush=True); time.sleep(600)"
    )
    words = [sys.executable, "-c", holding, str(context.folder.lock)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, preexec_fn=end_with_parent) as engine:
        assert engine.stdout is not None
        engine.stdout.readline()
        assert "does not answer" not in swarm_tui(context, "status").stdout
        os.kill(engine.pid, signal.SIGSTOP)
        until(lambda: is_stopped(engine.pid), "the engine to be stopped")
        told = f"the engine (process {engine.pid}) is suspended; resume it with `kill -CONT {engine.pid}`"
        assert told in swarm_tui(context, "status").stdout
        asked = swarm_tui(context, "stop")
        assert (asked.returncode, told in asked.stderr) == (1, True)
        engine.kill()
