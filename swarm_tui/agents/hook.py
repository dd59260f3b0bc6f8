"""A hook of Claude Code and Codex: records events in the agent's state folder, and delivers answers to its questions.

The program runs `python3 hook.py` for each event, with the event as JSON on standard input (`hook_settings` has the
list of events). The hook appends permission requests and questions to EVENTS_PATH, then waits for
ANSWERS_FOLDER/<id>.json while the dialog is also open on the screen. The first answer wins. Standard library only: the
file is copied to the hosts of agents.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

EVENTS_PATH = "plugin/swarm/events.jsonl"
ANSWERS_FOLDER = "plugin/swarm/answers"

ASKING = ("PermissionRequest", "Elicitation")
NOTED = ("SessionStart", "UserPromptSubmit", "Stop", "StopFailure", "SessionEnd", "PreCompact", "PostCompact")
# The fields to keep of events that are only recorded.
KEPT_KEYS = ("source", "error", "last_assistant_message", "reason", "trigger", "background_tasks")

WAIT_SECONDS = 86_400
POLL_SECONDS = 0.2
# Seconds to wait for Claude Code's files, which show within 0.25 s that the dialog was answered on the screen.
SETTLED_AFTER = 0.3
# Seconds until a call whose hook has started is in Claude's log.
LOG_SECONDS = 3.0
# The longest line of the log, whatever is in a request.
LINE_LIMIT = 60_000
TEXT_LIMIT = 8_000
PLAN_LIMIT = 40_000
ITEM_LIMIT = 50


def hook_command(python: str, script: str) -> str:
    """Return the command line of this hook for a shell."""
    # Isolated, because the modules next to this file would hide those of the standard library.
    return f"{shlex.quote(python)} -I {shlex.quote(script)}"


def hook_settings(python: str, script: str, *, is_answering: bool = True) -> dict[str, Any]:
    """Return settings that make Claude Code run this hook. Without `is_answering`, requests are only recorded."""
    command = {"type": "command", "command": hook_command(python, script)}
    asking: dict[str, Any] = {**command, "timeout": WAIT_SECONDS}
    if not is_answering:
        asking["command"] += " note"
    hooks: dict[str, Any] = {name: [{"matcher": "*", "hooks": [asking]}] for name in ASKING}
    hooks.update({name: [{"hooks": [{**command, "timeout": 10}]}] for name in NOTED})
    return {"hooks": hooks}


def decision_for(request: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a request in the format of Claude Code.

    An answer has a `verdict` (allow, deny or answer) and may have a `text`, `answers` by question, and `is_remembered`.
    """
    event, tool = str(request.get("hook_event_name")), request.get("tool_name")
    verdict, text = answer.get("verdict"), str(answer.get("text") or "")
    if event == "Elicitation":
        accepted: dict[str, Any] = {"action": "accept", "content": _form(request, answer.get("answers") or {})}
        return _output(event, **(accepted if verdict != "deny" else {"action": "decline"}))
    if verdict == "deny":
        return _output(event, decision={"behavior": "deny", "message": text or "The user denied this."})
    decision: dict[str, Any] = {"behavior": "allow"}
    arguments = request.get("tool_input") or {}
    if tool == "AskUserQuestion":
        questions = [str(question.get("question")) for question in arguments.get("questions") or ()]
        answers = answer.get("answers") or {question: text for question in questions}
        decision["updatedInput"] = {**arguments, "answers": answers}
    elif tool == "ExitPlanMode":
        decision["updatedInput"] = {}
    elif answer.get("is_remembered"):
        # Only for this session: other destinations would be written into the project's files.
        suggestions = request.get("permission_suggestions") or ()
        decision["updatedPermissions"] = [{**suggestion, "destination": "session"} for suggestion in suggestions]
    return _output(event, decision=decision)


def _form(request: dict[str, Any], answers: dict[str, Any]) -> dict[str, Any]:
    """Return the answers to a form, converted to the types of its fields."""
    fields = _fields(request)
    return {
        name: answer if isinstance(answer, list) else _typed(str(answer), fields.get(name, {}).get("type"))
        for name, answer in answers.items()
    }


def _typed(text: str, field_type: object) -> object:
    if field_type == "boolean":
        return text.strip().lower() in ("yes", "y", "ok", "allow", "true", "1")
    if field_type in ("integer", "number"):
        try:
            return int(text) if field_type == "integer" else float(text)
        except ValueError:
            return text
    return text


def _fields(request: dict[str, Any]) -> dict[str, Any]:
    schema = request.get("requested_schema")
    fields = schema.get("properties") if isinstance(schema, dict) else None
    return (
        {name: field for name, field in fields.items() if isinstance(field, dict)} if isinstance(fields, dict) else {}
    )


