"""What agents report: the outcome of one test and the integrator's outcome. Hostile until parsed here."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

OUTCOME_FILE: Final = "testing_agent_outcome.json"
INTEGRATOR_OUTCOME_FILE: Final = "integrator_outcome.json"
OUTCOME_SIZE_LIMIT: Final = 2_000_000


class ChangeKind(StrEnum):
    """The kinds of change an agent may commit; a commit's message begins with its kind in brackets."""

    IMPROVE_TEST = "IMPROVE_TEST"
    FIX_TEST = "FIX_TEST"
    FIX_TUTORIAL = "FIX_TUTORIAL"
    FIX_IMPL = "FIX_IMPL"


class ChangeStatus(StrEnum):
    """How far an agent came with a change. BLOCKED is written by older pipelines only."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    BLOCKED = "BLOCKED"


def _text(value: Any) -> Any:
    return "" if value is None else value


def _upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_text)]


class Reported(BaseModel):
    """Base of everything that agents write: unknown keys are kept, missing ones have defaults."""

    model_config = ConfigDict(frozen=True, extra="allow")


class Change(Reported):
    """One kind of change and what became of it."""

    status: Annotated[ChangeStatus, BeforeValidator(_upper)]
    summary_markdown: Text = ""


class DescribedRun(Reported):
    """One run of the test that the agent describes in its own words."""

    run_name: Text = ""
    description_markdown: Text = ""


class EscalationKind(StrEnum):
    """Why an agent needs somebody else."""

    BLOCKER = "BLOCKER"
    SHARED_PATTERN = "SHARED_PATTERN"
    HARD_TO_USE = "HARD_TO_USE"
    """A block of the tutorial could not be written or tested because of the program's interface."""


class Escalation(Reported):
    """Something that the agent could not or should not solve within its own test."""

    kind: Annotated[EscalationKind, BeforeValidator(_upper)] = EscalationKind.BLOCKER
    title: Text = ""
    detail_markdown: Text = ""


class Outcome(Reported):
    """What the agent of one test reported."""

    changes: dict[ChangeKind, Change] = Field(default_factory=dict)
    errored: bool = False
    tests_passing_before: bool | None = None
    tests_passing_after: bool | None = None
    summary_markdown: Text = ""
    test_runs: tuple[DescribedRun, ...] = ()
    escalations: tuple[Escalation, ...] = ()


class Normalization(Reported):
    """Something that the integrator changed in the same way in several branches."""

    summary_markdown: Text = ""


class LeftOut(Reported):
    """A branch or commit that did not get onto the integrated branch, and why."""

    branch: Text = ""
    commit: Text = ""
    reason: Text = ""


def _left_out(value: Any) -> Any:
    # Older integrators list bare branch names.
    if isinstance(value, list):
        return [{"branch": item} if isinstance(item, str) else item for item in value]
    return value


class IntegratorOutcome(Reported):
    """What the integrator reported about the integrated branch."""

    squashed_branches: tuple[str, ...] = ()
    squashed_commit_hash: str | None = None
    impl_priority: tuple[str, ...] = ()
    impl_commit_hashes: dict[str, str] = Field(default_factory=dict)
    failed: Annotated[tuple[LeftOut, ...], BeforeValidator(_left_out)] = ()
    normalizations: tuple[Normalization, ...] = ()
    escalations: tuple[Escalation, ...] = ()


ReportType = TypeVar("ReportType", bound=Reported)


class BrokenReport(ValueError):
    """A report that cannot be read; its text is the reason that a person sees."""


def parse_outcome(raw: bytes) -> Outcome:
    """Return an agent's outcome; raise BrokenReport with a short reason."""
    return _parse(Outcome, raw)


def parse_integrator_outcome(raw: bytes) -> IntegratorOutcome:
    """Return the integrator's outcome; raise BrokenReport with a short reason."""
    return _parse(IntegratorOutcome, raw)


def _parse(model: type[ReportType], raw: bytes) -> ReportType:
    if len(raw) > OUTCOME_SIZE_LIMIT:
        raise BrokenReport(f"the outcome file has {len(raw):,} bytes; at most {OUTCOME_SIZE_LIMIT:,} are read")
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BrokenReport(f"the outcome file is broken: {place + ': ' if place else ''}{first['msg']}") from error
    except RecursionError as error:
        raise BrokenReport("the outcome file is broken: nested too deeply") from error
