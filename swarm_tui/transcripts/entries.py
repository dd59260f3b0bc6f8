"""Records to entries."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from pydantic_core import from_json

from swarm_tui.model.formatting import file_size
from swarm_tui.model.text import parse_json, plain, plain_lines

_FILE_KEYS: Final = ("file_path", "notebook_path", "path", "file")
_OLD_KEYS: Final = ("old_string", "old_str", "old")
_NEW_KEYS: Final = ("new_string", "new_str", "new", "new_source")
_WHOLE_KEYS: Final = ("content", "file_text", "text")
LINES_LIMIT: Final = 400
"""Longer texts are cut and not compared, which would be slow."""


def edit_text(given: Mapping[str, Any]) -> str | None:
    """Return the file and its changed lines with - and +; None if these are not arguments of an edit."""
    file = _first(given, _FILE_KEYS)
    if file is None:
        return None
    several = given.get("edits")
    if isinstance(several, list) and several and all(isinstance(edit, dict) for edit in several):
        changes = [_change(edit) for edit in several]
    elif (change := _change(given)) is not None:
        changes = [change]
    elif (whole := _first(given, _WHOLE_KEYS)) is not None:
        changes = [("", whole)]
    else:
        return None
    lines = [line for change in changes if change is not None for line in _changed_lines(*change)]
    return "\n".join([file.split("\n")[0], *lines]) if lines else None


def _first(given: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((value for key in keys if isinstance(value := given.get(key), str)), None)


def _change(edit: Mapping[str, Any]) -> tuple[str, str] | None:
    old, new = _first(edit, _OLD_KEYS), _first(edit, _NEW_KEYS)
    return None if old is None and new is None else (old or "", new or "")


def _changed_lines(old: str, new: str) -> Iterator[str]:
    before, after = (text.split("\n") if text else [] for text in (old.removesuffix("\n"), new.removesuffix("\n")))
    if len(before) + len(after) > LINES_LIMIT:
        yield from (f"-{line}" for line in before[:LINES_LIMIT])
        yield from (f"+{line}" for line in after[:LINES_LIMIT])
        return
    for line in difflib.ndiff(before, after):
        if line[0] != "?":
            yield f"{line[0]}{line[2:]}"


ARGUMENTS_LIMIT: Final = 2_000
EDIT_LIMIT: Final = 20_000


class Role(StrEnum):
    """The source of an entry."""

    USER = "user"
    AGENT = "agent"
    THINKING = "thinking"
    CALL = "call"
    RESULT = "result"
    SYSTEM = "system"
    TEXT = "text"


class Entry(NamedTuple):
    """A message, call or result; its text has no control characters except newlines."""

    role: Role
    text: str
    at: float | None = None
    tool: str = ""
    call: str = ""
    """The id that links a result to its call."""
    is_error: bool = False
    note: str = ""
    """A problem of the record: cut or damaged."""
    is_edit: bool = False
    """Whether the text of the call is a file and its changed lines with - and +."""


_ERROR_SIGNS: Final = re.compile(
    r"Traceback \(most recent call last\)"
    r"|^E  +\S"
    r"|\b[1-9]\d* (?:failed|errors?)\b"
    r"|\b[A-Za-z_.]*(?:Error|Exception)\b:"
    r"|\b(?:FAILED|ERROR|FATAL|CRITICAL)\b"
    r"|^(?:error|fatal|panic|Error)[:\[]"
    r"|: command not found\b"
    r"|\bSegmentation fault\b",
    re.MULTILINE,
)
# A text without these substrings does not match the pattern; searching them is ten times as fast.
_ERROR_HINTS: Final = (
    "Error",
    "ERROR",
    "error",
    "Traceback",
    "Exception",
    " failed",
    "FAILED",
    "FATAL",
    "CRITICAL",
    "fatal",
    "panic",
    "E  ",
    "command not found",
    "Segmentation",
)
_RAW_HINTS: Final = (
    *(hint.encode() for hint in _ERROR_HINTS if hint != "error"),
    b'"is_error": true',
    b'"is_error":true',
    b"error:",
    b"error[",
    b" error",
    b'"error"',
    b'"isApiErrorMessage"',
    b'"critical"',
)
_ROLE_HINTS: Final = {
    Role.USER: (b"user", b"/common_transcript"),
    Role.AGENT: (b"agent", b"assistant", b"/common_transcript"),
    Role.THINKING: (b"reasoning_content", b"thinking"),
    Role.CALL: (b"tool_calls", b"tool_use"),
    Role.RESULT: (b"results", b"tool_result"),
}
"""Bytes that a record with an entry of a role must contain; other roles have none."""
# Records of Claude Code's log that do not name their session.
_BOOKKEEPING: Final = frozenset({"file-history-snapshot"})
_UNUSUAL: Final = re.compile("[^\n -~]")
# The time in a plain log line, so that logs can be merged with transcripts.
_LEADING_TIME: Final = re.compile(r"\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)\]?\s*")
_BINARY: Final = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_TOOL_TEXT_KEYS: Final = ("command", "file_path", "path", "pattern", "query", "url", "description", "prompt")


def parse_record(raw: bytes, length: int | None = None) -> tuple[Entry, ...]:
    """Return the entries of a record; `length` is its full size if `raw` is only its beginning.

    Never raises: an invalid record becomes an entry with its text.
    """
    is_cut = length is not None and length > len(raw)
    note = f"only the beginning of a record of {file_size(length or 0)}" if is_cut else ""
    start = raw.lstrip()[:1]
    if start == b"{":
        record = _loads_beginning(raw) if is_cut else loads_or_none(raw)
        if isinstance(record, dict):
            try:
                entries = _entries_of(record)
            except RecursionError:
                # Nested just deep enough to be parsed, but not to be serialized.
                return (_plain_entry(raw, note),)
            if entries is not None:
                return tuple(entry._replace(note=note) for entry in entries) if note else entries
            return (_other_json(record, raw, note),)
        note = note or "a broken record"
    return (_plain_entry(raw, note),)


def may_hold_error(raw: bytes) -> bool:
    """Return False only if no entry of the record can be an error; much faster than parsing it."""
    return any(hint in raw for hint in _RAW_HINTS)


def may_hold_role(raw: bytes, roles: frozenset[Role]) -> bool:
    """Return False only if no entry of the record can have one of these roles; much faster than parsing it."""
    return any(role not in _ROLE_HINTS or any(hint in raw for hint in _ROLE_HINTS[role]) for role in roles)


def looks_like_error(text: str) -> bool:
    """Return whether a tool's output or a log line reports an error."""
    return any(hint in text for hint in _ERROR_HINTS) and _ERROR_SIGNS.search(text) is not None


