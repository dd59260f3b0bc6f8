"""Test strength: whether a changed test became weaker, from its source and from mutation tests."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pydantic import BaseModel, ConfigDict


class StrengthChangeKind(StrEnum):
    """A change in the source of a test that makes it weaker or may do so."""

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
    SHADOWED = "what it tests was replaced"
    RENAMED = "its id no longer exists"


CERTAIN: Final = frozenset(
    {
        StrengthChangeKind.REMOVED,
        StrengthChangeKind.SKIPPED,
        StrengthChangeKind.XFAIL,
        StrengthChangeKind.NO_CHECK,
        StrengthChangeKind.NEVER_RUN,
        StrengthChangeKind.SWALLOWED,
    }
)
"""The test is weaker, whatever mutants it kills."""
LIKELY: Final = frozenset(
    {
        StrengthChangeKind.EMPTY,
        StrengthChangeKind.LOOSENED,
        StrengthChangeKind.WIDENED,
        StrengthChangeKind.BROADER,
        StrengthChangeKind.CONDITIONAL,
        StrengthChangeKind.SHADOWED,
    }
)
"""The test is weaker, unless it was measured to kill more mutants than before."""


class StrengthChange(BaseModel):
    """One change that makes a test weaker, or may do so."""

    model_config = ConfigDict(frozen=True)

    kind: StrengthChangeKind
    line: int = 0
    """The line in the new file; 0 if it was removed."""
    before: str = ""
    after: str = ""

    @property
    def words(self) -> str:
        return (
            f"{self.kind.value}: it is now {self.after}" if self.kind is StrengthChangeKind.RENAMED else self.kind.value
        )


class TestStrength(BaseModel):
    """The strength of one changed or new test."""

    __test__ = False

    model_config = ConfigDict(frozen=True)

    test: str
    file: str
    is_new: bool = False
    signs: tuple[StrengthChange, ...] = ()
    is_measured: bool = False
    faults: int = 0
    """The number of mutants of the code that it covers."""
    kills_before: int | None = None
    """The number of mutants that the original test killed; None if unknown."""
    kills_after: int | None = None
    missed: tuple[str, ...] = ()
    """Mutants that the original test killed and the changed test does not."""
    fails_without_fix: bool | None = None
    """Whether the changed test fails on the program without any fix; None if irrelevant."""
    failed_before: bool | None = None
    """Whether the original test failed on the original program and passed on the fixed one."""
    note: str = ""
    """What was not measured, with the reason."""

    @property
    def misses_bug(self) -> bool:
        """Whether the original test detected the fixed bug and the changed test would not."""
        return self.failed_before is True and self.fails_without_fix is False

    @property
    def is_weaker(self) -> bool:
        """Whether the changed test is weaker than the original."""
        kinds = {sign.kind for sign in self.signs} - {StrengthChangeKind.RENAMED}
        if kinds & CERTAIN or self.misses_bug:
            return True
        if not self.is_measured:
            return bool(kinds & LIKELY)
        if self.kills_before is None or self.kills_after is None:
            return bool(kinds)
        if self.kills_after > self.kills_before:
            return False
        # If the source shows no sign, one mutant proves little: `x == []` and `not x` already differ in one.
        return bool(kinds & LIKELY) or len(self.missed) >= (1 if kinds else 2)

    @property
    def is_renamed(self) -> bool:
        """Whether the test still exists under a different id."""
        return any(sign.kind is StrengthChangeKind.RENAMED for sign in self.signs)

    @property
    def detects_nothing(self) -> bool:
        """Whether a new test kills none of the mutants of the code that it covers."""
        return self.is_new and self.kills_after == 0 and self.faults > 0

    @property
    def kill_words(self) -> str:
        """The kills before and after, such as "kills 14 to 6 of 20 ▼"; "" if not measured."""
        if self.kills_after is None:
            return ""
        if self.kills_before is None:
            return f"kills {self.kills_after} of {self.faults}"
        arrow = " ▼" if self.kills_after < self.kills_before else " ▲" if self.kills_after > self.kills_before else ""
        return f"kills {self.kills_before} to {self.kills_after} of {self.faults}{arrow}"

    @property
    def words(self) -> str:
        """A summary in one line."""
        kinds = dict.fromkeys(sign.words for sign in self.signs)
        parts = [*kinds, *(["passes without the fix"] if self.misses_bug else []), self.kill_words, self.note]
        return ", ".join(part for part in parts if part)


def weakest_first(found: list[TestStrength]) -> list[TestStrength]:
    """Return weaker tests first, by lost kills, then new tests that kill nothing, then the others."""
    return sorted(
        found,
        key=lambda strength: (
            not strength.is_weaker,
            not strength.detects_nothing,
            (strength.kills_after or 0) - (strength.kills_before or 0),
            strength.test,
        ),
    )
