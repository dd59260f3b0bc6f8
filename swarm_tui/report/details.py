"""Everything about one test."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from swarm_tui.agents.contract import BUNDLE_FILE, PACKED_OUTPUT_FOLDER
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.pulled_files import PulledFile, list_files, read_end, read_start
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.commits import visible
from swarm_tui.model.formatting import counted
from swarm_tui.model.masking import mask_pieces, mask_secrets, safe_decoded, safe_line, safe_lines
from swarm_tui.model.pulled import OUTCOME_FILE
from swarm_tui.model.report import OUTCOME_SIZE_LIMIT, AgentReport, InvalidReport, parse_report
from swarm_tui.money.events import Spending
from swarm_tui.report.integrated import DIFF_SIZE_LIMIT, CommitDiffs
from swarm_tui.transcripts.cast import BadRecording, Recording, parse_size
from swarm_tui.transcripts.entries import Entry, parse_record
from swarm_tui.transcripts.locate import PULLED_TRANSCRIPT, SCREEN_NAME

EVENTS_LIMIT: Final = 100_000
CAST_SIZE_LIMIT: Final = 8_000_000


class Cast(NamedTuple):
    """A recording for the player of the page."""

    columns: int
    rows: int
    seconds: float
    text: str
    """asciicast v2 with only output and resize events."""
    note: str
    """A note if the recording was cut or damaged, or ""."""


class _Event(NamedTuple):
    at: float
    kind: str
    data: str


def read_recording(path: Path) -> Cast:
    """Return a recording without its input, which may contain passwords."""
    recording = Recording(path)
    try:
        events, is_whole = _events(recording)
        if not any(event.kind == "o" for event in events):
            raise BadRecording(f"{path.name} has no output")
        note = "" if is_whole else "only its beginning is here: it is too large"
        if recording.broken_lines and is_whole:
            note = f"cut or damaged: {counted(recording.broken_lines, 'line')} left out"
        columns, rows = int(recording.columns), int(recording.rows)
    finally:
        recording.close()
    return Cast(columns, rows, round(events[-1].at, 3), "\n".join(_lines(columns, rows, events)) + "\n", note)


def _events(recording: Recording) -> tuple[list[_Event], bool]:
    """Return the output and resize events up to the size limit, and whether they are complete."""
    events: list[_Event] = []
    bytes_left = CAST_SIZE_LIMIT
    for index, at in enumerate(recording.times):
        kind, data = recording.event(index)
        if kind == "r":
            data = _bounded_size(data)
        elif kind != "o":
            continue
        bytes_left -= len(data)
        if bytes_left < 0 or len(events) >= EVENTS_LIMIT:
            return events, False
        events.append(_Event(at, kind, data))
    return events, True


def _bounded_size(data: str) -> str:
    rows, columns = parse_size(data) or (24, 80)
    return f"{columns}x{rows}"


def _lines(columns: int, rows: int, events: Sequence[_Event]) -> Iterator[str]:
    pieces = iter(mask_pieces([event.data for event in events if event.kind == "o"]))
    yield json.dumps({"version": 2, "width": columns, "height": rows})
    for event in events:
        data = next(pieces) if event.kind == "o" else event.data
        yield json.dumps([round(event.at, 6), event.kind, data])


TRANSCRIPT_TAIL: Final = 400_000
TRANSCRIPT_ENTRIES: Final = 400
ENTRY_LIMIT: Final = 4_000
TEXT_FILE_LIMIT: Final = 200_000
TEXTS_LIMIT: Final = 60
TEXTS_SIZE_LIMIT: Final = 1_500_000
CASTS_LIMIT: Final = 30
CASTS_SIZE_LIMIT: Final = 32_000_000
_TEXT_ENDINGS: Final = frozenset(
    {".txt", ".log", ".md", ".out", ".err", ".json", ".jsonl", ".xml", ".yaml", ".toml", ""}
)
_BLOCK_FILE: Final = "tutorial_block.txt"
_PATCH_FILE: Final = "uncommitted.patch"
_SHOWN_OTHERWISE: Final = frozenset(
    (OUTCOME_FILE, BUNDLE_FILE, PULLED_TRANSCRIPT, SCREEN_NAME, _PATCH_FILE, _BLOCK_FILE, "task.json", "result.json")
)


@dataclass(slots=True)
class Details:
    """The details of a test, and its recordings, which the page loads separately."""

    content: dict[str, Any]
    casts: list[Cast] = field(default_factory=list)
    has_material: bool = False


def read_details(folder: SweepFolder, record: TestRecord, diffs: CommitDiffs) -> Details:
    """Return the details of a test from its record and its pulled files."""
    pulled = _agent_folder(folder, record.agent)
    files = list_files(pulled) if pulled else []
    outcome, outcome_note = _outcome(pulled)
    casts, cast_rows = _casts(files)
    content = {
        "test": safe_line(record.test),
        "facts": _facts(record, _cited_block(files)),
        "question": safe_lines(record.question, 2_000),
        "summary": safe_lines(outcome.summary_markdown or record.pulled.summary),
        "note": outcome_note,
        "tries": [_try(made) for made in record.tries],
        "changes": list(_changes(record, outcome, diffs)),
        "runs": [
            {"name": safe_line(run.run_name, 200), "text": safe_lines(run.description_markdown, 4_000)}
            for run in outcome.test_runs[:50]
        ],
        "escalations": [
            {
                "kind": safe_line(found.kind_in_words, 60),
                "title": safe_line(found.title),
                "text": safe_lines(found.detail_markdown),
                "locations": [safe_line(str(location), 300) for location in found.locations],
            }
            for found in record.pulled.escalations
        ],
        "texts": list(_texts(files)),
        "casts": cast_rows,
        "files": [{"name": safe_line(file.name, 300), "size": file.size} for file in files],
        **_transcript(pulled),
        "screen": _screen(pulled),
        "uncommitted": _uncommitted(pulled),
    }
    return Details(content, casts, bool(files))


def _agent_folder(folder: SweepFolder, agent: str) -> Path | None:
    try:
        return folder.agent(agent)
    except ValueError:
        return None


def _facts(record: TestRecord, cited: str) -> list[list[str]]:
    facts = [
        ["why", safe_line(record.reason)],
        ["known from", safe_line(record.source, 100)],
        ["agent", safe_line(record.agent)],
        ["branch", safe_line(record.branch)],
        ["host", safe_line(record.host)],
        ["tutorial block", safe_lines(record.block or cited, 4_000)],
        ["reported before / after", _before_after(record)],
        ["checked", safe_line(record.pulled.check.words) if record.pulled.check is not None else ""],
        ["tip", record.pulled.tip[:12]],
    ]
    if record.launch > 1:
        facts.append(["launches", str(record.launch)])
    facts += token_facts(record.spending)
    if record.pulled.has_uncommitted:
        facts.append(["left behind", "changes that were never committed"])
    if record.foreign_imports:
        facts.append(
            ["doubt", safe_line("ran against modules of the checkout: " + ", ".join(record.foreign_imports[:5]))]
        )
    return [fact for fact in facts if fact[1]]


def _cited_block(files: list[PulledFile]) -> str:
    cited = [file for file in files if file.name.endswith(f"/{_BLOCK_FILE}")]
    content = read_start(cited[-1].path, 4_000) if cited else None
    return content.raw.decode("utf-8", "replace").strip() if content else ""


def _before_after(record: TestRecord) -> str:
    if record.pulled.passing_before is None and record.pulled.passing_after is None:
        return ""
    names = {True: "passing", False: "failing", None: "unknown"}
    return f"{names[record.pulled.passing_before]} → {names[record.pulled.passing_after]}"


def _try(made: Any) -> dict[str, Any]:
    return {
        "number": made.number,
        "word": made.word,
        "seconds": round(made.seconds, 2),
        "at": made.at,
        "failure": safe_lines(made.failure, 8_000),
    }


def _outcome(pulled: Path | None) -> tuple[AgentReport, str]:
    content = read_start(pulled / PACKED_OUTPUT_FOLDER / OUTCOME_FILE, OUTCOME_SIZE_LIMIT + 1) if pulled else None
    if content is None:
        return AgentReport(), ""
    try:
        return parse_report(content.raw), ""
    except InvalidReport as error:
        return AgentReport(), safe_line(str(error))


def _changes(record: TestRecord, outcome: AgentReport, diffs: CommitDiffs) -> Iterator[dict[str, Any]]:
    summaries = {kind.value: change.summary_markdown for kind, change in outcome.changes.items()}
    for change in record.pulled.changes:
        diff = diffs.diff(change.commit) if change.commit else None
        yield {
            "kind": safe_line(change.kind, 40),
            "status": safe_line(change.status, 40),
            "summary": safe_lines(summaries.get(change.kind) or change.summary),
            "commit": safe_line(change.commit, 64),
            "diff": diff.text if diff else "",
            "diff_note": diff.note if diff else "",
        }


def _texts(files: list[PulledFile]) -> Iterator[dict[str, Any]]:
    """Return the text files, transcripts of commands first."""
    chosen = [file for file in files if _is_text(file)]
    chosen.sort(key=lambda file: (not _is_cli_transcript(file.name), file.name))
    bytes_left = TEXTS_SIZE_LIMIT
    for file in chosen[:TEXTS_LIMIT]:
        content = read_start(file.path, min(TEXT_FILE_LIMIT, bytes_left))
        if content is None or b"\0" in content.raw[:4_096]:
            continue
        bytes_left -= len(content.raw)
        yield {
            "name": safe_line(file.name, 300),
            "text": safe_decoded(content.raw, TEXT_FILE_LIMIT),
            "is_cli": _is_cli_transcript(file.name),
            "is_cut": content.is_cut,
        }
        if bytes_left <= 0:
            return


def _is_text(file: PulledFile) -> bool:
    name = file.name.rpartition("/")[2]
    return name not in _SHOWN_OTHERWISE and not name.startswith(".") and Path(name).suffix.lower() in _TEXT_ENDINGS


def _is_cli_transcript(name: str) -> bool:
    return "transcript" in name.rpartition("/")[2].lower()


def _casts(files: list[PulledFile]) -> tuple[list[Cast], list[dict[str, Any]]]:
    casts: list[Cast] = []
    rows = []
    for file in [file for file in files if file.name.endswith(".cast")][:CASTS_LIMIT]:
        row: dict[str, Any] = {"name": safe_line(file.name, 300), "size": file.size}
        try:
            if sum(len(cast.text) for cast in casts) > CASTS_SIZE_LIMIT:
                raise BadRecording("left out: the earlier recordings use all the space")
            cast = read_recording(file.path)
        except BadRecording as error:
            row["problem"] = safe_line(str(error))
        else:
            row |= {"place": len(casts), "seconds": cast.seconds, "note": cast.note}
            row |= {"columns": cast.columns, "rows": cast.rows}
            casts.append(cast)
        rows.append(row)
    return casts, rows


def _transcript(pulled: Path | None) -> dict[str, Any]:
    content = read_end(pulled / PULLED_TRANSCRIPT, TRANSCRIPT_TAIL) if pulled else None
    if content is None:
        return {"transcript": [], "transcript_note": ""}
    entries: list[Entry] = []
    for raw in content.raw.split(b"\n"):
        if raw.strip():
            entries += parse_record(raw)
    is_cut = content.is_cut or len(entries) > TRANSCRIPT_ENTRIES
    return {
        "transcript": [
            {
                "role": entry.role.value,
                "tool": safe_line(entry.tool, 60),
                "at": entry.at,
                "is_error": entry.is_error,
                "text": safe_lines(entry.text, ENTRY_LIMIT),
            }
            for entry in entries[-TRANSCRIPT_ENTRIES:]
        ],
        "transcript_note": "only the end of the transcript is shown" if is_cut else "",
    }


def _screen(pulled: Path | None) -> str:
    content = read_start(pulled / SCREEN_NAME, 100_000) if pulled else None
    return safe_decoded(content.raw) if content else ""


def _uncommitted(pulled: Path | None) -> str:
    content = read_start(pulled / _PATCH_FILE, DIFF_SIZE_LIMIT) if pulled else None
    return mask_secrets(visible(content.raw.decode("utf-8", "replace"))) if content else ""


def token_facts(spent: Spending) -> list[list[str]]:
    """Return the number of tokens, by model if known."""
    if spent.models:
        return [["tokens", safe_line(each.text, 200)] for each in spent.models]
    return [["tokens", f"{spent.tokens:,}"]] if spent.is_known else []
