"""Says at once when processes end, by the descriptors that Linux has for them; elsewhere one has to look."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
from collections.abc import Callable, Iterable
from typing import Final

SHARE_OF_DESCRIPTORS: Final = 4
"""So many processes are followed as leave the other parts of the descriptors that we may open."""


class ProcessEnds:
    """Follows processes for one event loop, also those that are not our children."""

    def __init__(self, tell: Callable[[], object]) -> None:
        self._tell = tell
        self._descriptors: dict[int, int] = {}
        """By process id."""

    def follow(self, process_ids: Iterable[int]) -> bool:
        """Follow these processes and no others; return whether all their ends will be told."""
        wanted = set(process_ids)
        for process_id in self._descriptors.keys() - wanted:
            self._forget(process_id)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // SHARE_OF_DESCRIPTORS
        return len(wanted) <= most and all(self._open(one) for one in wanted - self._descriptors.keys())

    def close(self) -> None:
        for process_id in list(self._descriptors):
            self._forget(process_id)

    def _open(self, process_id: int) -> bool:
        if not hasattr(os, "pidfd_open"):
            return False
        try:
            descriptor = os.pidfd_open(process_id)
        except ProcessLookupError:
            # It has ended since it was seen.
            asyncio.get_running_loop().call_soon(self._tell)
            return True
        except OSError:
            return False
        self._descriptors[process_id] = descriptor
        asyncio.get_running_loop().add_reader(descriptor, self._take_end, process_id)
        return True

    def _take_end(self, process_id: int) -> None:
        self._forget(process_id)
        self._tell()

    def _forget(self, process_id: int) -> None:
        descriptor = self._descriptors.pop(process_id)
        with contextlib.suppress(RuntimeError):
            asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)
