"""The input of an integrator: the branches of the sweep, the agents' reports, and how to run tests."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from swarm_tui.errors import JournalError
from swarm_tui.files import read_regular
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.pulled import ChangeStatus
from swarm_tui.model.report import IntegratorReport
from swarm_tui.model.results import Result, State
from swarm_tui.model.run_limits import NO_LIMITS, RunLimits
from swarm_tui.testing.settings import TestSettings

INPUTS_FILE: Final = "inputs.json"


class Frozen(BaseModel):
    """Base class of the JSON input of an integrator."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class BranchInput(Frozen):
    """One branch to integrate, and its agent's report."""

    agent: str
    test: str
    branch: str
    tip: str
    bundle: str = ""
    summary: str = ""
    is_passing_after: bool | None = None
    weaker: str = ""
    """How the test became weaker on this branch."""
    revised_after: str = ""
    """Its last commit before a fix was sent back. Later fixes are folded into the last fix before it."""


class TestInput(Frozen):
    """One test of the sweep, with the result of its agent."""

    __test__ = False

    test: str
    argument: str = ""
    """The pytest argument that selects the test, if it differs from its node id; else empty."""
    file: str = ""
    result: str = ""
    reason: str = ""
    has_foreign_imports: bool = False


class ExcludedBranch(Frozen):
    """A branch with commits that is not integrated, and why."""

    branch: str
    reason: str


class PersonInput(Frozen):
    """Author of the integrator's commits."""

    name: str
    email: str


class Submission(Frozen):
    """The integrated branch that a coding agent submitted. It is untrusted, and is checked and measured."""

    tip: str = ""
    """Its last commit; empty if there is none."""
    ref: str = ""
    """The ref in the user's repository."""
    problem: str = ""
    """Why the branch is unusable regardless of its content; empty if it is usable."""
    report: IntegratorReport = IntegratorReport()


class IntegratorInputs(Frozen):
    """The content of the input file."""

    sweep: str
    repository: str
    base: str
    branch: str
    committer: PersonInput
    branches: tuple[BranchInput, ...] = ()
    not_taken: tuple[ExcludedBranch, ...] = ()
    tests: tuple[TestInput, ...] = ()
    tutorial: str = ""
    python: str = ""
    folder: str = ""
    """The working folder of pytest, relative to the top of a copy."""
    import_roots: tuple[str, ...] = (".",)
    """Folders inside a copy of the repository that come first on PYTHONPATH."""
    pytest_options: tuple[str, ...] = ()
    setup: str = ""
    fill: tuple[str, ...] = ()
    """Shell commands that add files to a copy that git ignores."""
    limits: RunLimits = NO_LIMITS
    measure_seconds: float = 600.0
    """Total time limit for measuring effects, in seconds; 0 disables measuring."""
    cache: str = ""
    """The folder of the cache of test results; empty to disable the cache."""
    submission: Submission | None = None
    """The branch of a coding agent; None if only the built-in integrator is used."""

    @property
    def test_settings(self) -> TestSettings:
        return TestSettings(
            self.python,
            self.folder,
            self.import_roots,
            self.pytest_options,
            self.setup,
            checkout=self.repository,
            fill=self.fill,
            limits=self.limits,
        )


def read_inputs(path: Path) -> IntegratorInputs:
    try:
        return IntegratorInputs.model_validate_json(read_regular(path))
    except (OSError, ValueError) as error:
        raise JournalError(f"{path} cannot be read", "`swarm-tui integrate` writes it again") from error


def reason_excluded(record: TestRecord) -> str | None:
    """Return why the work on a test is not integrated, or None if it is."""
    if record.state is not State.DONE or not record.is_finished:
        return "its agent was stopped before it finished"
    if record.pulled.errored or record.result is Result.ERROR:
        return record.reason or "its agent failed"
    if not any(change.status == ChangeStatus.SUCCEEDED for change in record.pulled.changes):
        return record.reason or "none of its changes succeeded"
    if record.pulled.passing_before and record.pulled.passing_after is False:
        return "its test passed before and fails now"
    if record.result in (Result.UNRESOLVED, Result.BLOCKED):
        # The claims of the report were checked when it was pulled, and were wrong.
        return record.reason or f"its result is {record.result.value}"
    return None
