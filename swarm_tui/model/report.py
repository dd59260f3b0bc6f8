"""An agent's report (outcome.json), parsed as hostile input (pydantic)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain, plain_lines

OUTCOME_FILE: Final = "testing_agent_outcome.json"
INTEGRATOR_OUTCOME_FILE: Final = "integrator_outcome.json"
OUTCOME_SIZE_LIMIT: Final = 2_000_000
INTEGRATOR_OUTCOME_SIZE_LIMIT: Final = 32_000_000
"""A report has about 1 kB for each fix, and some sweeps have 10,000 tests."""
LOCATION_LIMIT: Final = 100
_DIGITS_LIMIT: Final = 100
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class ChangeKind(StrEnum):
    """The kind of a change, which is the prefix of its commit message in brackets."""

    IMPROVE_TEST = "IMPROVE_TEST"
    FIX_TEST = "FIX_TEST"
    FIX_TUTORIAL = "FIX_TUTORIAL"
    FIX_IMPL = "FIX_IMPL"


class ChangeStatus(StrEnum):
    """The status of a change. Only older pipelines write BLOCKED."""

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


class EscalationKind(StrEnum):
    """The kinds of escalation that agents are asked to use. Other kinds are shown unchanged."""

    UNCAUGHT_BUG = "UNCAUGHT_BUG"
    """The program has a bug that no test detects."""
    FIX_DIRECTION_AMBIGUOUS = "FIX_DIRECTION_AMBIGUOUS"
    """Test and program disagree, and it is unclear which one is right."""
    HARNESS_DEFECT = "HARNESS_DEFECT"
    """Shared test code or infrastructure is broken or missing."""
    SUITE_DUPLICATION = "SUITE_DUPLICATION"
    """Several tests need the same change in shared code."""
    HARD_TO_USE = "HARD_TO_USE"
    """A block of the tutorial could not be written or tested because of the program's interface."""
    UNFINISHED_BLOCK = "UNFINISHED_BLOCK"
    """A block of the tutorial was not finished, and the agent gave no reason. Only swarm-tui reports this kind."""
    BLOCKER = "BLOCKER"
    """Older kind: the agent cannot continue."""
    SHARED_PATTERN = "SHARED_PATTERN"
    """Older name of SUITE_DUPLICATION."""


BLOCKING_KINDS: Final = frozenset({EscalationKind.HARNESS_DEFECT, EscalationKind.BLOCKER})
"""Kinds that give a test the result blocked."""


class Location(ReportBase):
    """A file and line in the repository that an escalation refers to."""

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


class Escalation(ReportBase):
    """A problem that the agent could not or should not solve within its test.

    Invalid fields are dropped, so that one invalid escalation does not invalidate the report.
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
            return {"title": "invalid escalation"}
        fields = dict(value)
        fields["kind"] = _words(value.get("kind")).strip().upper() or EscalationKind.BLOCKER.value
        fields["title"], fields["detail_markdown"] = _words(value.get("title")), _words(value.get("detail_markdown"))
        # Newer pipelines of mngr write one text. Its first line is the title.
        description = _words(fields.pop("description_markdown", None)).strip()
        if description and not fields["title"]:
            first, _, rest = description.partition("\n")
            fields["title"] = first.lstrip("# ").strip()
            fields["detail_markdown"] = fields["detail_markdown"] or rest.strip()
        return fields

    @property
    def kind_in_words(self) -> str:
        """The kind in lower case with spaces, such as "uncaught bug"."""
        return self.kind.replace("_", " ").lower()


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
    escalations: Annotated[tuple[Escalation, ...], BeforeValidator(_many)] = ()

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
    escalations: Annotated[tuple[Escalation, ...], BeforeValidator(_many)] = ()


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


_MARKS: Final = re.compile(r"\s*((?:\[[A-Za-z_/ ]+\]\s*)+)")
_MARK: Final = re.compile(r"\[([A-Za-z_/ ]+)\]")


def kinds_of(message: str) -> tuple[ChangeKind, ...]:
    """Return the kinds of change in the prefixes of a commit message."""
    marks = _MARKS.match(message)
    words = [word.strip().upper() for word in _MARK.findall(marks[1])] if marks else []
    return tuple(ChangeKind(word) for word in dict.fromkeys(words) if word in ChangeKind.__members__)


def without_marks(subject: str) -> str:
    marks = _MARKS.match(subject)
    return (subject[marks.end() :] if marks else subject).strip()


_TEXT_LIMIT: Final = 8_000
_ESCALATION_LIMIT: Final = 20
_LOCATION_LIMIT: Final = 20


class PulledChange(BaseModel):
    """One change of an agent's report, as stored in the journal."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: str
    status: str
    summary: str = ""
    commit: str = ""


class CommitsElsewhere(BaseModel):
    """Commits in an agent's copy that are not on its branch."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    where: str
    """Such as "the branch elsewhere", "a detached HEAD" or "a stash"."""
    tip: str = ""
    ref: str = ""
    """The ref in the user's repository that points to them until `swarm-tui clean`."""
    commits: int = 0
    problem: str = ""
    """Why they could not be fetched."""

    @property
    def words(self) -> str:
        """Return a sentence on where the commits are now."""
        if self.problem:
            return f"the agent left commits on {self.where} that cannot be fetched: {self.problem}"
        return f"the agent left {counted(self.commits, 'commit')} on {self.where}, kept as {self.ref}"


class ClaimCheck(BaseModel):
    """The result that an agent claims, and the verdict of swarm-tui's own runs of the test."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    claim: str
    """The claimed result."""
    verdict: Literal["pending", "confirmed", "flaky", "refuted", "impossible", "unmeasured"] = "pending"
    """impossible: the test could not be run; `resume` tries again. unmeasured: a run proves nothing, such as after a
    change of conftest.py."""
    claim_reason: str = ""
    """A note on the test that is shown if the claim is confirmed."""
    runs: tuple[str, ...] = ()
    """The outcomes of our runs on the submitted commit: passed, failed, skipped, or missing."""

    @property
    def words(self) -> str:
        """Return the outcomes of the runs and the verdict, such as "failed, passed (flaky)"."""
        if self.is_open:
            return "not run yet" if self.verdict == "pending" else "could not be run"
        return f"{', '.join(self.runs)} ({self.verdict})"

    @property
    def is_open(self) -> bool:
        """Whether the test still has to be run, now or by `resume`."""
        return self.verdict in ("pending", "impossible")


class PulledWork(BaseModel):
    """The agent's report, truncated and safe to print, with the state of its copy."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    end: str = "archive"
    """How the agent finished: with an archive of its work, or otherwise (timeout, crash, gone, ...)."""
    summary: str = ""
    passing_before: bool | None = None
    passing_after: bool | None = None
    errored: bool = False
    changes: tuple[PulledChange, ...] = ()
    escalations: tuple[Escalation, ...] = ()
    tip: str = ""
    """The agent's last commit, fetched to refs/swarm/<sweep>/<last part of the branch>; empty without commits."""
    has_uncommitted: bool = False
    weaker: str = ""
    """How the agent's test became weaker, according to its source."""
    used_branch: str = ""
    """Another branch that was pulled because the agent's branch had no commits."""
    elsewhere: tuple[CommitsElsewhere, ...] = ()
    copy_problem: str = ""
    """Why commits of the agent may be lost, such as a deleted `.git`."""
    check: ClaimCheck | None = None
    """None if the result does not say that the test passes, and with `--no-verify`."""


NOT_PULLED: Final = PulledWork(end="")
"""The value in the record of a test whose agent's work has not been pulled."""


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
