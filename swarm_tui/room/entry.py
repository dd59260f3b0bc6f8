"""Opens the room: on a sweep, on the fixes of a sweep, or on a branch outside a sweep."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from swarm_tui.adapters.processes.foreground import guarded_terminal
from swarm_tui.adapters.scratch import ScratchFolder
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.spec import MngrSettings, SweepSpec
from swarm_tui.room.app import RoomApp
from swarm_tui.room.settings import read_settings
from swarm_tui.room.store import Store

if TYPE_CHECKING:
    from swarm_tui.review.review import Review

FIRST_LOOK_SECONDS: Final = 0.08
"""Seconds for reading the journal before the first frame."""


def open_room(folder: Path, *, ascii: bool = False, at: float | None = None) -> int:
    """Open the room on a sweep folder, in the present or at an earlier moment. Return the exit code."""
    # Objects created at startup stay alive. Collecting them took a fifth of the startup time.
    gc.disable()
    store = Store(SweepFolder(folder))
    end = time.monotonic() + FIRST_LOOK_SECONDS
    while store.read_new_events() and time.monotonic() < end:
        pass
    return _run(RoomApp(store, read_settings(), is_ascii=ascii, at=at))


def open_fixes(folder: Path, *, ascii: bool = False, test_command: str = "") -> int:
    store = Store(SweepFolder(folder))
    return _run(RoomApp(store, read_settings(), is_ascii=ascii, home="fixes", test_command=test_command))


def open_review(review: Review, open_anew: Callable[[], Review], name: str, *, test_command: str = "") -> int:
    """Open the Fixes screen on a branch outside a sweep, in a room with an empty sweep of that name.

    `open_anew` opens the review again if the branch was rewritten.
    """

    with closing(ScratchFolder("swarm-review-")) as temporary:
        folder = SweepFolder(temporary.path / "review")
        folder.write_spec(
            SweepSpec(sweep=name, repository="", base="", created_at=time.time(), mngr=MngrSettings(path=""))
        )
        store = Store(folder)
        app = RoomApp(store, read_settings(), home="fixes", given_review=open_anew, test_command=test_command)
        app.opened_review = review
        return _run(app)


def _run(app: RoomApp) -> int:
    with guarded_terminal():
        farewell = app.run()
    if farewell:
        print(farewell, file=sys.stderr)
    reviewed = app.closing_line()
    if reviewed:
        print(reviewed)
    return app.return_code or 0
