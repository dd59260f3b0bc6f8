"""Says when agents of this machine may have come, gone, or another status, from when somebody wants to be told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from swarm_tui.adapters.file_notices import FileNotices, NoticedFile
from swarm_tui.adapters.process_ends import ProcessEnds

PAUSE: Final = 0.05
"""It is told once in so many seconds, however much happens."""


class LocalChanges:
    """Follows mngr's files and the agents' processes for one event loop.

    What is not told: that another program was started in the terminal of an agent.
    """

    def __init__(self, host_dir: Path, tell: Callable[[], object]) -> None:
        self._tell = tell
        self._notices = FileNotices()
        self._ends = ProcessEnds(tell)
        self._agents = host_dir / "agents"
        self._files: dict[Path, tuple[NoticedFile, ...]] = {self._agents: self._followed(self._agents / "*")}
        self.is_complete = False
        """Whether all that can be told is."""

    def follow(self, folders: Iterable[Path], process_ids: Iterable[int]) -> None:
        """Follow the agents with these folders, and the processes of their terminals."""
        wanted = {self._agents, *folders}
        for folder in self._files.keys() - wanted:
            for file in self._files.pop(folder):
                file.close()
        if new := wanted - self._files.keys():
            # What has changed before they were followed.
            self._tell()
        for folder in new:
            # mngr notes in a file when it starts an agent that was stopped.
            self._files[folder] = self._followed(folder / "*", folder / "activity" / "start")
        are_noticed = all(file.is_noticed for files in self._files.values() for file in files)
        self.is_complete = self._ends.follow(process_ids) and are_noticed

    def _followed(self, *paths: Path) -> tuple[NoticedFile, ...]:
        return tuple(self._notices.follow(path, self._tell, pause=PAUSE) for path in paths)

    def close(self) -> None:
        self._notices.close()
        self._ends.close()
