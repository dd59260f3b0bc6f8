"""An agent's report (outcome.json), parsed as hostile input."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

import msgspec
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from swarm_tui.model.pulled import (
    ChangeKind,
    ChangeStatus,
    CommitsElsewhere,
    Escalation,
    EscalationKind,
    Location,
    PulledChange,
    PulledWork,
)
from swarm_tui.model.text import plain, plain_lines

OUTCOME_SIZE_LIMIT: Final = 2_000_000
INTEGRATOR_OUTCOME_SIZE_LIMIT: Final = 32_000_000
"""A report has about 1 kB for each fix, and some sweeps have 10,000 tests."""
LOCATION_LIMIT: Final = 100
_DIGITS_LIMIT: Final = 100
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


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


class ReportBase(BaseModel):
    """Base of everything that agents write. Unknown keys are kept, and missing keys and nulls get defaults."""

    model_config = ConfigDict(frozen=True, extra="allow")

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any) -> Any:
        return _without_nulls(value)


class Change(ReportBase):
    """The status and summary of one kind of change."""

    status: Annotated[ChangeStatus, BeforeValidator(_upper)]
    summary_markdown: Text = ""


class DescribedRun(ReportBase):
    """One run of the test with a description by the agent."""

    run_name: Text = ""
    description_markdown: Text = ""

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        return value if isinstance(value, dict) else {"description_markdown": value}


def _location(value: Any) -> Location:
    """Return a location, which older agents write as `path:line`. Invalid values are dropped."""
    if isinstance(value, str):
        path, _, number = value.rpartition(":")
        return Location(path=path, line=int(number)) if path and _line_of(number) is not None else Location(path=value)
    return (
        Location(path=_words(value.get("path")), line=_line_of(value.get("line")))
        if isinstance(value, dict)
        else Location()
    )


def _line_of(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


def _words(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _escalation(value: Any) -> Escalation:
    """Return an escalation. Invalid fields are dropped, so that they do not invalidate the report."""
    if isinstance(value, Escalation):
        return value
    if isinstance(value, str):
        value = {"description_markdown": value}
    if not isinstance(value, dict):
        return Escalation(title="invalid escalation")
    title, detail = _words(value.get("title")), _words(value.get("detail_markdown"))
    # Newer pipelines of mngr write one text. Its first line is the title.
    description = _words(value.get("description_markdown")).strip()
    if description and not title:
        first, _, rest = description.partition("\n")
        title, detail = first.lstrip("# ").strip(), detail or rest.strip()
    locations = value.get("locations")
    found = map(_location, locations[:LOCATION_LIMIT]) if isinstance(locations, list | tuple) else ()
    return Escalation(
        kind=_words(value.get("kind")).strip().upper() or EscalationKind.BLOCKER.value,
        title=title,
        detail_markdown=detail,
        locations=tuple(location for location in found if location.path),
    )


def _escalation_schema() -> Any:
    _, types = msgspec.json.schema_components((Escalation,))
    types["Escalation"]["properties"]["locations"]["items"] = types["Location"]
    return types["Escalation"]


ReportedEscalation = Annotated[
    Escalation,
    PlainValidator(_escalation),
    PlainSerializer(msgspec.to_builtins),
    WithJsonSchema(_escalation_schema()),
]


def _many(value: Any) -> Any:
    """Return a single value as a list, so that a report is not refused because of it."""
    return value if isinstance(value, list | tuple) else [value]


class AgentReport(ReportBase):
    """An agent's report on its test."""

    changes: dict[ChangeKind, Change] = Field(default_factory=dict)
    unknown_changes: tuple[str, ...] = ()
    """Changes with an unknown kind or status. They are shown and otherwise ignored."""
    errored: bool = False
    tests_passing_before: bool | None = None
    tests_passing_after: bool | None = None
    summary_markdown: Text = ""
    test_runs: Annotated[tuple[DescribedRun, ...], BeforeValidator(_many)] = ()
    escalations: Annotated[tuple[ReportedEscalation, ...], BeforeValidator(_many)] = ()

    @model_validator(mode="before")
    @classmethod
    def _set_unknown_changes_aside(cls, value: Any) -> Any:
        if not isinstance(value, dict) or not isinstance(value.get("changes"), dict):
            return value
        changes, unknown = {}, []
        for kind, change in value["changes"].items():
            status = change.get("status") if isinstance(change, dict) else getattr(change, "status", change)
            if kind in _KINDS and isinstance(status, str) and status.upper() in _STATUSES:
                changes[kind] = change
            else:
                unknown.append(f"{kind} {status}"[:300])
        return {**value, "changes": changes, "unknown_changes": tuple(unknown)} if unknown else value


class Normalization(ReportBase):
    """A change that the integrator applied to several branches."""

    summary_markdown: Text = ""


class LeftOut(ReportBase):
    """A branch or commit that is not on the integrated branch, with the reason."""

    branch: Text = ""
    commit: Text = ""
    reason: Text = ""


