"""Code under test that tries to write its own result: a test that fails is never reported as passed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from swarm_tui.adapters.pytest import SessionsHere, TestRun, read_report, run_tests
from tests.git_project import PYTEST_INI
from tests.waiting import PATIENCE

TESTS = """from program import answer


def test_first(): assert answer() == 42
def test_second(): assert answer() == 42
"""
PROGRAM = "def answer(): return 41\n"
NAMES = ("test_it.py::test_first", "test_it.py::test_second")

REPORTS_PASSED = """import pytest


@pytest.hookimpl(hookwrapper=True, {order}=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    report.outcome, report.longrepr = "passed", None
"""
CALL_PASSED = """import pytest


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    outcome = yield
    outcome.force_result(True)
"""
RECORDS = """import json, os, time


def records():
    for number, fields in enumerate(
        [{"kind": "start", "test": test} for test in NAMES]
        + [{"kind": "finish", "test": test, "outcome": "passed", "seconds": 0, "reruns": 0} for test in NAMES]
        + [{"kind": "end", "code": 0}]
    ):
        yield json.dumps(dict(fields, number=number, at=time.time()))


NAMES = ["test_it.py::test_first", "test_it.py::test_second"]
"""
WRITES_TO_ALL = (
    RECORDS
    + """
for descriptor in range(3, 100):
    for record in records():
        try:
            os.write(descriptor, (record + "\\n").encode())
        except OSError:
            break
"""
)
WRITES_A_FILE = (
    RECORDS
    + """
for name, value in os.environ.items():
    if name.startswith("SWARM_") and os.path.isabs(value):
        with open(value, "a") as file:
            file.write("\\n".join(records()) + "\\n")
"""
)
EXIT = "import os\nos._exit(0)\n"
EXIT_AT_END = "import os\n\n\ndef pytest_sessionfinish(): os._exit(0)\n"
FAKE_RUN = """import os, sys
secret = b""
while not secret.endswith(b"\\n"):
    secret += os.read(int(os.environ["SWARM_RESULTS"]), 1)
lines = b"".join(secret[:-1] + record.encode() + b"\\n" for record in records())
os.write(int(os.environ["SWARM_RESULTS"]), lines)
os._exit(0)
"""
USES_PLUGIN = """import os, sys

channel = getattr(sys.modules["swarm_live"], "channel", None)
if channel is not None:
    for test in ["test_it.py::test_first", "test_it.py::test_second"]:
        channel.send(kind="finish", test=test, outcome="passed")
    channel.send(kind="end", code=0)
    os._exit(0)
"""
ENTRY_POINTS = "[pytest11]\nswarm_live = swarm_lives\n"
METADATA = "Metadata-Version: 2.1\nName: swarm_live\nVersion: 2\n"
SESSION_GREEN = "def pytest_sessionfinish(session): session.exitstatus = 0\n"
NOT_RUN = """from _pytest.reports import TestReport


def pytest_runtest_protocol(item):
    item.config.pluginmanager.unregister(name="swarm-live-recorder-0")
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for when in ("setup", "call", "teardown"):
        report = TestReport(item.nodeid, item.location, {}, "passed", None, when)
        item.ihook.pytest_runtest_logreport(report=report)
    return True
"""

FORGERIES: dict[str, dict[str, str]] = {
    "a hook that makes every report a passed one": {"conftest.py": REPORTS_PASSED.format(order="tryfirst")},
    "the same, before ours": {"conftest.py": REPORTS_PASSED.format(order="trylast")},
    "a hook that makes every call a passed one": {"conftest.py": CALL_PASSED},
    "the same in the test file's own plugin": {
        "helper.py": REPORTS_PASSED.format(order="tryfirst"),
        "conftest.py": 'pytest_plugins = ["helper"]\n',
    },
    "an exit while collecting": {"conftest.py": EXIT},
    "an exit in the program": {"program.py": "import os\n\ndef answer(): os._exit(0)\n"},
    "an exit at the end of the session": {"conftest.py": EXIT_AT_END},
    "a green exit status": {"conftest.py": SESSION_GREEN},
    "records in a file that a variable names": {"program.py": WRITES_A_FILE + PROGRAM},
    "records in a file, and an exit": {"program.py": WRITES_A_FILE + EXIT},
    "records on every descriptor": {"program.py": WRITES_TO_ALL + PROGRAM},
    "records on every descriptor, and an exit": {"program.py": WRITES_TO_ALL + EXIT},
    "another pytest": {"pytest.py": RECORDS + FAKE_RUN},
    "another plugin": {"swarm_live.py": RECORDS + FAKE_RUN},
    "a module that every Python imports": {"sitecustomize.py": RECORDS + FAKE_RUN},
    "records through our plugin": {"program.py": USES_PLUGIN + PROGRAM},
    "a plugin of the same name": {
        "swarm_live-2.dist-info/entry_points.txt": ENTRY_POINTS,
        "swarm_live-2.dist-info/METADATA": METADATA,
        "swarm_lives.py": NOT_RUN,
    },
    "reports without a run, and without our recorder": {"conftest.py": NOT_RUN},
    "settings that leave our plugin out": {"pytest.ini": "[pytest]\naddopts = -p no:swarm_live\n"},
}  # fmt: skip


async def run(copy: Path, files: dict[str, str]) -> TestRun:
    for name, content in {"pytest.ini": PYTEST_INI, "test_it.py": TESTS, "program.py": PROGRAM, **files}.items():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text(content)
    return await run_tests(SessionsHere(sys.executable, copy, timeout=PATIENCE), {name: name for name in NAMES})


@pytest.mark.slow
@pytest.mark.parametrize("what", FORGERIES)
async def test_forgery_makes_no_failing_test_pass(tmp_path: Path, what: str) -> None:
    made = await run(tmp_path, FORGERIES[what])
    assert not [name for name in NAMES if made.is_green(name)]


@pytest.mark.slow
async def test_honest_run_beside_the_same_files_passes(tmp_path: Path) -> None:
    made = await run(tmp_path, {"program.py": "def answer(): return 42\n", "helper.py": RECORDS})
    assert dict(made.outcomes) == dict.fromkeys(NAMES, "passed")


@pytest.mark.slow
async def test_session_that_a_hook_ends_after_its_end_counts(tmp_path: Path) -> None:
    ends = "import os\n\ndef pytest_unconfigure(): os._exit(0)\n"
    made = await run(tmp_path, {"program.py": "def answer(): return 42\n", "conftest.py": ends})
    assert dict(made.outcomes) == dict.fromkeys(NAMES, "passed")


@pytest.mark.slow
async def test_failure_hidden_by_a_hook_is_reported(tmp_path: Path) -> None:
    made = await run(tmp_path, FORGERIES["a hook that makes every report a passed one"])
    assert "a hook reported it as passed, although it raised AssertionError" in made.failures[NAMES[0]]


SECRET = b"5ecret"


def record(number: int, rest: str) -> bytes:
    return SECRET + f'{{"number": {number}, {rest}}}\n'.encode()


START, FINISH = '"kind": "start", "test": "a"', '"kind": "finish", "test": "a", "outcome": "passed"'
WHOLE = record(0, START) + record(1, FINISH) + record(2, '"kind": "end", "code": 0')


def test_whole_report_counts() -> None:
    report = read_report(WHOLE, SECRET)
    assert (report.outcomes, report.problem(0)) == ({"a": "passed"}, "")


@pytest.mark.parametrize("code", [-11, 139])
def test_crash_after_the_session_changes_nothing(code: int) -> None:
    assert read_report(WHOLE, SECRET).problem(code) == ""


@pytest.mark.parametrize(
    ("content", "code", "problem"),
    [
        (record(0, START) + record(1, FINISH), 0, "the process exited before the end of pytest's session, with code 0"),
        (WHOLE, 1, "pytest exited with code 0, but its process with code 1"),
        (WHOLE.replace(SECRET, b"guessed"), 0, "something other"),
        (WHOLE[len(SECRET) :], 0, "something other"),
        (record(0, START) + record(2, FINISH), 0, "something other"),
        (record(0, START) + record(0, START), 0, "something other"),
        (b"noise\n" + WHOLE, 0, "something other"),
        (record(0, START) + b"noise" + WHOLE, 0, "something other"),
    ],
)
def test_other_report_does_not_count(content: bytes, code: int, problem: str) -> None:
    assert problem in read_report(content, SECRET).problem(code)
