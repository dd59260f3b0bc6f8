"""A scripted model: an HTTP server with OpenAI's Responses API, for Codex, and its chat completions, for opencode.

The plays are those for Claude Code. Their calls are translated into the tools of the program that sends the request.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.claude.plays import play
from tests.claude.scripted_model import Call, Garbage, HangUp, Refusal, Request, Trouble, Turn

Json = dict[str, Any]

WRITTEN_BY_MODEL: Final = frozenset({"function_call", "custom_tool_call", "reasoning"})
USAGE: Final = {"input_tokens": 1_000, "cache_read_input_tokens": 200, "output_tokens": 50}


class Served(NamedTuple):
    """The tokens of one answer, by price category."""

    model: str
    input: int
    output: int
    cache_read: int


class Conversation(NamedTuple):
    """The body of a request of either API."""

    body: Json

    @property
    def is_chat(self) -> bool:
        return "messages" in self.body

    @property
    def items(self) -> list[Json]:
        found = self.body.get("messages", self.body.get("input"))
        return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []

    @property
    def has_tools(self) -> bool:
        """Whether this is a conversation with the agent. Codex asks for a title with the tool `apply_patch` alone."""
        return len(self.body.get("tools") or ()) > 1

    def as_request(self) -> Request:
        """Return the conversation in the form of Anthropic's API, as plays expect it."""
        messages: list[Json] = []
        was_model = False
        for item in self.items:
            kind, role = str(item.get("type") or "message"), item.get("role")
            is_model = role == "assistant" or kind in WRITTEN_BY_MODEL
            if is_model:
                # In the Responses API, a turn of the model is a sequence of items.
                if self.is_chat or not was_model:
                    messages.append({"role": "assistant", "content": ""})
            elif role == "tool" or kind.endswith("_output"):
                content = _plain(item.get("output", item.get("content")))
                messages.append({"role": "user", "content": [{"type": "tool_result", "content": output_of(content)}]})
            elif role == "user":
                messages.append({"role": "user", "content": _plain(item.get("content"))})
            was_model = is_model
        return Request({"messages": messages, "tools": self.body.get("tools")})


