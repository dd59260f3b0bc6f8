"""An integrated branch, its fixes, and the preview of a plan of verdicts on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    pass

PART_PREFIX: Final = "part-"
"""The prefix of ids of test changes."""
