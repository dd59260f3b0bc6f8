"""What agents claim is run on the commit that they submitted: results come from that, whatever the agents say."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec import structs

from swarm_tui.adapters.mngr_messages import Created, CreateRequest
from swarm_tui.agents.contract import ARCHIVE_PATH, TRIES_PATH
from swarm_tui.journal.events import Queued
from swarm_tui.journal.open import open_sweep
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.recover import recover_journal
from swarm_tui.model.event import Event
from swarm_tui.model.pulled import ClaimCheck
from swarm_tui.model.results import Baseline, Result
from swarm_tui.review.verdicts import review_of_sweep
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.requests import RequestHandler
from swarm_tui.sweep.run import RunningSweep
from swarm_tui.sweep.verify import ClaimChecks
from tests.git_project import PYTEST_INI, GitProject
from tests.sweep.scripted_sweep import QuickMngr, packed_outcome, run_engine_on, scripted_sweep_of
from tests.waiting import eventually

pytestmark = pytest.mark.slow

BROKEN = "def half(number): return number * 2\n"
FIXED = BROKEN.replace("* 2", "/ 2")
TESTS = """import os, pathlib, pytest
from shop import half


def test_clean(): pass
def test_half(): assert half(4) == 2
def test_skipped(): pytest.skip("no device")
def test_needs_network(): assert not os.path.exists("/nothing") and os.environ.get("HERE")


def test_flaky():
    seen = pathlib.Path(__file__).parent.parent.with_name("seen")
    seen.touch()
    with seen.open("a") as file:
        file.write("x")
    assert seen.stat().st_size != 1
"""
FILES = {"shop.py": BROKEN, "tests/test_shop.py": TESTS, "pytest.ini": PYTEST_INI}
SUCCEEDED = {"status": "SUCCEEDED", "summary_markdown": "done"}
FIX = {"FIX_IMPL": SUCCEEDED}
HOOK = """import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    outcome = yield
    outcome.force_result(None)
