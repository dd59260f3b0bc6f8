"""A scripted model: a small HTTP server that implements Anthropic's Messages API for the real Claude Code.

The server stores no conversations, because every request of Claude Code contains the complete conversation. A *play*
decides the answers: a function from the request to the turns of the model (see `tests/claude/plays`).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

Json = dict[str, Any]

ERROR_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


@dataclass(frozen=True)
class Call:
    """One call of a tool."""

    tool: str
    input: Mapping[str, Any]


def bash(command: str, description: str = "do it") -> Call:
    """Return a call of the Bash tool."""
    return Call("Bash", {"command": command, "description": description})


@dataclass(frozen=True)
class Refusal:
    """An error instead of a turn; Claude Code asks again."""

    status: int = 529
    message: str = "Overloaded"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class HangUp:
    """A closed connection, after some events of the stream or before the first one."""

    after_events: int = 0


@dataclass(frozen=True)
class Garbage:
    """A response that is not valid for the API, with status 200."""

    body: bytes = b"<html>502 Bad Gateway</html>"


Trouble = Refusal | HangUp | Garbage


@dataclass(frozen=True)
class Turn:
    """One turn of the model. With calls Claude Code continues, without calls its turn ends."""

    text: str = ""
    calls: Sequence[Call] = ()
    before: Sequence[Trouble] = ()
    """The responses that the first requests for this turn get instead."""
    seconds: float = 0.0
    """Seconds before the first word of the model."""
    usage: Mapping[str, int] = field(default_factory=dict)
    """Tokens in addition to those that the server counts, such as `cache_read_input_tokens`."""


@dataclass(frozen=True)
class Request:
    """One request of Claude Code, for a play."""

    body: Json

    @property
    def messages(self) -> list[Json]:
        return list(self.body.get("messages", ()))

    @property
    def has_tools(self) -> bool:
        """Whether this is a conversation with the agent; requests for titles and summaries have no tools."""
        return bool(self.body.get("tools"))

    @property
    def turns_taken(self) -> int:
        """The number of turns of the model in this conversation."""
        return sum(1 for message in self.messages if message["role"] == "assistant")

    @property
    def user_texts(self) -> list[str]:
        """Messages of users, oldest first, without the reminders that Claude Code adds."""
        return [text for message in self.messages if (text := _user_text(message))]

    @property
    def is_continued(self) -> bool:
        """Whether the conversation began with a summary of an earlier one that had become too long."""
        return bool(self.user_texts) and "continued from a previous conversation" in self.user_texts[0]

    @property
    def tool_results(self) -> list[str]:
        """The results of all calls of the conversation, oldest first."""
        blocks = [block for message in self.messages for block in _blocks(message)]
        return [_text_of(block.get("content")) for block in blocks if block["type"] == "tool_result"]


Play = Callable[[Request], Sequence[Turn]]
"""Returns all turns of a conversation, including the finished ones; the server selects the next one."""


class ScriptedModel(ThreadingHTTPServer):
    """The server, on a free port of the loopback interface; use it as a context manager."""

    daemon_threads = True

    def __init__(self, play: Play) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.play = play
        self.guard: Callable[[Request], Trouble | None] = lambda request: None
        """Returns the response that an agent's request gets instead of its turn."""
        self.in_flight = 0
        """The number of agents' requests in progress, including the current one."""
        self.requests: list[Request] = []
        self.served: list[tuple[str, Json]] = []
        """The model and the usage of every completely sent turn of the agents, without titles."""
        self.told: dict[str, str] = {}
        """The texts of the completely sent turns, by the ids of their messages."""
        self._tries: Counter[bytes] = Counter()
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        self._thread = threading.Thread(target=self.serve_forever, name="scripted model", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> ScriptedModel:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()

    def next_turn(self, raw: bytes) -> Turn | Trouble:
        """Return the answer to a request: the next turn of its play, or the error before it."""
        request = Request(json.loads(raw))
        if not request.has_tools:
            return Turn('{"title": "Scripted work"}')
        refused = self.guard(request)
        if refused is not None:
            return refused
        with self._lock:
            self.requests.append(request)
            key = json.dumps(request.messages, sort_keys=True).encode()
            tries, self._tries[key] = self._tries[key], self._tries[key] + 1
        turns = self.play(request)
        turn = turns[request.turns_taken] if request.turns_taken < len(turns) else Turn("There is nothing left to do.")
        return turn.before[tries] if tries < len(turn.before) else turn

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Count a request while it is being answered."""
        with self._lock:
            self.in_flight += 1
        try:
            yield
        finally:
            with self._lock:
                self.in_flight -= 1

    def events_of(self, turn: Turn, model: str, input_tokens: int) -> Iterator[tuple[str, Json]]:
        """Return the events of the API's stream for a turn."""
        with self._lock:
            message_id = f"msg_{next(self._ids):06}"
            call_ids = [f"toolu_{next(self._ids):06}" for _ in turn.calls]
        usage = {
            "input_tokens": input_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 1,
        }
        message: Json = {"id": message_id, "type": "message", "role": "assistant", "model": model, "content": []}
        message |= {"stop_reason": None, "stop_sequence": None, "usage": usage | dict(turn.usage)}
        yield "message_start", {"message": message}
        index = 0
        if turn.text:
            yield "content_block_start", {"index": index, "content_block": {"type": "text", "text": ""}}
            for line in turn.text.splitlines(keepends=True):
                yield "content_block_delta", {"index": index, "delta": {"type": "text_delta", "text": line}}
            yield "content_block_stop", {"index": index}
            index += 1
        for call_id, call in zip(call_ids, turn.calls, strict=True):
            block = {"type": "tool_use", "id": call_id, "name": call.tool, "input": {}}
            yield "content_block_start", {"index": index, "content_block": block}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(dict(call.input))}
            yield "content_block_delta", {"index": index, "delta": delta}
            yield "content_block_stop", {"index": index}
            index += 1
        output = turn.usage.get("output_tokens", max(1, len(turn.text) // 4 + 20 * len(turn.calls)))
        reason = {"stop_reason": "tool_use" if turn.calls else "end_turn", "stop_sequence": None}
        yield "message_delta", {"delta": reason, "usage": {"output_tokens": output}}
        yield "message_stop", {}
        with self._lock:
            self.served.append((model, {**message["usage"], "output_tokens": output}))
            self.told[message_id] = turn.text


class _Handler(BaseHTTPRequestHandler):
    """One connection of Claude Code."""

    protocol_version = "HTTP/1.1"
    server: ScriptedModel

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self._send(200, {"data": [], "has_more": False})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        if path.endswith("/v1/messages"):
            with self.server.answering():
                self._answer(raw)
        elif path.endswith("/count_tokens"):
            self._send(200, {"input_tokens": len(raw) // 4})
        else:
            self._send(200, {})

    def _answer(self, raw: bytes) -> None:
        match self.server.next_turn(raw):
            case Refusal(status, message, headers):
                error = {"type": ERROR_TYPES.get(status, "api_error"), "message": message}
                self._send(status, {"type": "error", "error": error}, headers)
            case HangUp(0):
                self.close_connection = True
            case HangUp(after_events):
                self._stream(Turn("I begin\nand stop\nin the middle"), raw, after_events)
            case Garbage(body):
                self._send_bytes(200, body, {"Content-Type": "text/html"})
            case Turn() as turn:
                time.sleep(turn.seconds)
                self._stream(turn, raw, None)

    def _stream(self, turn: Turn, raw: bytes, last_event: int | None) -> None:
        body = json.loads(raw)
        events = self.server.events_of(turn, str(body.get("model", "scripted")), len(raw) // 4)
        if not body.get("stream"):
            self._send(200, _joined(events))
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, (name, data) in enumerate(events):
            if number == last_event:
                self.close_connection = True
                return
            chunk = f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode()
            self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

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


def _blocks(message: Json) -> list[Json]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


def _text_of(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(block.get("text", "")) for block in content)
    return str(content or "")


def _user_text(message: Json) -> str:
    if message["role"] != "user":
        return ""
    texts = [block["text"] for block in _blocks(message) if block["type"] == "text"]
    return "\n".join(text for text in texts if not text.lstrip().startswith("<")).strip()


def _joined(events: Iterator[tuple[str, Json]]) -> Json:
    """Return the message that a stream of events describes."""
    message: Json = {}
    for name, data in events:
        if name == "message_start":
            message = data["message"]
        elif name == "content_block_start":
            message["content"].append(dict(data["content_block"]))
        elif name == "content_block_delta":
            block, delta = message["content"][data["index"]], data["delta"]
            if delta["type"] == "text_delta":
                block["text"] += delta["text"]
            else:
                block["input"] = json.loads(delta["partial_json"])
        elif name == "message_delta":
            message.update(data["delta"])
            message["usage"] |= data["usage"]
    return message