def parse_time(value: Any) -> float | None:
    """Return the time of a value (ISO 8601, or seconds or milliseconds since 1970) in seconds, or None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        # An integer of hundreds of digits cannot become a float, but can be compared with one.
        if not 0 < value < 1e14:
            return None
        return value / 1000 if value > 1e11 else float(value)
    if isinstance(value, str) and len(value) < 64:
        try:
            return datetime.fromisoformat(value.strip().replace(",", ".")).timestamp()
        except (ValueError, OverflowError, OSError):
            return None
    return None


def record_time(raw: bytes) -> float | None:
    """Return the time of a record, or None."""
    record = loads_or_none(raw)
    return _time_of(record) if isinstance(record, dict) else None


def loads_or_none(raw: bytes) -> Any:
    """Return the value of a JSON text, or None if it is invalid or nested too deeply."""
    try:
        return parse_json(raw)
    except ValueError:
        return None


def _loads_beginning(raw: bytes) -> Any:
    """Return the value of a truncated JSON text, as far as it goes, or None."""
    try:
        return from_json(raw.decode("utf-8", "ignore"), allow_partial="trailing-strings")
    except ValueError:
        return None


def _entries_of(record: dict[str, Any]) -> tuple[Entry, ...] | None:
    match record.get("type"):
        case "header":
            version = plain(str(record.get("schema_version") or ""), 60)
            return (Entry(Role.SYSTEM, f"transcript begins ({version or 'version unknown'})", None),)
        case "step":
            return _step(record)
        case "observation":
            results = _results(record.get("results"), _time_of(record))
            return tuple(results) or (Entry(Role.RESULT, "(empty)", _time_of(record)),)
        case "user" | "assistant" if isinstance(record.get("message"), dict):
            return _native_message(record)
        case str() if "sessionId" in record or record.get("type") in _BOOKKEEPING:
            return _native_event(record)
        case _:
            return None


def _step(record: dict[str, Any]) -> tuple[Entry, ...]:
    at = _time_of(record)
    role = _role_of_step(record)
    entries = []
    reasoning = _text(record.get("reasoning_content"))
    if reasoning:
        entries.append(Entry(Role.THINKING, reasoning, at))
    message = _text(record.get("message"))
    if message:
        is_error = role is Role.SYSTEM and looks_like_error(message)
        entries.append(Entry(role, message, at, is_error=is_error))
    entries += [_call(call, at) for call in _dicts(record.get("tool_calls"))]
    observation = record.get("observation")
    if isinstance(observation, dict):
        entries += _results(observation.get("results"), at)
    return tuple(entries) or (Entry(role, "(empty)", at),)


def _role_of_step(record: dict[str, Any]) -> Role:
    source = str(record.get("source"))
    if source.endswith("/common_transcript"):
        # `mngr event` replaces the source with the name of the stream; only agents write these keys.
        is_agent = any(
            record.get(key) is not None for key in ("model_name", "tool_calls", "reasoning_content", "metrics")
        )
        return Role.AGENT if is_agent else Role.SYSTEM if record.get("observation") is not None else Role.USER
    return {"user": Role.USER, "agent": Role.AGENT}.get(source, Role.SYSTEM)


def _call(call: dict[str, Any], at: float | None) -> Entry:
    name = call.get("function_name") or call.get("name") or "tool"
    given = call.get("arguments", call.get("input"))
    call_id = call.get("tool_call_id") or call.get("id") or ""
    edit = _edit(given)
    words = _arguments(given) if edit is None else _inert(edit[:EDIT_LIMIT])
    return Entry(Role.CALL, words, at, tool=plain(str(name), 60), call=str(call_id)[:200], is_edit=edit is not None)


def _edit(given: Any) -> str | None:
    """Return an edit as a small diff; its arguments may be truncated."""
    if isinstance(given, str) and given.startswith("{"):
        try:
            given = from_json(given, allow_partial="trailing-strings")
        except ValueError:
            return None
    return edit_text(given) if isinstance(given, dict) else None


def _arguments(given: Any) -> str:
    """Return a call's arguments for display: the main one first, the others as JSON."""
    if isinstance(given, str):
        return _inert(given[:ARGUMENTS_LIMIT])
    if not isinstance(given, dict):
        return "" if given is None else plain(json.dumps(given, ensure_ascii=False, default=str), ARGUMENTS_LIMIT)
    rest = dict(given)
    first = next((key for key in _TOOL_TEXT_KEYS if isinstance(rest.get(key), str)), None)
    words = [_inert(rest.pop(first)[:ARGUMENTS_LIMIT])] if first else []
    if rest:
        words.append(plain(json.dumps(rest, ensure_ascii=False, default=str), ARGUMENTS_LIMIT))
    return "  ".join(words)


