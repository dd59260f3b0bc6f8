"""Calls pytest on a host for a commit of the sweep's repository, in a scratch copy there."""

from __future__ import annotations

import base64
import inspect
import json
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from swarm_tui.adapters.processes.environment import passed_variables
from swarm_tui.adapters.processes.run import Finished
from swarm_tui.adapters.pytest import (
    COPY_VARIABLE,
    NAMED_IN_VARIABLE,
    RUN_PYTEST_NAME,
    PytestSession,
    Tell,
    read_report,
    run_variables,
    session_words,
)
from swarm_tui.errors import AdapterError
from swarm_tui.hosts import test_run as far_test_run
from swarm_tui.hosts.preparation import PreparedHost
from swarm_tui.model.run_limits import COPIES_NUMBER, OWN_HOME, own_folder, own_variables
from swarm_tui.model.spec import SweepSpec
from swarm_tui.model.text import plain

_PROGRAM: Final = inspect.getsource(far_test_run)
# Beyond the run itself: a clone, a checkout and the set-up.
_EXTRA_SECONDS: Final = far_test_run.SET_UP_SECONDS + 2 * far_test_run.GIT_SECONDS


@dataclass(frozen=True, slots=True)
class SessionsOnHost:
    """How pytest is called on a host."""

    spec: SweepSpec
    host: PreparedHost
    number: int
    """The number of the scratch copy, which no other run uses now."""
    commit: str
    timeout: float

    async def run(self, words: Sequence[str], tell: Tell | None, before: int) -> PytestSession:
        spec, host = self.spec, self.host
        copy = posixpath.join(host.folder, f"check{self.number}")
        temporary, number = spec.temporary or host.folder, COPIES_NUMBER + self.number
        own = own_variables(number, temporary, spec.run_limits)
        roots = [posixpath.normpath(posixpath.join(copy, root)) for root in spec.import_roots or (".",)]
        wanted = {
            "copy": copy,
            "seed": host.seed,
            "commit": self.commit,
            # A set-up that created the interpreter need not be repeated in each copy.
            "setup": "" if host.is_set_up else spec.setup or "",
            "checkout": host.project,
            "python": host.python,
            "program": posixpath.join(host.package_dir.live, RUN_PYTEST_NAME),
            "words": session_words("{scratch}", spec.run_options, words),
            "folder": spec.folder,
            "variables": {
                "PYTHONPATH": "",
                "SWARM_PYTHONPATH": ":".join([*roots, host.package_dir.live]),
                "SWARM_RESULTS": "{descriptor}",
                NAMED_IN_VARIABLE: spec.repository,
                COPY_VARIABLE: copy,
                **run_variables("{scratch}"),
                **own,
            },
            "passed": passed_variables(spec.passed_environment),
            "seconds": self.timeout,
            "own": [own_folder(temporary, number), *([own[OWN_HOME]] if OWN_HOME in own else [])],
        }
        called = ["python3", "-c", _PROGRAM]
        content, timeout = json.dumps(wanted).encode(), self.timeout + _EXTRA_SECONDS
        finished = await host.host.run(called, cwd=host.folder, stdin=content, timeout=timeout)
        try:
            answer = json.loads(finished.stdout)
            if "problem" in answer:
                raise AdapterError(f"on {host.settings.name}: {plain(str(answer['problem']), 200)}", "")
            received, output = base64.b64decode(answer["received"]), str(answer["output"]).encode()
            report = read_report(received, str(answer["secret"]).encode())
            return PytestSession(report, Finished(("pytest",), int(answer["code"]), output, b"", 0.0, False))
        except (ValueError, KeyError, TypeError) as error:
            last = (finished.error_text.strip().splitlines() or ["it printed nothing"])[-1]
            raise AdapterError(f"{host.settings.name} cannot run the test: {plain(last, 200)}", "") from error
