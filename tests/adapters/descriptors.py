"""Counts the files that this process has open."""

from __future__ import annotations

import gc
import os


def open_descriptors() -> int:
    """Return how many files this process has open, after those of objects that nobody uses any more are closed."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))
