"""The page of all JSON and the schemas, generated from the models."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

import msgspec
from pydantic import TypeAdapter

from swarm_tui.journal.decode import KNOWN_EVENTS, AnyEvent
from swarm_tui.journal.requests import Request
from swarm_tui.model import shapes
from swarm_tui.model.pulled import PulledWork
from swarm_tui.model.report import AgentReport, IntegratorReport
from swarm_tui.model.spec import FORMAT_VERSION, SweepSpec
from swarm_tui.review.verdicts import VerdictLine
from tests.docs import table


class Shape(NamedTuple):
    """A type that is written or read as JSON."""

    name: str
    type: Any
    where: str
    version: int


_SHOWN, _KEPT = shapes.SHAPES_VERSION, FORMAT_VERSION
SHAPES: Final = (
    Shape("status", shapes.SweepJson, "`status --json`; final state of `run`, `resume` and `demo --json`", _SHOWN),
    Shape("list", list[shapes.ListedSweepJson], "`list --json`", _SHOWN),
    Shape("compare", shapes.ComparisonJson, "`compare --json`", _SHOWN),
    Shape("pending", shapes.InboxJson, "`pending --json`", _SHOWN),
    Shape("fixes", shapes.ReviewJson, "`fixes --json`", _SHOWN),
    Shape("report", shapes.PageJson, "`report --json`", _SHOWN),
    Shape("doctor", shapes.ChecksJson, "`doctor --json`, `hosts check --json`", _SHOWN),
    Shape("hosts", list[shapes.MngrHostJson], "`hosts list --json`", _SHOWN),
    Shape("notification", shapes.NotificationJson, "notification for a command or a webhook of `[notify]`", _SHOWN),
    Shape("event", AnyEvent, "a line of `events.jsonl` and of `events --json`", _KEPT),
    Shape("request", Request, "a line of `requests.jsonl`", _KEPT),
    Shape("sweep", SweepSpec, "`sweep.json` of a sweep", _KEPT),
    Shape("pulled", PulledWork, "result of a pulled test, in its event", _KEPT),
    Shape("verdict", VerdictLine, "a line of the file of verdicts", _KEPT),
    Shape("outcome", AgentReport, "`testing_agent_outcome.json`, the report of an agent ([agents](agents.md))", _KEPT),
    Shape("integrator-outcome", IntegratorReport, "`integrator_outcome.json`", _KEPT),
)


def schemas() -> dict[str, str]:
    """Return the JSON Schema of each shape, by its name."""
    return {shape.name: json.dumps(_schema(shape), indent=1, ensure_ascii=False) + "\n" for shape in SHAPES}


def _schema(shape: Shape) -> dict[str, Any]:
    is_read_by_msgspec = shape.name in ("event", "request", "sweep", "pulled")
    schema = msgspec.json.schema(shape.type) if is_read_by_msgspec else TypeAdapter(shape.type).json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"swarm-tui/{shape.version}/{shape.name}",
        **schema,
    }


def json_page() -> str:
    """Return the page as Markdown."""
    rows = ((f"[{shape.name}](schemas/{shape.name}.json)", str(shape.version), shape.where) for shape in SHAPES)
    lines = [
        "# JSON",
        "",
        "Each type has a JSON Schema and a version. New keys do not change the version, so ignore unknown keys.",
        "swarm-tui refuses sweeps of earlier versions. Times are seconds since 1970.",
        "",
        *table(("schema", "version", "where"), rows),
        "",
        "## A sweep's folder",
        "",
        "`.swarm/runs/<sweep>/` of the repository. Files are only appended to or replaced as a whole.",
        "",
        *table(("file", "content"), _FILES),
        "",
        "## Events",
        "",
        "Each line of `events.jsonl` has `seq`, `at`, `type` and the fields of its type.",
        "",
        *table(("type", "meaning"), _events()),
    ]
    return "\n".join(lines) + "\n"


_FILES: Final = (
    ("`sweep.json`", "the options of the sweep, and its tests"),
    ("`events.jsonl`", "the events; the state of the sweep is computed from them"),
    ("`requests.jsonl`", "requests to the engine"),
    ("`engine.log`", "output of the engine"),
    ("`agents/<agent>/`", "input and submitted work of an agent"),
    ("`report/`", "the page of the sweep, if written"),
)


def _events() -> list[tuple[str, str]]:
    return [(f"`{kind.__struct_config__.tag}`", " ".join((kind.__doc__ or "").split())) for kind in KNOWN_EVENTS]
