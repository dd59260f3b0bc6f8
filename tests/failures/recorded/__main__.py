"""`python -m tests.failures.recorded`: run the tests of the broken projects, and record why each failed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from swarm_tui.agents.packaged import live_folder
from tests.failures.recorded import fleet, shop
from tests.failures.recorded.measure import FAILURES

RECORDER = """
import json, os
import pytest
from swarm_live.failure import describe_failure
from swarm_live.report import failure_line



@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        report.swarm_failure = describe_failure(call.excinfo.value, str(item.config.rootpath), str(item.path))

def pytest_collection_modifyitems(items):
    for item in items:
        for mark in item.iter_markers("cause"):
            item.user_properties.append(("cause", mark.args[0]))

causes, seen = {}, set()

def pytest_runtest_logreport(report):
    causes.update({report.nodeid: value for name, value in report.user_properties if name == "cause"})
    if report.outcome == "failed" and report.nodeid not in seen:
        seen.add(report.nodeid)
        detail = getattr(report, "swarm_failure", None)
        line = {"test": report.nodeid, "failure": failure_line(report), "detail": detail}
        with open(os.environ["SWARM_FAILURES"], "a") as file:
            file.write(json.dumps(dict(line, cause=causes.get(report.nodeid, "crash"))) + chr(10))
"""


def made_failures(files: Mapping[str, str], *, is_held_out: bool) -> list[str]:
    """Return the failures of a project, one line of JSON each."""
    with tempfile.TemporaryDirectory(prefix="project-") as folder:
        root = Path(folder).resolve()
        for name, content in {**files, "recorder.py": RECORDER}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        target = root / "failures.jsonl"
        path_words = os.pathsep.join([str(root), str(root / "tests"), str(live_folder())])
        environment = os.environ | {"PYTHONPATH": path_words, "SWARM_FAILURES": str(target)}
        words = [sys.executable, "-m", "pytest", "-q", "-p", "recorder", "-p", "no:cacheprovider", "-p", "no:asyncio"]
        options = ["--basetemp", str(root / "temporary")]
        has_crash = any("crash" in name for name in files)
        subprocess.run([*words, *options, "tests", "--ignore=tests/test_crash.py"], cwd=root, env=environment)
        if has_crash:
            subprocess.run([*words, *options, "-n1", "tests/test_crash.py"], cwd=root, env=environment)
        lines = target.read_text().replace(str(root), "/home/ann/project").splitlines()
    made = [{**json.loads(line), "is_held_out": is_held_out} for line in lines]
    return [json.dumps(failure) for failure in made]


def main() -> None:
    lines = made_failures(shop.FILES, is_held_out=False) + made_failures(fleet.FILES, is_held_out=True)
    FAILURES.write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} failures in {FAILURES}")


if __name__ == "__main__":
    main()
