"""Start, follow, confine and stop processes. Here: signals that were ignored when swarm-tui was started."""

from __future__ import annotations

import signal
from typing import Final

# Ignored by `nohup` and by shells that start a background job.
_OFTEN_IGNORED: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


def keep_ignored_signals_to_ourselves() -> None:
    """Keep ignoring these signals, but let the programs that we start receive them.

    Programs inherit ignored signals but not handlers. Otherwise tests could not be interrupted under `nohup`, and would
    have other results than in a terminal.
    """
    for number in _OFTEN_IGNORED:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