def _results(results: Any, at: float | None) -> list[Entry]:
    entries = []
    for result in _dicts(results):
        extra = result.get("extra")
        extra = extra if isinstance(extra, dict) else {}
        text = _text(result.get("content"))
        tool, is_error = extra.get("tool_name"), extra.get("is_error")
        entries.append(
            Entry(
                Role.RESULT,
                text,
                at,
                tool=plain(str(tool), 60) if tool else "",
                call=str(result.get("source_call_id") or "")[:200],
                is_error=is_error if isinstance(is_error, bool) else looks_like_error(text),
            )
        )
    return entries


def _native_message(record: dict[str, Any]) -> tuple[Entry, ...]:
    """Return the entries of a record of an agent's log, where a message is a list of blocks."""
    at = _time_of(record)
    role = Role.USER if record["type"] == "user" else Role.AGENT
    is_failed = record.get("isApiErrorMessage") is True
    content = record["message"].get("content")
    if not isinstance(content, list):
        return (Entry(role, _text(content), at, is_error=is_failed),)
    entries = []
    for block in _dicts(content):
        match block.get("type"):
            case "tool_use":
                entries.append(_call(block, at))
            case "thinking":
                entries.append(Entry(Role.THINKING, _text(block.get("thinking", block.get("text"))), at))
            case "tool_result":
                call = str(block.get("tool_use_id") or "")[:200]
                # The key is missing if the result is not an error.
                is_error = block.get("is_error") is True
                entries.append(Entry(Role.RESULT, _text(block.get("content")), at, call=call, is_error=is_error))
            case _:
                entries.append(Entry(role, _text([block]), at, is_error=is_failed))
    return tuple(entries) or (Entry(role, "(empty)", at),)


