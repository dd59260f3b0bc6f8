"""Which tests are marked, with undo: frozen sets, one behind the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

STEPS_KEPT = 200


@dataclass(frozen=True, slots=True)
class Marks:
    """The marked tests and how they came to be marked."""

    tests: frozenset[str] = frozenset()
    _before: tuple[frozenset[str], ...] = ()
    _after: tuple[frozenset[str], ...] = ()

    def changed_to(self, tests: Iterable[str]) -> Marks:
        marked = frozenset(tests)
        if marked == self.tests:
            return self
        return Marks(marked, (*self._before, self.tests)[-STEPS_KEPT:])

    def undone(self) -> Marks:
        if not self._before:
            return self
        return Marks(self._before[-1], self._before[:-1], (self.tests, *self._after))

    def redone(self) -> Marks:
        if not self._after:
            return self
        return replace(self, tests=self._after[0], _before=(*self._before, self.tests), _after=self._after[1:])

    @property
    def can_undo(self) -> bool:
        return bool(self._before)

    @property
    def can_redo(self) -> bool:
        return bool(self._after)