def _left_out(value: Any) -> Any:
    # Older integrators list bare branch names.
    if isinstance(value, list):
        return [{"branch": item} if isinstance(item, str) else item for item in value]
    return value


class IntegratorReport(ReportBase):
    """The integrator's report on the integrated branch."""

    squashed_branches: tuple[str, ...] = ()
    squashed_commit_hash: str | None = None
    impl_priority: tuple[str, ...] = ()
    impl_commit_hashes: Annotated[dict[str, str], BeforeValidator(_without_nulls)] = Field(default_factory=dict)
    failed: Annotated[tuple[LeftOut, ...], BeforeValidator(_left_out)] = ()
    normalizations: tuple[Normalization, ...] = ()
    escalations: Annotated[tuple[ReportedEscalation, ...], BeforeValidator(_many)] = ()


ReportType = TypeVar("ReportType", bound=ReportBase)


class InvalidReport(ValueError):
    """A report is invalid. The text of the error is shown to the user."""


def parse_report(raw: bytes) -> AgentReport:
    """Return an agent's report. Raise BrokenReport with a short reason if it is invalid."""
    return _parse(AgentReport, raw, OUTCOME_SIZE_LIMIT)


def parse_integrator_report(raw: bytes) -> IntegratorReport:
    """Return the integrator's report. Raise BrokenReport with a short reason if it is invalid."""
    return _parse(IntegratorReport, raw, INTEGRATOR_OUTCOME_SIZE_LIMIT)


def parse_agents_integration(raw: bytes) -> IntegratorReport:
    """Return the report of an integrating agent, without measurements, which only swarm-tui may write."""
    outcome = parse_integrator_report(raw)
    return IntegratorReport(**{name: getattr(outcome, name) for name in IntegratorReport.model_fields})


def _parse(model: type[ReportType], raw: bytes, limit: int) -> ReportType:
    if len(raw) > limit:
        raise InvalidReport(f"the report is larger than {limit:,} bytes")
    try:
        try:
            return model.model_validate_json(raw)
        except ValidationError as error:
            if error.errors(include_url=False, include_input=False)[0]["type"] != "json_invalid":
                raise
            return model.model_validate(_read_leniently(raw, error))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InvalidReport(f"invalid report: {first['msg']}{f' (in {place})' if place else ''}") from error
    except RecursionError as error:
        raise InvalidReport("invalid report: nested too deeply") from error


def _read_leniently(raw: bytes, error: ValidationError) -> Any:
    """Return the value of JSON that only Python's parser accepts. Raise the given error for other text.

    A lone surrogate, a byte that is not UTF-8 or a number with thousands of digits affects only its own value.
    """
    try:
        value = json.loads(raw.decode("utf-8-sig", "replace"), parse_int=_bounded_int)
    except ValueError:
        raise error from None
    return _without_surrogates(value)


def _bounded_int(digits: str) -> int | None:
    return int(digits) if len(digits) <= _DIGITS_LIMIT else None


def _without_surrogates(value: Any) -> Any:
    match value:
        case str():
            return _SURROGATE.sub("\ufffd", value)
        case list():
            return [_without_surrogates(each) for each in value]
        case dict():
            return {_without_surrogates(name): _without_surrogates(each) for name, each in value.items()}
    return value


_TEXT_LIMIT: Final = 8_000
_ESCALATION_LIMIT: Final = 20
_LOCATION_LIMIT: Final = 20


def report_of(
    outcome: AgentReport,
    commit_of: Mapping[ChangeKind | None, str],
    *,
    end: str,
    tip: str,
    has_uncommitted: bool,
    weaker: str = "",
    used_branch: str = "",
    elsewhere: tuple[CommitsElsewhere, ...] = (),
    copy_problem: str = "",
) -> PulledWork:
    """Return the pulled work for an agent's report, with texts truncated and safe to print.

    `commit_of` maps each kind of change to its commit.
    """
    return PulledWork(
        end=end,
        summary=_clipped(outcome.summary_markdown),
        passing_before=outcome.tests_passing_before,
        passing_after=outcome.tests_passing_after,
        errored=outcome.errored,
        changes=tuple(
            PulledChange(
                kind=kind.value,
                status=change.status.value,
                summary=_clipped(change.summary_markdown),
                commit=commit_of.get(kind, ""),
            )
            for kind, change in outcome.changes.items()
        ),
        escalations=tuple(
            Escalation(
                kind=plain(escalation.kind, 60),
                title=plain(escalation.title, 300),
                detail_markdown=_clipped(escalation.detail_markdown),
                locations=tuple(
                    Location(path=plain(each.path, 300), line=each.line)
                    for each in escalation.locations[:_LOCATION_LIMIT]
                ),
            )
            for escalation in outcome.escalations[:_ESCALATION_LIMIT]
        ),
        tip=tip,
        has_uncommitted=has_uncommitted,
        weaker=weaker,
        used_branch=used_branch,
        elsewhere=elsewhere,
        copy_problem=copy_problem,
    )


def _clipped(text: str) -> str:
    return plain_lines(text[:_TEXT_LIMIT])
