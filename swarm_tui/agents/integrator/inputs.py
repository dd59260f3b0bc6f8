"""The inputs of an integrator: the sweep's branches, what their agents reported, and how tests are run."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from swarm_tui.errors import JournalError
from swarm_tui.model.limits import NO_LIMITS, RunLimits
from swarm_tui.model.outcome import ChangeStatus
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import Result, State
from swarm_tui.regular_file import read_regular
from swarm_tui.testing.settings import TestSettings

INPUTS_FILE: Final = "inputs.json"


class Frozen(BaseModel):
    """Base of what is handed to an integrator as JSON."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class BranchInput(Frozen):
    """One branch to integrate, and what its agent reported about it."""

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
    """Its last commit before a fix was sent back to its agent; fixes that came later belong to the last one before."""


class TestInput(Frozen):
    """One test of the sweep as its agent left it."""

    __test__ = False

    test: str
    argument: str = ""
    """The argument of pytest that selects the test, where that is not its node id; else empty."""
    file: str = ""
    result: str = ""
    reason: str = ""
    has_foreign_imports: bool = False


class ExcludedBranch(Frozen):
    """A branch with commits that is not integrated, and why."""

    branch: str
    reason: str


class PersonInput(Frozen):
    """Who commits."""

    name: str
    email: str


class IntegratorInputs(Frozen):
    """The content of the inputs file."""

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
    """Where pytest is run, from the top of a copy."""
    import_roots: tuple[str, ...] = (".",)
    """Folders within a copy of the repository that come first on PYTHONPATH."""
    pytest_options: tuple[str, ...] = ()
    setup: str = ""
    fill: tuple[str, ...] = ()
    """Shell commands that bring into a copy what git leaves out."""
    limits: RunLimits = NO_LIMITS
    measure_seconds: float = 600.0
    """How long measuring the effects may take altogether; 0 measures nothing."""
    cache: str = ""
    """The folder in which outcomes of tests are cached; they are not when it is empty."""

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
    """Return why the work on a test is not integrated, or None when it is."""
    if record.state is not State.DONE or not record.is_finished:
        return "its agent was stopped before its end"
    if record.harvest.errored or record.result is Result.FAILED:
        return record.reason or "its agent failed"
    if not any(change.status == ChangeStatus.SUCCEEDED for change in record.harvest.changes):
        return record.reason or "none of its changes succeeded"
    if record.harvest.passing_before and record.harvest.passing_after is False:
        return "its test passed before and fails after it"
    if record.result in (Result.UNRESOLVED, Result.BLOCKED):
        # What the outcome claims was checked at harvest, and did not hold.
        return record.reason or f"it ended as {record.result.value}"
    return None