class OpenAIModel(ThreadingHTTPServer):
    """The server, on a free port of the loopback interface; use it as a context manager."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.guard: Callable[[Request], Trouble | None] = lambda request: None
        """Returns the response that an agent's request gets instead of its turn."""
        self.requests: list[Request] = []
        self.served: list[Served] = []
        """The usage of every completely sent turn of the agents."""
        self.titles: list[Served] = []
        """The usage of the answers to requests for titles."""
        self.ids = itertools.count(1)
        self.lock = threading.Lock()
        self._tries: Counter[str] = Counter()
        self._thread = threading.Thread(target=self.serve_forever, name="scripted model", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def __enter__(self) -> OpenAIModel:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()

    def next_turn(self, conversation: Conversation) -> Turn | Trouble:
        """Return the answer to a request: the next turn of its play, or the error before it."""
        if not conversation.has_tools:
            return Turn("Scripted work")
        request = conversation.as_request()
        refused = self.guard(request)
        if refused is not None:
            return refused
        with self.lock:
            self.requests.append(request)
            key = json.dumps(request.messages, sort_keys=True)
            tries, self._tries[key] = self._tries[key], self._tries[key] + 1
        turns = play(request)
        turn = turns[request.turns_taken] if request.turns_taken < len(turns) else Turn("There is nothing left to do.")
        return turn.before[tries] if tries < len(turn.before) else turn


def output_of(content: str) -> str:
    """Return the output of a command without the lines that Codex adds before it."""
    return content.partition("\nOutput:\n")[2] or content


def for_codex(call: Call) -> tuple[str, Json | str]:
    """Return the tool and the input of Codex for a call of Claude Code."""
    given = call.input
    match call.tool:
        case "Bash":
            command: Json = {"cmd": given["command"], "yield_time_ms": 30_000}
            if str(given["command"]).startswith("curl"):
                command |= {"sandbox_permissions": "require_escalated", "justification": "Look prices up?"}
            return "exec_command", command
        case "Read":
            return "exec_command", {"cmd": f"cat {given['file_path']}", "yield_time_ms": 30_000}
        case "Edit":
            file = Path(given["file_path"])
            line = next(line for line in file.read_text().splitlines() if given["old_string"] in line)
            changed = line.replace(given["old_string"], given["new_string"])
            return (
                "apply_patch",
                f"*** Begin Patch\n*** Update File: {file.name}\n@@\n-{line}\n+{changed}\n*** End Patch\n",
            )
        case "Write":
            lines = "".join(f"+{line}\n" for line in str(given["content"]).splitlines())
            return "apply_patch", f"*** Begin Patch\n*** Add File: {given['file_path']}\n{lines}*** End Patch\n"
    raise LookupError(call.tool)


def for_opencode(call: Call) -> tuple[str, Json | str]:
    """Return the tool and the input of opencode for a call of Claude Code."""
    given = call.input
    match call.tool:
        case "Bash" if str(given["command"]).startswith("curl"):
            # opencode asks for files outside of the copy, and not for the network.
            return "read", {"filePath": "/etc/hostname"}
        case "Bash":
            return "bash", {"command": given["command"], "description": given.get("description") or "do it"}
        case "Read":
            return "bash", {"command": f"cat {given['file_path']}", "description": "read"}
        case "Edit":
            names = {"file_path": "filePath", "old_string": "oldString", "new_string": "newString"}
            return "edit", {names[key]: value for key, value in given.items()}
        case "Write":
            return "write", {"filePath": given["file_path"], "content": given["content"]}
        case "AskUserQuestion":
            return "question", dict(given)
    raise LookupError(call.tool)


def responses_events(turn: Turn, model: str, ids: Iterator[int]) -> Iterator[tuple[str, Json]]:
    """Yield the events of the Responses API for a turn."""
    response: Json = {"id": f"resp_{next(ids):06}", "object": "response", "model": model, "status": "in_progress"}
    yield "response.created", {"response": response}
    items: list[Json] = []
    if turn.text:
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        message = {"type": "message", "id": f"msg_{next(ids):06}", "role": "assistant", "status": "completed"}
        items.append({**message, "content": content})
    for call in turn.calls:
        name, given = for_codex(call)
        number = next(ids)
        item = {"id": f"fc_{number:06}", "call_id": f"call_{number:06}", "name": name, "status": "completed"}
        if isinstance(given, str):
            items.append({**item, "type": "custom_tool_call", "input": given})
        else:
            items.append({**item, "type": "function_call", "arguments": json.dumps(given)})
    for index, item in enumerate(items):
        begun = {**item, "content": []} if item["type"] == "message" else item
        yield "response.output_item.added", {"output_index": index, "item": begun}
        yield "response.output_item.done", {"output_index": index, "item": item}
    used = USAGE | dict(turn.usage)
    usage = {
        "input_tokens": used["input_tokens"],
        "input_tokens_details": {"cached_tokens": used["cache_read_input_tokens"]},
        "output_tokens": used["output_tokens"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": used["input_tokens"] + used["output_tokens"],
    }
    yield "response.completed", {"response": {**response, "status": "completed", "output": items, "usage": usage}}


def chat_chunks(turn: Turn, model: str, ids: Iterator[int]) -> Iterator[Json]:
    """Yield the chunks of a chat completion for a turn."""
    head = {"id": f"chatcmpl-{next(ids):06}", "object": "chat.completion.chunk", "created": int(time.time())}

    def chunk(delta: Json, reason: str | None = None, **more: object) -> Json:
        return {**head, "model": model, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **more}

    yield chunk({"role": "assistant", "content": turn.text})
    for index, call in enumerate(turn.calls):
        name, given = for_opencode(call)
        function = {"name": name, "arguments": json.dumps(given)}
        calls = [{"index": index, "id": f"call_{next(ids):06}", "type": "function", "function": function}]
        yield chunk({"tool_calls": calls})
    used = USAGE | dict(turn.usage)
    usage = {
        "prompt_tokens": used["input_tokens"],
        "prompt_tokens_details": {"cached_tokens": used["cache_read_input_tokens"]},
        "completion_tokens": used["output_tokens"],
        "total_tokens": used["input_tokens"] + used["output_tokens"],
    }
    yield chunk({}, "tool_calls" if turn.calls else "stop", usage=usage)


class _Handler(BaseHTTPRequestHandler):
    """One connection of Codex or opencode."""

    protocol_version = "HTTP/1.1"
    server: OpenAIModel

    def do_GET(self) -> None:
        # Codex tries a WebSocket first. After any other status than 426 it repeats that five times.
        self._send(426 if self.path.endswith("/responses") else 200, {"object": "list", "data": []})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.path.endswith(("/responses", "/chat/completions")):
            self._send(404, {"error": {"message": "not scripted"}})
            return
        conversation = Conversation(json.loads(raw))
        match self.server.next_turn(conversation):
            case Refusal(status, message, headers):
                error = {"message": message, "type": "rate_limit_exceeded" if status == 429 else "error"}
                self._send(status, {"error": error}, headers)
            case HangUp():
                self.close_connection = True
            case Garbage(body):
                self._send_bytes(200, body, {"Content-Type": "text/html"})
            case Turn() as turn:
                time.sleep(turn.seconds)
                self._stream(turn, conversation)

    def _stream(self, turn: Turn, conversation: Conversation) -> None:
        model = str(conversation.body.get("model"))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if conversation.is_chat:
            chunks = [json.dumps(chunk) for chunk in chat_chunks(turn, model, self.server.ids)]
            lines = [f"data: {chunk}\n\n" for chunk in (*chunks, "[DONE]")]
        else:
            events = enumerate(responses_events(turn, model, self.server.ids))
            contents = ((name, {"type": name, "sequence_number": number, **data}) for number, (name, data) in events)
            lines = [f"event: {name}\ndata: {json.dumps(content)}\n\n" for name, content in contents]
        for line in lines:
            chunk = line.encode()
            self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()
        used = USAGE | dict(turn.usage)
        cached = used["cache_read_input_tokens"]
        with self.server.lock:
            ledger = self.server.served if conversation.has_tools else self.server.titles
            ledger.append(Served(model, used["input_tokens"] - cached, used["output_tokens"], cached))

    def _send(self, status: int, content: Json, headers: Mapping[str, str] | None = None) -> None:
        self._send_bytes(status, json.dumps(content).encode(), {"Content-Type": "application/json", **(headers or {})})

    def _send_bytes(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing, because `requests` has everything."""


def _plain(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else json.dumps(content)