"""
FORGED: list[dict[str, object]] = [
    {"kind": "start", "run": "1"},
    {"kind": "finish", "run": "1", "passed": True, "outcome": "passed", "seconds": 1},
]


@dataclass
class Work:
    """What one agent leaves behind."""

    changes: Mapping[str, object] = field(default_factory=dict)
    commits: list[tuple[str, Mapping[str, str | bytes | None]]] = field(default_factory=list)
    uncommitted: Mapping[str, str | bytes | None] = field(default_factory=dict)
    passing_before: bool = True
    tries: list[dict[str, object]] = field(default_factory=list)


class WorkingMngr(QuickMngr):
    """Creates agents that have done their work at once, each in a real copy of the repository."""

    def __init__(self, root: Path, work: Mapping[str, Work]) -> None:
        super().__init__(root / "mngr")
        self.project = root / "project"
        self.work = work

    async def create(self, request: CreateRequest, timeout: float = 0.0) -> Created:
        created = await super().create(request, timeout)
        agent = self.agents[request.name]
        name = next(name for name in self.work if request.name.endswith(name.replace("_", "-")))
        work = self.work[name]
        await asyncio.to_thread(self._do, work, agent.work_dir, request.branch or "")
        tries = agent.state_dir / TRIES_PATH
        tries.parent.mkdir(parents=True, exist_ok=True)
        tries.write_text("".join(json.dumps(line) + "\n" for line in work.tries))
        outcome = packed_outcome(changes=work.changes, tests_passing_before=work.passing_before)
        (agent.state_dir / ARCHIVE_PATH).write_bytes(outcome)
        return created

    def _do(self, work: Work, folder: Path, branch: str) -> None:
        copy = GitProject(folder)
        copy.git("fetch", "--quiet", str(self.project), "main")
        copy.git("checkout", "--quiet", "-B", branch, "FETCH_HEAD")
        for message, files in work.commits:
            copy.commit(message, files)
        copy.write(work.uncommitted)


def prepare(root: Path, work: Mapping[str, Work], **wishes: object) -> SweepContext:
    tests = [f"tests/test_shop.py::{name}" for name in work]
    more = {"verifies": True, "python": sys.executable, "import_roots": (".",)} | wishes
    return scripted_sweep_of(root, FILES, tests, WorkingMngr(root, work), **more)


async def sweep(context: SweepContext) -> dict[str, TestRecord]:
    """Run a sweep to its end; return the records by the names of the tests."""
    runner = RunningSweep(context, tick=0.02)
    async with asyncio.timeout(300):
        await runner.run(RequestHandler(context, runner))
    return {record.test.partition("::")[2]: record for record in context.state.tests()}


def check_of(record: TestRecord) -> ClaimCheck:
    assert record.pulled.check is not None
    return record.pulled.check


async def test_honest_work_has_the_result_that_it_claims(tmp_path: Path) -> None:
    work = {
        "test_clean": Work(),
        "test_half": Work(FIX, [("[FIX_IMPL] Halve", {"shop.py": FIXED})], passing_before=False),
        "test_skipped": Work(),
    }
    records = await sweep(prepare(tmp_path, work))
    assert {name: record.result for name, record in records.items()} == {
        "test_clean": Result.CLEAN,
        "test_half": Result.IMPL_FIX,
        "test_skipped": Result.SKIPPED,
    }
    assert records["test_skipped"].reason == "no device"
    assert {check_of(record).verdict for record in records.values()} == {"confirmed"}


LIES = {
    "a run that never happened": Work(),
    "forged tries": Work(tries=FORGED),
    "a commit that fixes nothing": Work(
        FIX, [("[FIX_IMPL] Halve", {"shop.py": BROKEN + "# fixed\n"})], passing_before=False, tries=FORGED
    ),
    "code that was tested and not committed": Work(
        FIX, [("[FIX_IMPL] Halve", {"notes.py": "x = 1\n"})], uncommitted={"shop.py": FIXED}, passing_before=False
    ),
    "a file that is not committed": Work(
        FIX,
        [("[FIX_IMPL] Halve", {"shop.py": "from helper import half\n"})],
        uncommitted={"helper.py": FIXED},
        passing_before=False,
    ),
    "an exit in the program": Work(
        FIX, [("[FIX_IMPL] Halve", {"shop.py": "import os\n\ndef half(number): os._exit(0)\n"})], passing_before=False
    ),
    "a test that is gone": Work(
        FIX, [("[FIX_IMPL] Halve", {"tests/test_shop.py": "def test_clean(): pass\n"})], passing_before=False
    ),
}


@pytest.mark.parametrize("lie", LIES)
async def test_false_claim_is_unresolved(tmp_path: Path, lie: str) -> None:
    record = (await sweep(prepare(tmp_path, {"test_half": LIES[lie]})))["test_half"]
    assert (record.result, check_of(record).verdict) == (Result.UNRESOLVED, "refuted")
    assert "on the submitted commit" in record.reason
    if LIES[lie].uncommitted:
        assert "lacks the agent's uncommitted changes" in record.reason


async def test_commit_that_decides_results_stays_claimed(tmp_path: Path) -> None:
    commits: list[tuple[str, Mapping[str, str | bytes | None]]] = [("[FIX_IMPL] Halve", {"conftest.py": HOOK})]
    records = await sweep(prepare(tmp_path, {"test_half": Work(FIX, commits, passing_before=False)}))
    record = records["test_half"]
    # The run with this hook passes for pytest; what the test raised is known all the same.
    assert record.result is Result.UNRESOLVED
    assert "a hook reported it as passed" in record.reason
    commits[0] = ("[FIX_IMPL] Halve", {"conftest.py": "import shop\n\nshop.half = lambda number: number / 2\n"})
    record = (await sweep(prepare(tmp_path / "2", {"test_half": Work(FIX, commits, passing_before=False)})))[
        "test_half"
    ]
    assert (record.result, check_of(record).verdict) == (Result.CLAIMED, "unmeasured")
    assert record.reason == "impl fix; not measured: changes conftest.py"


async def test_test_that_was_renamed_stays_claimed(tmp_path: Path) -> None:
    renamed = {"tests/test_shop.py": TESTS.replace("test_clean", "test_clear")}
    work = Work({"FIX_TEST": SUCCEEDED}, [("[FIX_TEST] Rename", renamed)])
    record = (await sweep(prepare(tmp_path, {"test_clean": work})))["test_clean"]
    assert (record.result, check_of(record).verdict) == (Result.CLAIMED, "unmeasured")
    assert record.reason.startswith("test fix; not measured: pytest does not find the test. renamed tests")


async def test_flaky_test_is_run_again_and_named_so(tmp_path: Path) -> None:
    record = (await sweep(prepare(tmp_path, {"test_flaky": Work()})))["test_flaky"]
    assert (record.result, check_of(record).verdict) == (Result.CLEAN, "flaky")
    assert check_of(record).runs == ("failed", "passed")
    assert record.reason.startswith("flaky: passed in 1 of 2 runs on the submitted commit")


async def test_set_up_that_fails_blames_no_agent_and_resume_repeats(tmp_path: Path) -> None:
    context = prepare(tmp_path, {"test_clean": Work()}, setup="test -e $SWARM_CHECKOUT/ready || { echo no; exit 3; }")
    record = (await sweep(context))["test_clean"]
    assert (record.result, check_of(record).verdict) == (Result.CLAIMED, "impossible")
    assert "swarm-tui cannot run the test: the set-up command failed with code 3" in record.reason
    (tmp_path / "project/ready").touch()
    record = (await sweep(context))["test_clean"]
    assert (record.result, check_of(record).verdict) == (Result.CLEAN, "confirmed")


async def test_run_that_takes_too_long_blames_no_agent(tmp_path: Path) -> None:
    slow = TESTS.replace("def test_clean(): pass", "import time\ndef test_clean(): time.sleep(60)")
    work = Work({"FIX_TEST": SUCCEEDED}, [("[FIX_TEST] Wait", {"tests/test_shop.py": slow})])
    record = (await sweep(prepare(tmp_path, {"test_clean": work}, timeout=2.0)))["test_clean"]
    assert (record.result, check_of(record).verdict) == (Result.CLAIMED, "impossible")
    assert "did not exit within 2 s" in record.reason


async def test_base_that_was_green_before_is_not_run_again(tmp_path: Path) -> None:
    context = prepare(tmp_path, {"test_clean": Work()}, python=str(tmp_path / "no-python"))
    (record,) = context.state.tests()
    context.state.records[record.test] = structs.replace(record, baseline=Baseline.GREEN)
    assert (await sweep(context))["test_clean"].result is Result.CLEAN


async def test_integrator_finds_what_was_run(tmp_path: Path) -> None:
    context = prepare(tmp_path, {"test_clean": Work()})
    await sweep(context)
    tree = context.repository.tree_of(context.spec.base)
    cached = review_of_sweep(context.folder.root).results / f"{tree}.jsonl"
    assert json.loads(cached.read_text())["test"] == "tests/test_shop.py::test_clean"


def test_stopped_sweep_leaves_claims_that_resume_checks(tmp_path: Path) -> None:
    waits = "import time\ndef test_clean():\n    while not pathlib.Path({!r}).exists(): time.sleep(0.05)"
    slow = TESTS.replace("def test_clean(): pass", waits.format(str(tmp_path / "go")))
    work = Work({"FIX_TEST": SUCCEEDED}, [("[FIX_TEST] Wait", {"tests/test_shop.py": slow})])
    context = prepare(tmp_path, {"test_clean": work})
    (record,) = context.state.tests()

    async def stop_while_it_runs() -> None:
        runner = RunningSweep(context, tick=0.02)
        running = asyncio.create_task(runner.run(RequestHandler(context, runner)))
        await eventually(lambda: context.state.record_of(record.test).result is Result.CLAIMED, "the claim")
        runner.stop_sweep("asked for")
        async with asyncio.timeout(60):
            await running

    asyncio.run(stop_while_it_runs())
    claimed = context.state.record_of(record.test)
    assert (claimed.result, check_of(claimed).verdict) == (Result.CLAIMED, "pending")
    (tmp_path / "go").touch()
    assert run_engine_on(context) == 0
    resumed = open_sweep(context.folder).state.record_of(record.test)
    assert (resumed.result, check_of(resumed).verdict) == (Result.TEST_FIX, "confirmed")


async def test_test_that_is_queued_again_meanwhile_gets_no_old_result(tmp_path: Path) -> None:
    context = prepare(tmp_path, {"test_half": Work()})
    await sweep(context)
    (record,) = context.state.tests()
    checks = ClaimChecks(context, lambda _: None)
    pending = structs.replace(record.pulled, check=ClaimCheck(claim="clean"))
    context.state.records[record.test] = structs.replace(record, result=Result.CLAIMED, pulled=pending)
    async with asyncio.TaskGroup() as group:
        checks.add(record.test)
        checks.work(group, (), ())
        context.record(Queued(test=record.test, reason="retried"))
    await checks.close()
    assert context.state.record_of(record.test).result is None


async def test_tests_of_one_group_are_not_run_beside_each_other(tmp_path: Path) -> None:
    context = prepare(tmp_path, {"test_clean": Work(), "test_skipped": Work()})
    await sweep(context)
    for record in list(context.state.tests()):
        pending = structs.replace(record.pulled, check=ClaimCheck(claim="clean"))
        context.state.records[record.test] = structs.replace(record, result=Result.CLAIMED, pulled=pending, group="db")
    checks = ClaimChecks(context, lambda _: None)
    async with asyncio.TaskGroup() as group:
        for record in context.state.tests():
            checks.add(record.test)
        checks.work(group, (), ())
        assert sum(checks.hosts.values()) == 2
        assert checks.groups_at_work == {"db"}
        checks.work(group, (), ())
        first = next(iter(context.state.tests())).test
        await eventually(lambda: first not in checks.running, "the end of the first check")
        assert context.state.record_of(first).result is not Result.CLAIMED
        checks.work(group, (), ())
    await checks.close()
    assert {record.result for record in context.state.tests()} == {Result.CLEAN, Result.SKIPPED}


@pytest.mark.needs("bwrap")
async def test_failure_that_confinement_may_cause_blames_no_agent(tmp_path: Path) -> None:
    lookup = "import socket\n\ndef half(number):\n    socket.create_connection(('127.0.0.1', {port}))\n"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        work = Work(FIX, [("[FIX_IMPL] Ask", {"shop.py": lookup.format(port=port) + "    return number / 2\n"})])
        context = prepare(tmp_path, {"test_half": work}, confinement={})
        record = (await sweep(context))["test_half"]
    assert (record.result, check_of(record).verdict) == (Result.CLAIMED, "impossible")
    assert "with no home and no network (--confine) it does not pass on the base either" in record.reason


async def test_without_verification_results_are_what_agents_report(tmp_path: Path) -> None:
    context = prepare(tmp_path, {"test_half": Work()}, verifies=False)
    record = (await sweep(context))["test_half"]
    assert (record.result, record.pulled.check) == (Result.CLEAN, None)
    assert context.spec.why_not_verified == "results are not verified: they are what the agents report"


async def test_integration_waits_for_the_checks(tmp_path: Path) -> None:
    context = prepare(tmp_path, {"test_half": Work()}, integrator="builtin")
    await sweep(context)
    kinds = [event.type for event in context_events(context)]
    assert kinds.index("claim_checked") < kinds.index("integrated")


def context_events(context: SweepContext) -> list[Event]:
    return list(recover_journal(context.folder.events).events)