def _native_event(record: dict[str, Any]) -> tuple[Entry, ...]:
    """Return the entry of a record of an agent's log that is not a message; none if it has no text."""
    error, text = record.get("error"), record.get("content")
    if isinstance(error, dict):
        text = error.get("formatted") or error.get("message")
    if not isinstance(text, str) or not text.strip():
        return ()
    return (Entry(Role.SYSTEM, _inert(text), _time_of(record), is_error=record.get("level") == "error"),)


def _other_json(record: dict[str, Any], raw: bytes, note: str) -> Entry:
    """Return the entry of an unknown JSON record: its text, or the whole record."""
    words = next((record[key] for key in ("message", "text", "msg", "line") if isinstance(record.get(key), str)), None)
    kind = plain(str(record.get("type") or ""), 40)
    text = _inert(words) if words is not None else _inert(raw.decode("utf-8", "replace"))
    is_error = looks_like_error(text) or str(record.get("level", "")).lower() in ("error", "critical", "fatal")
    return Entry(Role.TEXT, text, _time_of(record), tool=kind, is_error=is_error, note=note)


def _plain_entry(raw: bytes, note: str) -> Entry:
    if _BINARY.search(raw[:4096]):
        note = note or "not text"
    text = _inert(raw.decode("utf-8", "replace"))
    found = _LEADING_TIME.match(text)
    at = parse_time(found.group(1)) if found else None
    words = text[found.end() :] if found is not None and at is not None else text
    return Entry(Role.TEXT, words, at, is_error=looks_like_error(text), note=note)


def _time_of(record: dict[str, Any]) -> float | None:
    return parse_time(record.get("timestamp", record.get("at", record.get("time"))))


def _dicts(value: Any) -> Iterable[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _inert(text: str) -> str:
    return plain_lines(text) if _UNUSUAL.search(text) else text


def _text(value: Any) -> str:
    """Return the text of a content value: a string, or the text parts of a list."""
    if value is None:
        return ""
    if isinstance(value, str):
        return _inert(value)
    if isinstance(value, list):
        parts = []
        for part in value:
            if isinstance(part, str):
                parts.append(part)
            elif isinstance(part, dict):
                words = part.get("text")
                parts.append(words if isinstance(words, str) else f"[{part.get('type') or 'part'}]")
        return _inert("\n".join(parts))
    return plain(json.dumps(value, ensure_ascii=False, default=str), ARGUMENTS_LIMIT)
