"""Times, ages, money, counts and sizes as people read them."""

from __future__ import annotations

from datetime import datetime


def duration(seconds: float) -> str:
    """Return a time span: `41s`, `6m12s`, `2h05m`, `3d04h`."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02}h"


def age(seconds: float) -> str:
    """Return how long ago something was: `12 s ago`, `4 min ago`."""
    whole = max(0, int(seconds))
    if whole < 2:
        return "now"
    if whole < 60:
        return f"{whole} s ago"
    if whole < 3600:
        return f"{whole // 60} min ago"
    if whole < 86400:
        return f"{whole // 3600} h ago"
    return f"{whole // 86400} d ago"


def clock(seconds: float) -> str:
    """Return an elapsed time as a clock shows it: `12:41`, `1:02:41`."""
    whole = max(0, int(seconds))
    if whole < 3600:
        return f"{whole // 60:02}:{whole % 60:02}"
    return f"{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"


def wall_clock(at: float) -> str:
    """Return the time of day of a moment: `12:04:31`."""
    return datetime.fromtimestamp(at).strftime("%H:%M:%S")


def money(dollars: float | None) -> str:
    """Return an amount: `$3.42`, or `?` when it is not known."""
    if dollars is None:
        return "?"
    return f"${dollars:,.0f}" if dollars >= 1000 else f"${dollars:.2f}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return `1 test`, `3 tests`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def file_size(size: int) -> str:
    """Return a number of bytes: `812 bytes`, `3.4 MB`."""
    amount = float(size)
    for unit in ("bytes", "KB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"
