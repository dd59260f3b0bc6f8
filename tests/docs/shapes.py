"""The page of all JSON, and its schemas, made from the models."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter

from swarm_tui.model import shapes
from swarm_tui.model.events import KnownEvent
from swarm_tui.model.harvest import HarvestReport
from swarm_tui.model.outcome import IntegratorOutcome, Outcome
from swarm_tui.model.requests import Request
from swarm_tui.model.sweep import FORMAT_VERSION, SweepSpec
from swarm_tui.model.verdicts import VerdictLine
from tests.docs import table


class Shape(NamedTuple):
    """One thing that is written or read as JSON."""

    name: str
    type: Any
    where: str
    version: int


_SHOWN, _KEPT = shapes.SHAPES_VERSION, FORMAT_VERSION
SHAPES: Final = (
    Shape("status", shapes.ShownSweep, "`status --json`; `run`, `resume` and `demo --json` at their end", _SHOWN),
    Shape("list", list[shapes.ListedSweep], "`list --json`", _SHOWN),
    Shape("compare", shapes.ShownComparison, "`compare --json`", _SHOWN),
    Shape("pending", shapes.ShownInbox, "`pending --json`", _SHOWN),
    Shape("fixes", shapes.ShownReview, "`fixes --json`", _SHOWN),
    Shape("report", shapes.ShownPage, "`report --json`", _SHOWN),
    Shape("doctor", shapes.ShownChecks, "`doctor --json`, `hosts check --json`", _SHOWN),
    Shape("hosts", list[shapes.ShownMachine], "`hosts list --json`", _SHOWN),
    Shape("notice", shapes.ShownNotice, "what `[notify]` hands to a command or a webhook", _SHOWN),
    Shape("event", KnownEvent, "a line of `events.jsonl` and of `events --json`", _KEPT),
    Shape("request", Request, "a line of `requests.jsonl`", _KEPT),
    Shape("sweep", SweepSpec, "`sweep.json` of a sweep", _KEPT),
    Shape("harvest", HarvestReport, "what a harvested test came to, in its event", _KEPT),
    Shape("verdict", VerdictLine, "a line of the file of verdicts", _KEPT),
    Shape("outcome", Outcome, "`testing_agent_outcome.json`, which an agent hands in: [agents](agents.md)", _KEPT),
    Shape("integrator-outcome", IntegratorOutcome, "`integrator_outcome.json`", _KEPT),
)


def schemas() -> dict[str, str]:
    """Return the JSON Schema of each shape, by its name."""
    return {shape.name: json.dumps(_schema(shape), indent=1, ensure_ascii=False) + "\n" for shape in SHAPES}


def _schema(shape: Shape) -> dict[str, Any]:
    made: dict[str, Any] = TypeAdapter(shape.type).json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"swarm-tui/{shape.version}/{shape.name}",
        **made,
    }


def json_page() -> str:
    """Return the page as Markdown."""
    rows = ((f"[{shape.name}](schemas/{shape.name}.json)", str(shape.version), shape.where) for shape in SHAPES)
    lines = [
        "# JSON",
        "",
        "Each has a JSON Schema and a version. Within a version keys are only added, so pass over those that you do",
        "not know; what an earlier version wrote is read for ever. Times are seconds since 1970.",
        "",
        *table(("schema", "version", "where"), rows),
        "",
        "## A sweep's folder",
        "",
        "`.swarm/runs/<sweep>/` of the repository. Everything there is appended to or replaced as a whole.",
        "",
        *table(("file", "what it has"), _FILES),
        "",
        "## Events",
        "",
        "Every line of `events.jsonl` has `seq`, `at`, `type`, and what its type adds.",
        "",
        *table(("type", "meaning"), _events()),
    ]
    return "\n".join(lines) + "\n"


_FILES: Final = (
    ("`sweep.json`", "what the sweep was started with, and its tests"),
    ("`events.jsonl`", "all that has happened; everything else is computed from it"),
    ("`requests.jsonl`", "what people asked of the engine"),
    ("`engine.log`", "what the engine printed"),
    ("`agents/<agent>/`", "what an agent got and handed in"),
    ("`report/`", "the page of the sweep, once it was made"),
)


def _events() -> list[tuple[str, str]]:
    union: Any = KnownEvent
    kinds = union.__origin__.__args__
    return [(f"`{kind.model_fields['type'].default}`", " ".join((kind.__doc__ or "").split())) for kind in kinds]
