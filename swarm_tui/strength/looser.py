"""Decides whether an assertion became looser, which means that it accepts more values than before. Pure."""

from __future__ import annotations

import ast
import builtins
from typing import Final

from swarm_tui.model.test_strength import StrengthChangeKind
from swarm_tui.strength.source import Assertion, called_name

_STRICTNESS: Final[dict[type[ast.cmpop], int]] = {
    ast.Eq: 5, ast.Is: 5, ast.In: 3, ast.Lt: 3, ast.LtE: 3, ast.Gt: 3, ast.GtE: 3,
    ast.IsNot: 1, ast.NotEq: 1, ast.NotIn: 1,
}  # fmt: skip
"""How many of all values a comparison rejects."""
_TRUTH: Final = 2
_UNITTEST: Final[dict[str, type[ast.cmpop]]] = {
    "assertEqual": ast.Eq, "assertEquals": ast.Eq, "assertIs": ast.Is, "assertIn": ast.In, "assertNotIn": ast.NotIn,
    "assertNotEqual": ast.NotEq, "assertGreater": ast.Gt, "assertGreaterEqual": ast.GtE, "assertLess": ast.Lt,
    "assertLessEqual": ast.LtE, "assertIsNotNone": ast.IsNot, "assertIsNone": ast.Is, "assertListEqual": ast.Eq,
    "assertDictEqual": ast.Eq, "assertSequenceEqual": ast.Eq, "assertRegex": ast.In, "assertCountEqual": ast.In,
    "to_equal": ast.Eq, "to_be": ast.Eq, "to_contain": ast.In, "to_match": ast.In, "not_to_contain": ast.NotIn,
}  # fmt: skip
_TOLERANCES: Final = frozenset({"abs", "rel", "rel_tol", "abs_tol", "rtol", "atol", "delta", "tolerance", "tol"})
_PLACES: Final = frozenset({"places", "decimal", "ndigits", "significant"})
_DEFAULTS: Final = {"approx": 1e-6, "isclose": 1e-9, "assert_allclose": 1e-7, "allclose": 1e-5}
_DEFAULT_PLACES: Final = {"assertAlmostEqual": 7, "assert_almost_equal": 7, "round": 0}
_WIDER: Final = 1.0001
_ALMOST_ANY: Final = 1e-3
"""The tolerance above which an exact check became looser. Smaller ones only allow for float rounding."""
_REDUCING: Final = frozenset(
    {"sorted", "set", "frozenset", "lower", "upper", "strip", "casefold", "Counter", "split", "len", "bool", "type"}
)


def looser_reason(check: Assertion, other: Assertion) -> StrengthChangeKind | None:
    """Return why the second check is looser than the first one, or None."""
    if is_trivially_true(other.node) and not is_trivially_true(check.node):
        return StrengthChangeKind.EMPTY
    if check.is_exception and other.is_exception:
        return StrengthChangeKind.BROADER if _accepts_more(check.node, other.node) else None
    if _is_wider(check.node, other.node):
        return StrengthChangeKind.WIDENED
    return StrengthChangeKind.LOOSENED if _is_looser(check.node, other.node) else None


def is_trivially_true(node: ast.expr) -> bool:
    """Return whether a condition is always true, regardless of the program."""
    if isinstance(node, ast.Constant):
        return bool(node.value)
    if isinstance(node, ast.Tuple | ast.List):
        return bool(node.elts)
    if isinstance(node, ast.BoolOp):
        test = any if isinstance(node.op, ast.Or) else all
        return test(is_trivially_true(value) for value in node.values)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = node.left, node.comparators[0]
        if ast.dump(left) == ast.dump(right):
            return isinstance(node.ops[0], ast.Eq | ast.Is | ast.LtE | ast.GtE)
        if called_name(left) == "len" and isinstance(right, ast.Constant):
            return isinstance(node.ops[0], ast.GtE) and right.value == 0
        if isinstance(node.ops[0], ast.In) and isinstance(left, ast.Constant) and left.value == "":
            return True
        return isinstance(left, ast.Constant) and isinstance(right, ast.Constant)
    if isinstance(node, ast.Call):
        # assertTrue(True), assertEqual(x, x), expect(...).to_equal of the same value.
        name = called_name(node)
        if name == "assertTrue" and node.args:
            return is_trivially_true(node.args[0])
        if name in ("assertEqual", "assertIs") and len(node.args) > 1:
            return ast.dump(node.args[0]) == ast.dump(node.args[1])
        if name == "isinstance" and len(node.args) > 1:
            return ast.unparse(node.args[1]) == "object"
    return False


