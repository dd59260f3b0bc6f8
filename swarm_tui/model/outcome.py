"""What agents report: the outcome of one test and the integrator's outcome. Hostile until parsed here."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

OUTCOME_FILE: Final = "testing_agent_outcome.json"
INTEGRATOR_OUTCOME_FILE: Final = "integrator_outcome.json"
OUTCOME_SIZE_LIMIT: Final = 2_000_000
LOCATION_LIMIT: Final = 100


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


_KINDS: Final = frozenset(ChangeKind)
_STATUSES: Final = frozenset(ChangeStatus)


def _text(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, default=str, ensure_ascii=False)


def _without_nulls(value: Any) -> Any:
    return {name: each for name, each in value.items() if each is not None} if isinstance(value, dict) else value


def _upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_text)]


class Reported(BaseModel):
    """Base of everything that agents write: unknown keys are kept, missing ones and nulls have defaults."""

    model_config = ConfigDict(frozen=True, extra="allow")

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any) -> Any:
        return _without_nulls(value)


class Change(Reported):
    """One kind of change and what became of it."""

    status: Annotated[ChangeStatus, BeforeValidator(_upper)]
    summary_markdown: Text = ""


class DescribedRun(Reported):
    """One run of the test that the agent describes in its own words."""

    run_name: Text = ""
    description_markdown: Text = ""

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        return value if isinstance(value, dict) else {"description_markdown": value}


class EscalationKind(StrEnum):
    """The words that agents are asked to use for why they need somebody else; others are shown as they are."""

    UNCAUGHT_BUG = "UNCAUGHT_BUG"
    """The program is wrong where no test fails."""
    FIX_DIRECTION_AMBIGUOUS = "FIX_DIRECTION_AMBIGUOUS"
    """Test and program disagree, and nothing says which of them is right."""
    HARNESS_DEFECT = "HARNESS_DEFECT"
    """What tests share is broken or missing."""
    SUITE_DUPLICATION = "SUITE_DUPLICATION"
    """Several tests want the same change in one place."""
    HARD_TO_USE = "HARD_TO_USE"
    """A block of the tutorial could not be written or tested because of the program's interface."""
    BLOCKER = "BLOCKER"
    """An older word: the agent cannot go on."""
    SHARED_PATTERN = "SHARED_PATTERN"
    """An older word for SUITE_DUPLICATION."""


BLOCKING_KINDS: Final = frozenset({EscalationKind.HARNESS_DEFECT, EscalationKind.BLOCKER})
"""What keeps an agent from its work."""


class Location(Reported):
    """A place in the repository that an escalation speaks of."""

    path: Text = ""
    line: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        if isinstance(value, str):
            path, _, number = value.rpartition(":")
            return {"path": path, "line": int(number)} if path and _line_of(number) is not None else {"path": value}
        if not isinstance(value, dict):
            return {}
        return {**value, "path": _words(value.get("path")), "line": _line_of(value.get("line"))}

    def __str__(self) -> str:
        return self.path if self.line is None else f"{self.path}:{self.line}"


def _line_of(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


def _words(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _locations(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return ()
    found = (Location.model_validate(each) for each in value[:LOCATION_LIMIT])
    return tuple(location for location in found if location.path)


class Escalation(Reported):
    """Something that the agent could not or should not solve within its own test.

    Whatever is wrong with one, the rest of the outcome counts: what cannot be read of it is left out.
    """

    kind: str = EscalationKind.BLOCKER
    title: Text = ""
    detail_markdown: Text = ""
    locations: Annotated[tuple[Location, ...], BeforeValidator(_locations)] = ()

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = {"description_markdown": value}
        if not isinstance(value, dict):
            return {"title": "an escalation that cannot be read"}
        known = dict(value)
        known["kind"] = _words(value.get("kind")).strip().upper() or EscalationKind.BLOCKER.value
        known["title"], known["detail_markdown"] = _words(value.get("title")), _words(value.get("detail_markdown"))
        # Since its kinds name the work, the pipeline of mngr writes one text, whose first line is the title.
        description = _words(known.pop("description_markdown", None)).strip()
        if description and not known["title"]:
            first, _, rest = description.partition("\n")
            known["title"] = first.lstrip("# ").strip()
            known["detail_markdown"] = known["detail_markdown"] or rest.strip()
        return known

    @property
    def kind_in_words(self) -> str:
        """The kind as people read it, such as "uncaught bug"."""
        return self.kind.replace("_", " ").lower()


def _many(value: Any) -> Any:
    """Return what should be a list as one: what agents say beside their result is never a reason to refuse that."""
    return value if isinstance(value, list | tuple) else [value]


class Outcome(Reported):
    """What the agent of one test reported."""

    changes: dict[ChangeKind, Change] = Field(default_factory=dict)
    unknown_changes: tuple[str, ...] = ()
    """Changes of a kind or status that we do not know, in its words: they count for nothing, and are said."""
    errored: bool = False
    tests_passing_before: bool | None = None
    tests_passing_after: bool | None = None
    summary_markdown: Text = ""
    test_runs: Annotated[tuple[DescribedRun, ...], BeforeValidator(_many)] = ()
    escalations: Annotated[tuple[Escalation, ...], BeforeValidator(_many)] = ()

    @model_validator(mode="before")
    @classmethod
    def _set_unknown_changes_aside(cls, value: Any) -> Any:
        if not isinstance(value, dict) or not isinstance(value.get("changes"), dict):
            return value
        known, unknown = {}, []
        for kind, change in value["changes"].items():
            status = change.get("status") if isinstance(change, dict) else getattr(change, "status", change)
            if kind in _KINDS and isinstance(status, str) and status.upper() in _STATUSES:
                known[kind] = change
            else:
                unknown.append(f"{kind} {status}"[:300])
        return {**value, "changes": known, "unknown_changes": tuple(unknown)} if unknown else value


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
    impl_commit_hashes: Annotated[dict[str, str], BeforeValidator(_without_nulls)] = Field(default_factory=dict)
    failed: Annotated[tuple[LeftOut, ...], BeforeValidator(_left_out)] = ()
    normalizations: tuple[Normalization, ...] = ()
    escalations: Annotated[tuple[Escalation, ...], BeforeValidator(_many)] = ()


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
