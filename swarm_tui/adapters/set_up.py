"""The project's own command for a fresh copy: how it is run, and what is said when it fails."""

from __future__ import annotations

import re
import shlex
from typing import Final

from swarm_tui.errors import AdapterError
from swarm_tui.model.text import plain, plain_lines

CHECKOUT_VARIABLE: Final = "SWARM_CHECKOUT"
"""Names the user's checkout to the command, which may copy something from there."""
LINES_TOLD: Final = 12
_LOG: Final = '"${TMPDIR:-/tmp}/swarm-set-up-$$.log"'
_BEGIN, _END = "swarm-tui: the last lines of the set-up:", "swarm-tui: the set-up ended with code"
_FAILURE: Final = re.compile(rf"{_BEGIN}$(.*?)^{_END} (\d+)$", re.MULTILINE | re.DOTALL)


class SetUpFailed(AdapterError):
    """The set-up command failed in a fresh copy."""

    def __init__(self, code: int, output: str) -> None:
        self.lines = [plain(line, 300) for line in plain_lines(output).strip().splitlines()[-LINES_TOLD:]]
        last = next((line.strip() for line in reversed(self.lines) if line.strip()), "it printed nothing")
        super().__init__(f"the set-up command failed with code {code} in a fresh copy", last)


def set_up_script(setup: str, checkout: str) -> str:
    """Return a shell script that runs the command in its working folder, and prints code and last lines of a failure.

    It is run by somebody else, who shows what it prints.
    """
    return (
        f"export {CHECKOUT_VARIABLE}={shlex.quote(checkout)}; log={_LOG}; ({setup}\n) > $log 2>&1; code=$?; "
        f'if [ $code != 0 ]; then echo "{_BEGIN}" >&2; '
        f'tail -n {LINES_TOLD} $log >&2 || echo "$log cannot be written" >&2; echo >&2; '
        f'echo "{_END} $code" >&2; fi; rm -f $log; exit $code'
    )


def read_failure(output: str) -> SetUpFailed | None:
    """Return the failure that the script printed, wherever it stands in an output; None when there is none."""
    found = _FAILURE.search(plain_lines(output))
    return SetUpFailed(int(found.group(2)), found.group(1)) if found else None
