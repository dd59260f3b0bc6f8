"""What becomes of the signals that swarm-tui was started to ignore."""

from __future__ import annotations

import signal
from typing import Final

# `nohup`, and shells that start something in the background, ignore these for it.
_OFTEN_IGNORED: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


def keep_ignored_signals_to_ourselves() -> None:
    """Go on ignoring the signals that we were started to ignore, but let the programs that we start take them.

    A program inherits what is ignored, but no handler: tests under `nohup` would not be interrupted, and so give other
    results than at a terminal.
    """
    for number in _OFTEN_IGNORED:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
