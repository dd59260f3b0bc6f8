"""Requests to an engine: people append them, the engine reads each once and answers with an event."""

from __future__ import annotations

import getpass
import time
import uuid
from typing import Unpack

from swarm_tui.journal.append import LineAppender
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.follow import LineFollower
from swarm_tui.journal.seal import Sealing, sealer_of, split_seal
from swarm_tui.model.requests import Request, RequestDetails, RequestKind


def append_request(folder: SweepFolder, kind: RequestKind, **details: Unpack[RequestDetails]) -> Request:
    """Append a request for the engine and return it; the event that answers it has its id."""
    made = {"id": uuid.uuid4().hex[:12], "at": time.time(), "by": person(), "kind": kind}
    request = Request.model_validate({**details, **made})
    lines = LineAppender(folder.requests)
    line = request.model_dump_json(exclude_none=True).encode()
    sealer = sealer_of(folder.name, is_writing=True)
    try:
        lines.append(line if sealer is None else sealer.seal(line))
    finally:
        lines.close()
    return request


def person() -> str:
    """Return the name of this person in requests and verdicts."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "someone"


class RequestFollower:
    """Returns each request once. Requests that were answered before a crash are known from the events."""

    def __init__(self, folder: SweepFolder) -> None:
        self._lines = LineFollower(folder.requests)
        self._sealer = sealer_of(folder.name)
        self.foreign: set[str] = set()
        """The ids of requests that no swarm-tui of this person has written."""

    def read(self) -> tuple[list[Request], list[str]]:
        """Return the new requests, and the reason for each line that is none."""
        lines, _ = self._lines.read()
        requests, refused = [], []
        for _, line in lines:
            if not line.strip():
                continue
            try:
                request = Request.model_validate_json(split_seal(line)[0])
            except ValueError as error:
                refused.append(str(error).split("\n")[0][:200])
                continue
            requests.append(request)
            if self._sealer is not None and self._sealer.look_at(line) is not Sealing.OURS:
                self.foreign.add(request.id)
        return requests, refused
