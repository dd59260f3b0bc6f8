"""Posts JSON to an address: a process of its own (`python -m swarm_tui.adapters.webhook`), so that it can be ended.

Standard input has the address in its first line, where `ps` does not show it, and the JSON after it.
"""

from __future__ import annotations

import sys
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

TIMEOUT: Final = 8.0
"""For each wait; whoever starts the process bounds the whole."""


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirection: a POST would become a GET."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def main() -> int:
    """Post what standard input says; return 1 with a sentence on standard error when it was not taken."""
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
        print(f"it cannot be reached: {error.reason}", file=sys.stderr)
        return 1
    except (OSError, ValueError, UnicodeError) as error:
        print(f"it cannot be posted to: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