def _output(event: str, **content: object) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **content}}


class Log:
    """The file in the agent's state folder that the engine reads."""

    def __init__(self, state_folder: str) -> None:
        self._path = os.path.join(state_folder, EVENTS_PATH)
        os.makedirs(os.path.dirname(self._path), exist_ok=True)

    def write(self, event: str, **content: object) -> None:
        line = json.dumps({"at": round(time.time(), 3), "event": event, **content}).encode() + b"\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)


def wait_for_answer(request: dict[str, Any], state_folder: str, log: Log) -> None:
    """Record a request, wait until it is answered or closed, and print the answer if there is one."""
    identity = f"{int(time.time() * 1000)}-{os.getpid()}"
    answer_path = os.path.join(state_folder, ANSWERS_FOLDER, identity + ".json")
    log.write("asked", id=identity, **_described(request))

    def close_at_signal(number: int, frame: object) -> None:
        log.write("closed", id=identity, why="interrupted")
        os._exit(0)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, close_at_signal)
    why = _wait(request, answer_path)
    if why == "answered":
        try:
            with open(answer_path, encoding="utf-8") as file:
                answer = json.load(file)
            print(json.dumps(decision_for(request, answer)), flush=True)
        except (OSError, ValueError, AttributeError, TypeError):
            why = "its answer cannot be read"
    log.write("closed", id=identity, why=why)


def _wait(request: dict[str, Any], answer_path: str) -> str:
    """Wait, and return how the request was closed."""
    parent, calls, was_on_screen = os.getppid(), CallsInLog(request), False
    is_shown = request.get("hook_event_name") == "PermissionRequest" and not request.get("agent_id")
    deadline = time.monotonic() + WAIT_SECONDS
    answered_at: float | None = None
    while time.monotonic() < deadline:
        if answered_at is None and os.path.exists(answer_path):
            answered_at = time.monotonic()
        if answered_at is not None and time.monotonic() - answered_at >= SETTLED_AFTER:
            return "answered"
        if os.getppid() != parent:
            return "Claude Code exited"
        status = claude_status(os.environ)
        was_on_screen = was_on_screen or status == "waiting"
        if is_shown and was_on_screen and status != "waiting":
            return "on the screen"
        if request.get("hook_event_name") == "PermissionRequest" and calls.have_results():
            return "on the screen"
        time.sleep(POLL_SECONDS if answered_at is None else POLL_SECONDS / 4)
    return "unanswered"


def claude_status(environment: Mapping[str, str]) -> str:
    """Return the status in Claude Code's session file: busy, waiting, idle or shell; "" without a file."""
    config = environment.get("CLAUDE_CONFIG_DIR") or os.path.join(os.path.expanduser("~"), ".claude")
    path = os.path.join(config, "sessions", environment.get("CLAUDE_PID", "") + ".json")
    try:
        with open(path, encoding="utf-8") as file:
            return str(json.load(file).get("status") or "")
    except (OSError, ValueError, AttributeError):
        return ""


class CallsInLog:
    """Tool calls in Claude's log that match a request, because PermissionRequest does not name its call."""

    def __init__(self, request: dict[str, Any]) -> None:
        path = str(request.get("transcript_path") or "")
        subagent = request.get("agent_id")
        self._path = re.sub(r"\.jsonl$", "", path) + f"/subagents/agent-{subagent}.jsonl" if subagent else path
        self._tool, self._input = request.get("tool_name"), request.get("tool_input")
        self._offset = 0
        self._calls: set[str] = set()
        self._results: set[str] = set()
        self._plans: dict[str, str] = {}
        self._words = ""

    def have_results(self) -> bool:
        """Whether there are matching calls and all of them have returned."""
        for block in self._new_blocks(b'"tool_'):
            if block.get("type") == "tool_result":
                self._results.add(str(block.get("tool_use_id")))
            elif block.get("name") == self._tool and block.get("input") == self._input:
                self._calls.add(str(block.get("id")))
        return bool(self._calls) and self._calls <= self._results

    def open_plan(self) -> str | None:
        """Return the plan of the call that waits for its result, or the text before it; None without such a call."""
        for block in self._new_blocks(b'"content"'):
            if block.get("type") == "text":
                self._words = str(block.get("text") or "")
            elif block.get("type") == "tool_result":
                self._plans.pop(str(block.get("tool_use_id")), None)
            elif block.get("name") == "ExitPlanMode":
                arguments = block.get("input")
                plan = arguments.get("plan") if isinstance(arguments, dict) else None
                self._plans[str(block.get("id"))] = plan if isinstance(plan, str) and plan else self._words
        return next(reversed(self._plans.values()), None)

    def _new_blocks(self, needed: bytes) -> Iterator[dict[str, Any]]:
        """Yield the content blocks of new log lines that contain `needed`."""
        for line in self._new_lines(needed):
            try:
                message = json.loads(line).get("message") or {}
                content = message.get("content")
            except (ValueError, AttributeError, RecursionError):
                continue
            yield from (block for block in (content if isinstance(content, list) else ()) if isinstance(block, dict))

    def _new_lines(self, needed: bytes) -> list[bytes]:
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                whole, newline, _ = file.read().rpartition(b"\n")
        except OSError:
            return []
        self._offset += len(whole) + len(newline)
        return [line for line in whole.split(b"\n") if needed in line]


