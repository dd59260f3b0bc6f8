"""Compares what a test checked with what it checks now. Pure.

Only what makes a test weaker is a sign: a check that another value satisfies which the old one refused. That a test
expects something else is none.
"""

from __future__ import annotations

import ast
import difflib
from collections import Counter
from collections.abc import Sequence
from typing import Final

from swarm_tui.model.teeth import Sign, SignKind
from swarm_tui.model.text import plain
from swarm_tui.teeth.checks import Assertion, called_name, checks_of
from swarm_tui.teeth.looser import why_looser
from swarm_tui.teeth.sources import ChangedTest, TestSource

_LEAST_ALIKE: Final = 0.4
_TEXT_LIMIT: Final = 160
_SKIPPING: Final = frozenset({"skip", "skipif", "skipIf", "skipUnless", "importorskip", "SkipTest", "skipTest"})
_EXPECTED_TO_FAIL: Final = frozenset({"xfail", "expectedFailure"})


def signs_of(changed: ChangedTest) -> tuple[Sign, ...]:
    """Return what the source says of a test that became weaker; nothing of a new one."""
    old, new = changed.before, changed.after
    if old is None:
        return ()
    if new is None:
        return (Sign(kind=SignKind.REMOVED, before=f"def {old.node.name}"),)
    found = _new_marks(old, new) + _lost_cases(old, new)
    was, now = checks_of(old), checks_of(new)
    if was and not [check for check in now if not check.is_unreachable]:
        kind = SignKind.NEVER_RUN if now else SignKind.NO_CHECK
        return (*found, _sign(kind, now[0].line if now else new.node.lineno, was[0].text))
    return (*found, *_compare(was, now))


def _sign(kind: SignKind, line: int, before: str = "", after: str = "") -> Sign:
    return Sign(kind=kind, line=line, before=plain(before, _TEXT_LIMIT), after=plain(after, _TEXT_LIMIT))


# Marks, and calls that skip.


def _new_marks(old: TestSource, new: TestSource) -> list[Sign]:
    before, after = Counter(_skips(old)), Counter(_skips(new))
    signs = []
    for (name, text), count in after.items():
        if count > before[name, text]:
            kind = SignKind.XFAIL if name in _EXPECTED_TO_FAIL else SignKind.SKIPPED
            signs.append(_sign(kind, new.node.lineno, after=text))
    return signs


def _skips(test: TestSource) -> list[tuple[str, str]]:
    """Return the marks and calls by which a test is skipped or may fail, each with its text."""
    found = []
    for mark in test.marks:
        for part in mark.elts if isinstance(mark, ast.List | ast.Tuple) else [mark]:
            name = called_name(part) or ast.unparse(part).rpartition(".")[2]
            if name in _SKIPPING | _EXPECTED_TO_FAIL:
                found.append((name, ast.unparse(part)))
    for function in (test.node, *test.helpers):
        for node in ast.walk(function):
            name = called_name(node)
            if isinstance(node, ast.Call) and name in _SKIPPING | _EXPECTED_TO_FAIL and _is_of_pytest(node.func):
                found.append((name, ast.unparse(node)))
            elif isinstance(node, ast.Raise) and node.exc is not None and "SkipTest" in ast.unparse(node.exc):
                found.append(("SkipTest", ast.unparse(node)))
    return found


def _is_of_pytest(function: ast.expr) -> bool:
    holder = ast.unparse(function.value) if isinstance(function, ast.Attribute) else "pytest"
    return holder in ("pytest", "self", "unittest", "pytest.mark", "mark")


def _lost_cases(old: TestSource, new: TestSource) -> list[Sign]:
    """Return whether a test has fewer cases by its marks, or by a loop over values that stand there."""
    before, after = _cases(old), _cases(new)
    if after >= before or not before:
        return []
    return [_sign(SignKind.CASES, new.node.lineno, f"{before} cases", f"{after} cases" if after else "no cases")]


