"""End-to-end tests of command line programs: the session of the `e2e` fixture, and `expect`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarm_tui.e2e.result import CommandResult, expect
    from swarm_tui.e2e.session import E2eSession
    from swarm_tui.e2e.terminal import Terminal

__all__ = ["CommandResult", "E2eSession", "Terminal", "expect"]

_MODULES = {"CommandResult": "result", "E2eSession": "session", "Terminal": "terminal", "expect": "result"}


def __getattr__(name: str) -> object:
    # pytest loads the plugin of this package in every run, which must not pay for modules that it does not use.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