def _described(request: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a request that the user needs, limited in size."""
    arguments = request.get("tool_input") or {}
    described = {
        "kind": str(request.get("hook_event_name")),
        "tool": str(request.get("tool_name") or "")[:TEXT_LIMIT],
        "input": bounded(arguments),
        "message": bounded(str(request.get("message") or "")),
        "fields": bounded(_fields(request)),
        "subagent": str(request.get("agent_type") or "subagent")[:TEXT_LIMIT] if request.get("agent_id") else "",
    }
    described["is_cut"] = described["input"] != arguments or described["fields"] != _fields(request)
    schema = request.get("requested_schema")
    if isinstance(schema, dict):
        described["required"] = bounded(schema.get("required"))
    if request.get("tool_name") == "ExitPlanMode":
        plan = _plan(request)
        # A character may need six bytes in the line.
        limit = PLAN_LIMIT if len(json.dumps(plan[:PLAN_LIMIT])) < LINE_LIMIT - 1_000 else LINE_LIMIT // 8
        described.update(input={"plan": plan[:limit]}, is_cut=len(plan) > limit)
    elif len(json.dumps(described)) > LINE_LIMIT:
        described.update(input=_shortened(arguments), fields={}, is_cut=True)
    return described


def _plan(request: dict[str, Any]) -> str:
    """Return the plan that Claude asks to carry out.

    If the model gave the plan with its call and wrote no file, the plan is only in Claude's log.
    """
    arguments = request.get("tool_input")
    plan = arguments.get("plan") if isinstance(arguments, dict) else None
    if isinstance(plan, str) and plan:
        return plan
    calls, deadline = CallsInLog(request), time.monotonic() + LOG_SECONDS
    while (found := calls.open_plan()) is None and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS / 4)
    return found or ""


def _shortened(arguments: object) -> dict[str, str]:
    """Return the beginnings of the texts in a large input."""
    texts = arguments.items() if isinstance(arguments, dict) else ()
    return {str(key)[:100]: value[:1_000] for key, value in list(texts)[:10] if isinstance(value, str)}


def bounded(value: object, depth: int = 6) -> object:
    """Return a JSON value with long texts, long lists and deep nesting cut."""
    if isinstance(value, str):
        return value if len(value) <= TEXT_LIMIT else value[:TEXT_LIMIT] + "…"
    if isinstance(value, (dict, list)) and depth == 0:
        return "…"
    if isinstance(value, dict):
        return {str(key)[:200]: bounded(item, depth - 1) for key, item in list(value.items())[:ITEM_LIMIT]}
    if isinstance(value, list):
        return [bounded(item, depth - 1) for item in value[:ITEM_LIMIT]]
    return value


def main() -> None:
    """Handle one event."""
    state_folder = os.environ.get("MNGR_AGENT_STATE_DIR")
    if not state_folder or not _is_agents_own_claude(state_folder):
        return
    request = json.load(sys.stdin)
    event, log = request.get("hook_event_name"), Log(state_folder)
    if event in ASKING and sys.argv[1:] != ["note"]:
        wait_for_answer(request, state_folder, log)
    elif event in ASKING:
        log.write("shown", **_described(request))
    else:
        log.write(str(event), **{key: bounded(request[key]) for key in KEPT_KEYS if key in request})


def _is_agents_own_claude(state_folder: str) -> bool:
    """Whether this is the agent's own Claude Code. One that the agent starts as a command inherits its variables."""
    try:
        with open(os.path.join(state_folder, "claude_main_pid"), encoding="utf-8") as file:
            main_pid = file.read().strip()
    except OSError:
        return True
    return os.environ.get("CLAUDE_PID", main_pid) == main_pid


if __name__ == "__main__":
    main()
