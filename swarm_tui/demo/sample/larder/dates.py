"""Best-before dates: read, compared, shown."""

from __future__ import annotations

import os
from datetime import date, timedelta


def today() -> date:
    """Give the day we live in; LARDER_TODAY sets it, so that examples stay true."""
    chosen = os.environ.get("LARDER_TODAY")
    return date.fromisoformat(chosen) if chosen else date.today()


def parse_date(text: str) -> date | None:
    """Read a best-before date; nothing at all means that it keeps for ever."""
    if not text.strip():
        return None
    return date.fromisoformat(text.strip())


def is_soon(best_before: date, days: int) -> bool:
    """Tell whether something has to be eaten within so many days, today and the last day included."""
    now = today()
    return now < best_before < now + timedelta(days=days)
