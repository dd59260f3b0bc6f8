"""What a test checked and checks now."""

from __future__ import annotations

import ast
import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.history import read_tree_changes
from swarm_tui.errors import SwarmError
from swarm_tui.model.test_strength import CERTAIN, LIKELY, StrengthChange, StrengthChangeKind
from swarm_tui.model.text import plain
from swarm_tui.review.tests import is_test_file
from swarm_tui.strength.looser import looser_reason
from swarm_tui.strength.source import (
    Assertion,
    ChangedTest,
    FunctionNode,
    TestSource,
    called_name,
    changed_tests,
    checks_of,
    compare_tests,
)
from swarm_tui.testing.traced import without_case

_LEAST_ALIKE: Final = 0.4
_TEXT_LIMIT: Final = 160
_SKIPPING: Final = frozenset({"skip", "skipif", "skipIf", "skipUnless", "importorskip", "SkipTest", "skipTest"})
_EXPECTED_TO_FAIL: Final = frozenset({"xfail", "expectedFailure"})


def signs_of(changed: ChangedTest) -> tuple[StrengthChange, ...]:
    """Return the weakening changes in the source of a test; empty for a new test."""
    old, new = changed.before, changed.after
    if old is None:
        return ()
    if new is None:
        return (StrengthChange(kind=StrengthChangeKind.REMOVED, before=f"def {old.node.name}"),)
    found = _new_marks(old, new) + _lost_cases(old, new) + _shadowed(old, new)
    before, after = checks_of(old), checks_of(new)
    if before and not [check for check in after if not check.is_unreachable]:
        kind = StrengthChangeKind.NEVER_RUN if after else StrengthChangeKind.NO_CHECK
        return (*found, _sign(kind, after[0].line if after else new.node.lineno, before[0].text))
    return (*found, *_compare(before, after))


def _sign(kind: StrengthChangeKind, line: int, before: str = "", after: str = "") -> StrengthChange:
    return StrengthChange(kind=kind, line=line, before=plain(before, _TEXT_LIMIT), after=plain(after, _TEXT_LIMIT))


# Marks, and calls that skip.


def _new_marks(old: TestSource, new: TestSource) -> list[StrengthChange]:
    before, after = Counter(_skips(old)), Counter(_skips(new))
    signs = []
    for (name, text), count in after.items():
        if count > before[name, text]:
            kind = StrengthChangeKind.XFAIL if name in _EXPECTED_TO_FAIL else StrengthChangeKind.SKIPPED
            signs.append(_sign(kind, new.node.lineno, after=text))
    return signs


def _skips(test: TestSource) -> list[tuple[str, str]]:
    """Return the marks and calls that skip a test or allow it to fail, each with its text."""
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


def _lost_cases(old: TestSource, new: TestSource) -> list[StrengthChange]:
    """Return a change if a test has fewer cases, through its marks or through a loop over literal values."""
    before, after = _cases(old), _cases(new)
    if after >= before or not before:
        return []
    return [
        _sign(StrengthChangeKind.CASES, new.node.lineno, f"{before} cases", f"{after} cases" if after else "no cases")
    ]


def _shadowed(old: TestSource, new: TestSource) -> list[StrengthChange]:
    """Return the names that a test used from outside and now defines itself, such as a default of an argument."""
    called = _called_names(old.node) - _own_names(old.node)
    return [
        _sign(StrengthChangeKind.SHADOWED, line, before=name)
        for name, line in _own_lines(new.node).items()
        if name in called
    ]


def _called_names(node: FunctionNode) -> set[str]:
    """Return the names that a function calls, or calls a method of."""
    names = set()
    for call in ast.walk(node):
        function = call.func if isinstance(call, ast.Call) else None
        while isinstance(function, ast.Attribute):
            function = function.value
        if isinstance(function, ast.Name):
            names.add(function.id)
    return names


def _own_names(node: FunctionNode) -> set[str]:
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    return {argument.arg for argument in arguments} | set(_own_lines(node))


def _own_lines(node: FunctionNode) -> dict[str, int]:
    """Return the names that a function sets, in its body or as arguments with a default, with their lines."""
    positional = (*node.args.posonlyargs, *node.args.args)
    with_default = positional[len(positional) - len(node.args.defaults) :] if node.args.defaults else ()
    pairs = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    found = {each.arg: each.lineno for each in (*with_default, *(each for each, value in pairs if value is not None))}
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            found.setdefault(each.id, each.lineno)
        elif isinstance(each, FunctionNode | ast.ClassDef) and each is not node:
            found.setdefault(each.name, each.lineno)
    return found


def _cases(test: TestSource) -> int:
    """Return the number of different parameter sets of a test, if they are literals in its source."""
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


