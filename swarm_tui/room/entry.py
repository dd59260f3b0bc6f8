"""The ways into the room: on a sweep, on the fixes of one, on a branch that no sweep made."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from swarm_tui.adapters.foreground import guarded_terminal
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.sweep import MngrSettings, SweepSpec
from swarm_tui.room.app import RoomApp
from swarm_tui.room.settings import Settings, read_settings
from swarm_tui.room.store import Store

if TYPE_CHECKING:
    from swarm_tui.triage.review import Review

FIRST_LOOK_SECONDS: Final = 0.08
"""What can be read of the journal in this time is there with the first frame."""


def open_room(folder: Path, *, ascii: bool = False, settings: Settings | None = None, at: float | None = None) -> int:
    """Open the room on a sweep folder, now or at an earlier moment, and return the exit code when it is left."""
    # Nothing that is read at the start is garbage; collecting took a fifth of the time.
    gc.disable()
    store = Store(SweepFolder(folder))
    end = time.monotonic() + FIRST_LOOK_SECONDS
    while store.read_new_events() and time.monotonic() < end:
        pass
    app = RoomApp(store, settings or read_settings(), is_ascii=ascii, at=at)
    return _run(app)


def open_fixes(folder: Path, *, ascii: bool = False, test_command: str = "") -> int:
    store = Store(SweepFolder(folder))
    return _run(RoomApp(store, read_settings(), is_ascii=ascii, home="fixes", test_command=test_command))


def open_review(review: Review, open_anew: Callable[[], Review], name: str, *, test_command: str = "") -> int:
    """Open the merge view on a branch that no sweep made: a room with an empty sweep of that name around it.

    `open_anew` opens the review of the branch when it was rewritten.
    """
    from swarm_tui.adapters.scratch import ScratchFolder

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