def _cases(test: TestSource) -> int:
    """Return how many different sets of values a test is run with, as far as they stand in its source."""
    number = 0
    for mark in test.marks:
        if called_name(mark) == "parametrize" and isinstance(mark, ast.Call) and len(mark.args) > 1:
            number = max(number, 1) * _different(mark.args[1])
    for node in ast.walk(test.node):
        if isinstance(node, ast.For):
            number += _different(node.iter)
    return number


def _different(node: ast.expr) -> int:
    values = node.elts if isinstance(node, ast.List | ast.Tuple | ast.Set) else []
    return len({ast.dump(value) for value in values})


# Checks.


def _compare(was: Sequence[Assertion], now: Sequence[Assertion]) -> list[Sign]:
    signs: list[Sign] = []
    left = list(now)
    missing: list[Assertion] = []
    for check in was:
        same = next((other for other in left if other.text == check.text), None)
        if same is None:
            missing.append(check)
            continue
        left.remove(same)
        signs += _reached_less(check, same)
    # The most alike first, so that each finds what it has become.
    pairs = sorted(
        (
            (_alikeness(check, other), place, number)
            for place, check in enumerate(missing)
            for number, other in enumerate(left)
        ),
        reverse=True,
    )
    partner: dict[int, int] = {}
    for alike, place, number in pairs:
        if alike >= _LEAST_ALIKE and place not in partner and number not in partner.values():
            partner[place] = number
    lost = [check for place, check in enumerate(missing) if place not in partner]
    spare = len(left) - len(partner)
    for place, check in enumerate(missing):
        if place not in partner:
            continue
        other = left[partner[place]]
        signs += _reached_less(check, other)
        kind = why_looser(check, other)
        # What an exception says may be checked after it: `assert str(caught.value) == ...`.
        is_checked_after = kind is SignKind.BROADER and spare > 0
        if kind is not None and not is_checked_after:
            signs.append(_sign(kind, other.line, check.text, other.text))
    signs += [_sign(SignKind.LOST, 0, check.text) for check in lost[spare:]]
    return signs


def _reached_less(check: Assertion, other: Assertion) -> list[Sign]:
    """Return what keeps a check from being made, or from failing the test, that did not before."""
    if other.is_swallowed and not check.is_swallowed:
        return [_sign(SignKind.SWALLOWED, other.line, check.text, other.text)]
    if other.is_unreachable and not check.is_unreachable:
        return [_sign(SignKind.NEVER_RUN, other.line, check.text, other.text)]
    if other.is_conditional and not check.is_conditional:
        return [_sign(SignKind.CONDITIONAL, other.line, check.text, other.text)]
    return []


def _alikeness(check: Assertion, other: Assertion) -> float:
    """Return how likely one check has become the other: by their subjects, which count most, and by their texts."""
    if check.is_exception != other.is_exception:
        return 0.0
    if check.is_exception:
        return 0.5 + 0.5 * difflib.SequenceMatcher(None, check.text, other.text, autojunk=False).ratio()
    subjects = subject_of(check.node), subject_of(other.node)
    same = difflib.SequenceMatcher(None, *subjects, autojunk=False).ratio()
    texts = difflib.SequenceMatcher(None, check.text, other.text, autojunk=False).ratio()
    return 0.7 * same + 0.3 * texts


def subject_of(node: ast.expr) -> str:
    """Return what a check is about: the left side of a comparison, what is asserted about, what raises."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return subject_of(node.operand)
    if isinstance(node, ast.BoolOp):
        return subject_of(node.values[0])
    if isinstance(node, ast.Compare):
        left, right = node.left, node.comparators[-1]
        # `5 == x` is about x, and `"a" in out` about out.
        return ast.unparse(right if isinstance(left, ast.Constant) and not isinstance(right, ast.Constant) else left)
    if isinstance(node, ast.Call):
        # `expect(x).to_equal(y)` is about x.
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
            return subject_of(node.func.value)
        return ast.unparse(node.args[0]) if node.args else ast.unparse(node.func)
    return ast.unparse(node)
