"""Serve a folder on this machine, and post to a webhook."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Final
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from swarm_tui.errors import AdapterError

LOOPBACK: Final = "127.0.0.1"
_NAMES_OF_LOOPBACK: Final = frozenset({LOOPBACK, "localhost"})


class _Handler(SimpleHTTPRequestHandler):
    """Answers GET and HEAD for regular files inside the folder."""

    server_version = "swarm-tui"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 30

    def send_head(self) -> IO[bytes] | None:  # type: ignore[override]  # typeshed names two concrete classes
        # Another page could read ours through a domain name that resolves to this machine.
        host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        if host not in _NAMES_OF_LOOPBACK:
            self.send_error(HTTPStatus.FORBIDDEN, "this page is for this machine only")
            return None
        root = Path(self.directory).resolve()
        path = Path(self.translate_path(self.path))
        if path == root:
            path = root / "index.html"
        if not path.is_file() or not path.resolve().is_relative_to(root):
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        return super().send_head()

    def end_headers(self) -> None:
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, format: str, *words: object) -> None:
        """Log no requests."""


class _Server(ThreadingHTTPServer):
    """A server that ignores browsers that disconnect during an answer."""

    def handle_error(self, request: object, client_address: object) -> None:
        error = sys.exception()
        if not isinstance(error, OSError):
            print(f"cannot answer a request: {error!r}", file=sys.stderr)


def serve_folder(folder: Path, port: int, on_ready: Callable[[str], None]) -> None:
    """Serve a folder on the loopback until interrupted, and pass the address to `on_ready`. Port 0 is any free port."""
    try:
        server = _Server((LOOPBACK, port), partial(_Handler, directory=str(folder)))
    except (OSError, OverflowError) as error:
        raise AdapterError(
            f"cannot serve on port {port}", f"{error}; leave out the port to use any free one"
        ) from error
    with server:
        try:
            on_ready(f"http://{LOOPBACK}:{server.server_port}/")
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)


TIMEOUT: Final = 8.0
"""For each wait. The caller limits the total time."""


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirects, because a POST would become a GET."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def main() -> int:
    """Post standard input; return 1 with an error on standard error if it is not accepted."""
    address, _, body = sys.stdin.buffer.read().partition(b"\n")
    headers = {"Content-Type": "application/json", "User-Agent": "swarm-tui"}
    try:
        request = Request(address.decode(), data=body, headers=headers, method="POST")
        with build_opener(_NoRedirect).open(request, timeout=TIMEOUT) as answer:
            answer.read(1)
    except HTTPError as error:
        print(f"it answered {error.code}", file=sys.stderr)
        return 1
    except URLError as error:
        print(f"cannot connect: {error.reason}", file=sys.stderr)
        return 1
    except (OSError, ValueError, UnicodeError) as error:
        print(f"cannot post: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