# Exceptions.


def _accepts_more(before: ast.expr, after: ast.expr) -> bool:
    old, new = _exceptions(before), _exceptions(after)
    if _has_match(before) and not _has_match(after) and old <= new:
        return True
    if old == new or not old or not new:
        return False
    return old < new or all(any(_is_wider_exception(wide, narrow) for wide in new) for narrow in old)


def _has_match(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and any(keyword.arg == "match" for keyword in node.keywords)


def _exceptions(node: ast.expr) -> frozenset[str]:
    if not isinstance(node, ast.Call) or not node.args:
        return frozenset()
    first = node.args[0]
    parts = first.elts if isinstance(first, ast.Tuple) else [first]
    return frozenset(ast.unparse(part).rpartition(".")[2] for part in parts)


def _is_wider_exception(wide: str, narrow: str) -> bool:
    if wide in ("Exception", "BaseException") and narrow != wide:
        return narrow != "BaseException"
    first, second = getattr(builtins, wide, None), getattr(builtins, narrow, None)
    if not (isinstance(first, type) and isinstance(second, type)):
        return False
    return first is not second and issubclass(second, first)


# Tolerances.


def _is_wider(before: ast.expr, after: ast.expr) -> bool:
    old, new = _tolerance(before), _tolerance(after)
    if new is not None and (old is not None or _is_exact(before)):
        limit = old * _WIDER if old is not None else _ALMOST_ANY
        return new > limit
    return _moved_bound(before, after)


def _is_exact(node: ast.expr) -> bool:
    return _operator(node) is ast.Eq


def _tolerance(node: ast.expr) -> float | None:
    """Return the widest tolerance that a check allows, or None if it has none."""
    found: list[float] = []
    for inner in ast.walk(node):
        if not isinstance(inner, ast.Call):
            continue
        name = called_name(inner)
        tolerances = []
        for keyword in inner.keywords:
            value = _number(keyword.value)
            if value is not None and keyword.arg in _TOLERANCES:
                tolerances.append(abs(value))
            elif value is not None and keyword.arg in _PLACES:
                tolerances.append(10.0**-value)
        if name == "approx" and len(inner.args) > 1 and (value := _number(inner.args[1])) is not None:
            tolerances.append(abs(value))
        if name in ("assertAlmostEqual", "assert_almost_equal") and len(inner.args) > 2:
            value = _number(inner.args[2])
            tolerances += [10.0**-value] if value is not None else []
        if name == "round":
            value = _number(inner.args[1]) if len(inner.args) > 1 else 0
            tolerances += [10.0**-value] if value is not None else []
        if not tolerances and name in _DEFAULTS:
            tolerances.append(_DEFAULTS[name])
        if not tolerances and name in _DEFAULT_PLACES:
            tolerances.append(10.0 ** -_DEFAULT_PLACES[name])
        found += tolerances
    if isinstance(node, ast.Compare) and called_name(node.left) == "abs" and isinstance(node.ops[0], ast.Lt | ast.LtE):
        value = _number(node.comparators[0])
        found += [abs(value)] if value is not None else []
    return max(found, default=None)


def _moved_bound(before: ast.expr, after: ast.expr) -> bool:
    """Return whether a limit was relaxed: raised if the value must be below it, lowered if above."""
    old, new = _bounds(before), _bounds(after)
    return any(
        (side == "below" and value > old[side]) or (side == "above" and value < old[side])
        for side, value in new.items()
        if side in old
    ) or bool(old.keys() - new.keys() and new and old.keys() > new.keys())


def _bounds(node: ast.expr) -> dict[str, float]:
    if not isinstance(node, ast.Compare):
        return {}
    found: dict[str, float] = {}
    sides = [node.left, *node.comparators]
    for place, operator in enumerate(node.ops):
        if not isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
            return {}
        left, right = _number(sides[place]), _number(sides[place + 1])
        is_less = isinstance(operator, ast.Lt | ast.LtE)
        if right is not None and left is None:
            found["below" if is_less else "above"] = right
        elif left is not None and right is None:
            found["above" if is_less else "below"] = left
    return found


def _number(node: ast.expr) -> float | None:
    """Return a literal number, including expressions such as -3 or 10 * 60."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, int | float) and not isinstance(node.value, bool):
            return float(node.value)
        return None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _number(node.operand)
        return None if value is None else -value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        left, right = _number(node.left), _number(node.right)
        if left is None or right is None or (isinstance(node.op, ast.Div) and not right):
            return None
        return left * right if isinstance(node.op, ast.Mult) else left / right
    return None


# Comparisons.


def _is_looser(before: ast.expr, after: ast.expr) -> bool:
    if isinstance(after, ast.BoolOp) and isinstance(after.op, ast.Or) and not isinstance(before, ast.BoolOp):
        return True
    if called_name(before) == "all" and called_name(after) == "any":
        return True
    old, new = _strictness(before), _strictness(after)
    if new < old:
        return not _is_as_strict(before, after)
    if _operator(before) is ast.In and _operator(after) is ast.In:
        return _shorter_text(before, after)
    return _is_reduced(before, after)


def _is_as_strict(before: ast.expr, after: ast.expr) -> bool:
    """Return whether a check that looks looser is equivalent: `x == True` and `x`, `x is False` and `not x`."""
    if _operator(before) in (ast.Eq, ast.Is) and isinstance(before, ast.Compare):
        value = before.comparators[0]
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            expected = after.operand if isinstance(after, ast.UnaryOp) else after
            is_negated = isinstance(after, ast.UnaryOp) and isinstance(after.op, ast.Not)
            return ast.dump(expected) == ast.dump(before.left) and is_negated is (not value.value)
        # `x == []` and `not x`; `len(x) == 0` and `not x`.
        is_nothing = (isinstance(value, ast.Constant) and value.value in (0, "")) or (
            isinstance(value, ast.List | ast.Tuple | ast.Dict) and not ast.dump(value).count("Constant(")
        )
        if is_nothing and isinstance(after, ast.UnaryOp) and isinstance(after.op, ast.Not):
            subject = (
                before.left.args[0]
                if called_name(before.left) == "len" and isinstance(before.left, ast.Call)
                else before.left
            )
            return ast.dump(after.operand) == ast.dump(subject)
    # A call with the expected value as an argument is as strict as `==`: assert_frame_equal(x, y).
    return isinstance(after, ast.Call) and _operator(after) is None and len(after.args) + len(after.keywords) > 1


def _strictness(node: ast.expr) -> int:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _TRUTH
    operator = _operator(node)
    if operator is not None:
        if (
            operator is ast.In
            and isinstance(node, ast.Compare)
            and isinstance(node.comparators[0], ast.Tuple | ast.List | ast.Set)
        ):
            return 4
        if operator is ast.Is and _expects_none(node):
            return 4
        return _STRICTNESS[operator]
    if isinstance(node, ast.BoolOp):
        return min(_strictness(value) for value in node.values)
    name = called_name(node)
    if name in ("startswith", "endswith", "match", "search", "fullmatch", "issubset"):
        return 3
    return (
        _TRUTH
        if not isinstance(node, ast.Call)
        or name in ("isinstance", "hasattr", "bool", "any", "all", "assertTrue", "callable", "assertIsInstance")
        else 3
    )


def _expects_none(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Compare)
        and isinstance(node.comparators[0], ast.Constant)
        and node.comparators[0].value is None
    )


def _operator(node: ast.expr) -> type[ast.cmpop] | None:
    """Return the operator of a check: of a single comparison, or of one of unittest's methods."""
    if isinstance(node, ast.Compare):
        return type(node.ops[0]) if len(node.ops) == 1 else ast.Lt
    return _UNITTEST.get(called_name(node))


def _shorter_text(before: ast.expr, after: ast.expr) -> bool:
    """Return whether a check looks for less text in the same place."""
    old, new = _looked_for(before), _looked_for(after)
    return old is not None and new is not None and old != new and new in old


def _looked_for(node: ast.expr) -> str | None:
    first = (
        node.left
        if isinstance(node, ast.Compare)
        else node.args[0]
        if isinstance(node, ast.Call) and node.args
        else None
    )
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def _is_reduced(before: ast.expr, after: ast.expr) -> bool:
    """Return whether a check compares less of the same value: sorted, lower-cased, its length or a part of it."""
    if not (isinstance(before, ast.Compare) and isinstance(after, ast.Compare)):
        return False
    if _operator(before) is not _operator(after) or _operator(before) is not ast.Eq:
        return False
    old, new = before.left, after.left
    inner = new
    names = []
    while isinstance(inner, ast.Call | ast.Subscript | ast.Attribute):
        if ast.dump(inner) == ast.dump(old):
            break
        if isinstance(inner, ast.Call):
            name = called_name(inner)
            if name not in _REDUCING:
                return False
            names.append(name)
            inner = inner.args[0] if inner.args else inner.func
        else:
            names.append("a part")
            inner = inner.value
    return bool(names) and ast.dump(inner) == ast.dump(old)