def _compare(before: Sequence[Assertion], after: Sequence[Assertion]) -> list[StrengthChange]:
    signs: list[StrengthChange] = []
    left = list(after)
    missing: list[Assertion] = []
    for check in before:
        same = next((other for other in left if other.text == check.text), None)
        if same is None:
            missing.append(check)
            continue
        left.remove(same)
        signs += _reached_less(check, same)
    # Match the most similar checks first.
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
        kind = looser_reason(check, other)
        # The message of an exception may be checked later: `assert str(caught.value) == ...`.
        is_checked_after = kind is StrengthChangeKind.BROADER and spare > 0
        if kind is not None and not is_checked_after:
            signs.append(_sign(kind, other.line, check.text, other.text))
    signs += [_sign(StrengthChangeKind.LOST, 0, check.text) for check in lost[spare:]]
    return signs


def _reached_less(check: Assertion, other: Assertion) -> list[StrengthChange]:
    """Return new reasons why a check may not run or may not fail the test."""
    if other.is_swallowed and not check.is_swallowed:
        return [_sign(StrengthChangeKind.SWALLOWED, other.line, check.text, other.text)]
    if other.is_unreachable and not check.is_unreachable:
        return [_sign(StrengthChangeKind.NEVER_RUN, other.line, check.text, other.text)]
    if other.is_conditional and not check.is_conditional:
        return [_sign(StrengthChangeKind.CONDITIONAL, other.line, check.text, other.text)]
    return []


def _alikeness(check: Assertion, other: Assertion) -> float:
    """Return how likely one check replaces the other, by their subjects, which count most, and by their texts."""
    if check.is_exception != other.is_exception:
        return 0.0
    if check.is_exception:
        return 0.5 + 0.5 * difflib.SequenceMatcher(None, check.text, other.text, autojunk=False).ratio()
    subjects = subject_of(check.node), subject_of(other.node)
    same = difflib.SequenceMatcher(None, *subjects, autojunk=False).ratio()
    texts = difflib.SequenceMatcher(None, check.text, other.text, autojunk=False).ratio()
    return 0.7 * same + 0.3 * texts


def subject_of(node: ast.expr) -> str:
    """Return the subject of a check: the left side of a comparison, the asserted value, or the call that raises."""
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


_FILES_READ: Final = 50
_NAMED: Final = 3


def why_weaker(repository: Repository, base: str, tip: str, file: str, test: str) -> str:
    """Return how a test became weaker between two commits, or "" if its source does not show it."""
    name = without_case(test).partition("::")[2]
    for changed in changed_tests(*_sources(repository, base, tip, [file])):
        if changed.before is not None and changed.before.name == name:
            return _words(signs_of(changed))
    return ""


def remarks_on_tests(repository: Repository, base: str, tip: str, file: str, test: str) -> tuple[str, ...]:
    """Return sentences about test ids that disappeared by renames, and about other tests that became weaker.

    `file` is the file of the agent's own test.
    """
    try:
        trees = repository.tree_of(base), repository.tree_of(tip)
        paths = [change.path for change in read_tree_changes(repository, *trees)]
    except SwarmError:
        return ()
    files = [path for path in paths if is_test_file(path) or path == file][:_FILES_READ]
    before, after = _sources(repository, base, tip, files)
    own = f"{file}::{without_case(test).partition('::')[2]}"
    compared = compare_tests(before, after)
    renamed = [f"{_old_id(each)} is now {each.file}::{each.name}" for each in compared if each.is_renamed]
    weaker = [
        f"{_old_id(changed)}: {words}"
        for changed in compared
        if changed.is_changed
        and changed.before is not None
        and _old_id(changed) != own
        and (words := _words(signs_of(changed)))
    ]
    return (
        *_sentence("renamed tests whose old ids no longer exist", renamed),
        *_sentence("weakened other tests", weaker),
    )


def _sources(
    repository: Repository, base: str, tip: str, files: Iterable[str]
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return the contents of the files in two commits, without files that are unreadable in one of them."""
    before, after = {}, {}
    for file in files:
        try:
            before[file], after[file] = (repository.read_file(commit, file) for commit in (base, tip))
        except SwarmError:
            continue
    return before, after


def _old_id(changed: ChangedTest) -> str:
    return f"{changed.file_before}::{changed.before.name if changed.before is not None else changed.name}"


def _words(signs: Iterable[StrengthChange]) -> str:
    return ", ".join(dict.fromkeys(sign.kind.value for sign in signs if sign.kind in CERTAIN | LIKELY))


def _sentence(beginning: str, entries: list[str]) -> tuple[str, ...]:
    listed = "; ".join(plain(entry, 120) for entry in entries[:_NAMED])
    more = f" and {len(entries) - _NAMED} more" if len(entries) > _NAMED else ""
    return (f"{beginning}: {listed}{more}",) if entries else ()
