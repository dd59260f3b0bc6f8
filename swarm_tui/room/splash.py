"""Draws an empty frame while the room's modules are being imported. Does not import textual."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import termios
from collections.abc import Iterator
from typing import Final

from swarm_tui.adapters.processes.foreground import guarded_terminal
from swarm_tui.model.text import plain

ENTER: Final = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J"


def draw_splash(name: str, width: int, height: int, *, panel: str = "Tests", is_ascii: bool = False) -> str:
    """Return the frame as text: the name of the sweep, if there is one, and an empty panel."""
    left_top, right_top, left_bottom, right_bottom, across, down = list("++++-|" if is_ascii else "╭╮╰╯─│")
    title = f" {plain(name, 500)[:60]}"[:width]
    if height < 8 or width < 20:
        return title
    # The same layout as the room: two lines below the name, two below the panel.
    rows = [title, "", ""] if name else []
    rows.append(f"{left_top}{across} {panel} {across * (width - 5 - len(panel))}{right_top}")
    rows += [f"{down}{' ' * (width - 2)}{down}"] * (height - (7 if name else 2))
    rows.append(f"{left_bottom}{across * (width - 2)}{right_bottom}")
    return "\r\n".join(rows)


@contextlib.contextmanager
def splash(name: str, *, panel: str = "Tests", is_ascii: bool = False) -> Iterator[None]:
    """Show the frame immediately. The terminal is restored at the end, even after an error."""
    try:
        before = termios.tcgetattr(sys.stdin.fileno())
        width, height = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, termios.error, ValueError):
        yield
        return
    quiet = list(before)
    # Do not echo keys that are pressed during startup. The room reads them later.
    quiet[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, quiet)
    sys.stderr.write(ENTER + draw_splash(name, width, height, panel=panel, is_ascii=is_ascii))
    sys.stderr.flush()
    # Garbage collection during imports only costs time. The room enables it after startup.
    gc.disable()
    try:
        with guarded_terminal():
            yield
    finally:
        gc.enable()
        # The window may have been closed.
        with contextlib.suppress(termios.error):
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, before)
