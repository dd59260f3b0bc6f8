"""Short tests of command line programs: the `e2e` fixture's session and `expect`, imported when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarm_tui.e2e.expectations import expect
    from swarm_tui.e2e.result import CommandResult
    from swarm_tui.e2e.session import E2eSession
    from swarm_tui.e2e.terminal import Terminal

__all__ = ["CommandResult", "E2eSession", "Terminal", "expect"]

_MODULES = {"CommandResult": "result", "E2eSession": "session", "Terminal": "terminal", "expect": "expectations"}


def __getattr__(name: str) -> object:
    # The plugin beside us is loaded into every pytest of the environment: it must not pay for what it does not use.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
