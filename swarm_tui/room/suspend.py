"""Lends the terminal to another program for a while, and leaves it as it was when a signal ends the room."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

from textual.app import App, SuspendNotSupported

from swarm_tui.adapters.foreground import call_on_ending_signals, drop_late_answers
from swarm_tui.model.text import plain


def leave_on_signals(app: App[Any]) -> None:
    """Have TERM, HUP and QUIT leave an app as its own key does, so that the terminal is given back."""
    if not app.is_headless:
        call_on_ending_signals(asyncio.get_running_loop(), lambda code: app.exit(return_code=code))


def lend_terminal(app: App[Any], body: Callable[[], str]) -> str:
    """Run something that has the terminal for itself; return what went wrong, or "".

    Nothing is painted meanwhile and no error leaves the body: a suspended Textual that does either hangs
    (Textual #6692).
    """
    problem = ""
    try:
        with app.batch_update(), app.suspend():
            try:
                problem = body()
            except Exception as error:
                problem = plain(str(error), 300) or type(error).__name__
            if sys.__stdin__ is not None:
                drop_late_answers(sys.__stdin__.fileno())
    except SuspendNotSupported:
        problem = "this terminal cannot be handed over"
    return problem
