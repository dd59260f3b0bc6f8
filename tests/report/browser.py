"""A real Chromium for the tests of the page, driven over its debugging pipe: no port, no network, no other package."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from types import TracebackType
from typing import Any, Final, Self

from tests.programs import end_with_parent, require_program
from tests.waiting import PATIENCE

OPTIONS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
_TO_BROWSER, _FROM_BROWSER = 3, 4
"""The descriptors at which Chromium expects its debugging pipe."""


class Browser:
    """One browser with one page, in a profile of its own."""

    def __init__(self, width: int = 1280, height: int = 900) -> None:
        self._session = ""
        self._profile = tempfile.mkdtemp(prefix="swarm-browser-")
        self._received = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # High numbers first, so that neither is overwritten before it is copied to its place.
        ends = [os.dup(to_read), os.dup(to_write)]

        def place_pipe() -> None:
            end_with_parent()
            high = [os.dup2(end, 90 + place) for place, end in enumerate(ends)]
            os.dup2(high[0], _TO_BROWSER)
            os.dup2(high[1], _FROM_BROWSER)

        self._process = subprocess.Popen(
            [
                require_program("Chromium"),
                *OPTIONS,
                f"--user-data-dir={self._profile}",
                f"--window-size={width},{height}",
            ],
            close_fds=False,
            preexec_fn=place_pipe,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for end in (to_read, to_write, *ends):
            os.close(end)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, *, session: str | None = None, timeout: float = PATIENCE, **parameters: Any) -> Any:
        """Call one method of the DevTools protocol and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        chosen = self._session if session is None else session
        if chosen:
            message["sessionId"] = chosen
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + timeout
        while True:
            answer = self._next_message(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def open(self, address: str) -> None:
        """Go to an address and wait until the page has loaded."""
        self.call("Page.navigate", url=address)
        self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'")

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page; an exception there is a failure here."""
        told = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def wait_for(self, expression: str, timeout: float = PATIENCE) -> None:
        """Wait until an expression is true in the page."""
        deadline = time.monotonic() + timeout
        while not self.evaluate(f"Boolean({expression})"):
            assert time.monotonic() < deadline, f"never true: {expression}"
            self.evaluate("new Promise(done => setTimeout(done, 20))")

    def complaints(self) -> list[str]:
        """Return what the page complained about so far: errors, exceptions, refused loads."""
        found = []
        for event in self.events:
            told = event["params"]
            match event["method"]:
                case "Runtime.exceptionThrown":
                    found.append(json.dumps(told["exceptionDetails"])[:600])
                case "Runtime.consoleAPICalled" if told["type"] in ("error", "warning", "assert"):
                    found.append(json.dumps(told["args"])[:600])
                case "Log.entryAdded" if told["entry"]["level"] in ("error", "warning"):
                    found.append(json.dumps(told["entry"])[:600])
        return found

    def requested(self) -> list[str]:
        """Return the addresses that the page asked for."""
        return [
            event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"
        ]

    def screenshot(self) -> bytes:
        """Return a PNG of what is in view, still encoded in base64."""
        data: str = self.call("Page.captureScreenshot", format="png")["data"]
        return data.encode()

    def close(self) -> None:
        os.close(self._write)
        os.close(self._read)
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(PATIENCE)
        shutil.rmtree(self._profile, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _next_message(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser did not answer in time"
            block = os.read(self._read, 1 << 20)
            assert block, "the browser has ended"
            self._received += block
        message, _, self._received = self._received.partition(b"\0")
        told: dict[str, Any] = json.loads(message)
        return told
