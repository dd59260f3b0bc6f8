"""Snapshots: the folded state, kept beside the journal, so that a long sweep opens without reading every event.

A snapshot is only a cache: it holds an offset in the journal and a digest of the bytes before it, and is ignored when
they do not match.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from swarm_tui.errors import JournalError
from swarm_tui.journal.fold import SweepState
from swarm_tui.journal.folder import write_beside
from swarm_tui.model.alarm import PatternAlarm
from swarm_tui.model.asks import Ask, OpenAsk
from swarm_tui.model.baseline import Baseline
from swarm_tui.model.budget import Budget
from swarm_tui.model.edits import FileEdit
from swarm_tui.model.failure import FailureDetail
from swarm_tui.model.harvest import HarvestReport
from swarm_tui.model.hosts import HostState
from swarm_tui.model.model_access import ModelAccess
from swarm_tui.model.rules import AnswerRule
from swarm_tui.model.spending import ModelTokens, restored_spending
from swarm_tui.model.state import Integration, LogLine, TestRecord, Try
from swarm_tui.model.states import Result, State
from swarm_tui.model.trouble import Dial, Trouble

SNAPSHOT_VERSION: Final = 3
_DIGESTED: Final = 4096
_PLAIN_FIELDS: Final = (
    "slots",
    "is_held",
    "started_at",
    "ended_at",
    "ended_why",
    "ended_reason",
    "engine_machine",
    "last_seq",
    "last_at",
    "unknown_events",
    "stale_reason",
    "rules_made",
)


def write_snapshot(path: Path, journal: Path, offset: int, state: SweepState) -> None:
    """Write the state after the first `offset` bytes of the journal."""
    content = {
        "version": SNAPSHOT_VERSION,
        "fields": list(TestRecord._fields),
        "offset": offset,
        "digest": _digest(journal, offset),
        "state": {name: getattr(state, name) for name in _PLAIN_FIELDS},
        "budget": state.budget,
        "alarms": list(state.alarms.values()),
        "spending": state.spending,
        "integration": asdict(state.integration),
        "access": asdict(state.access),
        "log": [[line.at, line.level, line.text, line.test] for line in state.log],
        "records": [_plain_record(record) for record in state.tests()],
        "hosts": [asdict(host) for host in state.hosts.values()],
        "integrator": _plain_record(state.integrator) if state.integrator is not None else None,
        "rules": [rule.model_dump() for rule in state.rules.values()],
        "rule_uses": state.rule_uses,
    }
    write_beside(path, json.dumps(content, separators=(",", ":")).encode())


def read_snapshot(path: Path, journal: Path) -> tuple[SweepState, int]:
    """Return the state of a snapshot and its offset in the journal; a new state and 0 when none matches."""
    try:
        content = json.loads(path.read_bytes())
        offset = content["offset"]
        if (
            content["version"] != SNAPSHOT_VERSION
            or content["fields"] != list(TestRecord._fields)
            or content["digest"] != _digest(journal, offset)
        ):
            return SweepState(), 0
        return _restore(content), offset
    except (OSError, ValueError, KeyError, TypeError, IndexError, JournalError):
        # No error: the journal itself will be read.
        return SweepState(), 0


def _restore(content: dict[str, Any]) -> SweepState:
    state = SweepState()
    for name in _PLAIN_FIELDS:
        setattr(state, name, content["state"][name])
    alarms = [PatternAlarm(*values) for values in content["alarms"]]
    state.alarms = {each.cause: each._replace(tests=tuple(each.tests), held=tuple(each.held)) for each in alarms}
    state.budget, state.spending = Budget(*content["budget"]), restored_spending(content["spending"])
    state.integration = Integration(**content["integration"])
    state.access = ModelAccess(**content["access"] | {"dial": Dial(**content["access"]["dial"])})
    state.log.extend(LogLine(*line) for line in content["log"])
    state.records = {record.test: record for record in map(_restored_record, content["records"])}
    # A snapshot of an older version has no record of the integrator, nor has its journal.
    integrator = content.get("integrator")
    state.integrator = _restored_record(integrator) if integrator is not None else None
    state.hosts = {host["name"]: HostState(**host) for host in content.get("hosts", ())}
    state.rules = {rule.id: rule for rule in map(AnswerRule.model_validate, content["rules"])}
    state.rule_uses = Counter(content["rule_uses"])
    state.counts = Counter(record.mark for record in state.tests())
    return state


def _plain_record(record: TestRecord) -> TestRecord:
    return record._replace(
        harvest=record.harvest.model_dump(exclude_defaults=True),  # type: ignore[arg-type]
        tries=tuple(_plain_try(made) for made in record.tries),
        trouble=record.trouble.model_dump(mode="json") if record.trouble is not None else None,  # type: ignore[arg-type]
        asks=tuple((asked.ask.model_dump(), *asked[1:]) for asked in record.asks),  # type: ignore[misc]
    )


def _plain_try(made: Try) -> Try:
    if made.detail is None:
        return made
    return made._replace(detail=made.detail.model_dump(exclude_defaults=True))  # type: ignore[arg-type]


def _restored_try(values: Sequence[Any]) -> Try:
    made = Try(*values)
    return made if made.detail is None else made._replace(detail=FailureDetail.model_validate(made.detail))


def _restored_record(values: list[Any]) -> TestRecord:
    record = TestRecord._make(values)
    return record._replace(
        state=State(record.state),
        result=Result(record.result) if record.result else None,
        tries=tuple(_restored_try(made) for made in record.tries),
        traits=tuple(record.traits),
        edits=tuple(map(FileEdit._make, record.edits)),
        baseline=Baseline(record.baseline),
        foreign_imports=tuple(record.foreign_imports),
        options=tuple(record.options),
        harvest=HarvestReport.model_validate(record.harvest),
        spent_before=restored_spending(record.spent_before),
        models=tuple(ModelTokens(*each) for each in record.models),
        trouble=Trouble.model_validate(record.trouble) if record.trouble is not None else None,
        asks=tuple(OpenAsk._make((Ask.model_validate(ask), *more)) for ask, *more in record.asks),
    )


def _digest(journal: Path, offset: int) -> str:
    with open(journal, "rb") as file:
        start = max(0, offset - _DIGESTED)
        file.seek(start)
        block = file.read(offset - start)
    if len(block) != offset - start:
        return ""
    return hashlib.sha256(str(offset).encode() + block).hexdigest()
