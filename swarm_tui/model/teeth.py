"""What is known of the teeth of a changed test: what it checks no more, and how many small faults it notices."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pydantic import BaseModel, ConfigDict


class SignKind(StrEnum):
    """What an edit did to a test, as far as its source tells."""

    REMOVED = "the test is gone"
    SKIPPED = "skip added"
    XFAIL = "xfail added"
    NO_CHECK = "checks nothing any more"
    NEVER_RUN = "a check is never reached"
    SWALLOWED = "failures are swallowed"
    CONDITIONAL = "a check became conditional"
    EMPTY = "a check says nothing"
    LOOSENED = "a check was loosened"
    WIDENED = "a tolerance was widened"
    BROADER = "more exceptions are accepted"
    LOST = "a check is gone"
    CASES = "cases are gone"


CERTAIN: Final = frozenset(
    {SignKind.REMOVED, SignKind.SKIPPED, SignKind.XFAIL, SignKind.NO_CHECK, SignKind.NEVER_RUN, SignKind.SWALLOWED}
)
"""Whatever faults the test still notices, it may not notice the next one."""
LIKELY: Final = frozenset({SignKind.EMPTY, SignKind.LOOSENED, SignKind.WIDENED, SignKind.BROADER, SignKind.CONDITIONAL})
"""The test is weaker, unless it was measured to notice more than before."""


class Sign(BaseModel):
    """One thing that makes a test weaker, or may."""

    model_config = ConfigDict(frozen=True)

    kind: SignKind
    line: int = 0
    """In the new file; 0 for what is no more there."""
    before: str = ""
    after: str = ""


class TestTeeth(BaseModel):
    """What is known of one test that was changed or written."""

    __test__ = False

    model_config = ConfigDict(frozen=True)

    test: str
    file: str
    is_new: bool = False
    signs: tuple[Sign, ...] = ()
    is_measured: bool = False
    faults: int = 0
    """The faults that were made in the code that it covers."""
    kills_before: int | None = None
    """How many of them the test noticed as it was; None where that cannot be said."""
    kills_after: int | None = None
    missed: tuple[str, ...] = ()
    """Faults that it noticed before and does not notice now."""
    fails_without_fix: bool | None = None
    """Whether it fails on the program without any fix; None where it does not matter."""
    failed_before: bool | None = None
    """Whether it failed, as it was, on the program as it was, and not on the fixed one."""
    note: str = ""
    """What was not measured, and why."""

    @property
    def misses_bug(self) -> bool:
        """Whether it noticed the bug that was fixed, and would not notice it now."""
        return self.failed_before is True and self.fails_without_fix is False

    @property
    def is_weaker(self) -> bool:
        """Whether the test notices less than it did."""
        kinds = {sign.kind for sign in self.signs}
        if kinds & CERTAIN or self.misses_bug:
            return True
        if not self.is_measured:
            return bool(kinds & LIKELY)
        if self.kills_before is None or self.kills_after is None:
            return bool(kinds)
        if self.kills_after > self.kills_before:
            return False
        # Without a sign a single fault proves little: `x == []` and `not x` differ in one, where nobody means it.
        return bool(kinds & LIKELY) or len(self.missed) >= (1 if kinds else 2)

    @property
    def is_toothless(self) -> bool:
        """Whether a new test notices none of the faults in the code that it covers."""
        return self.is_new and self.kills_after == 0 and self.faults > 0

    @property
    def kill_words(self) -> str:
        """Return such as "kills 14 to 6 of 20 ▼", or ""."""
        if self.kills_after is None:
            return ""
        if self.kills_before is None:
            return f"kills {self.kills_after} of {self.faults}"
        sign = " ▼" if self.kills_after < self.kills_before else " ▲" if self.kills_after > self.kills_before else ""
        return f"kills {self.kills_before} to {self.kills_after} of {self.faults}{sign}"

    @property
    def words(self) -> str:
        """Return in one line what is known."""
        kinds = dict.fromkeys(sign.kind.value for sign in self.signs)
        parts = [*kinds, *(["passes without the fix"] if self.misses_bug else []), self.kill_words, self.note]
        return ", ".join(part for part in parts if part)


def weakest_first(found: list[TestTeeth]) -> list[TestTeeth]:
    """Return weaker tests first, those with the most lost kills before the others; then new ones without teeth."""
    return sorted(
        found,
        key=lambda teeth: (
            not teeth.is_weaker,
            not teeth.is_toothless,
            (teeth.kills_after or 0) - (teeth.kills_before or 0),
            teeth.test,
        ),
    )
