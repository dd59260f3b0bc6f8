"""Causes are equal despite different places and values, and different despite equal wrappers."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.failures.causes import CAUSE_LIMIT, cause_of_failure, cause_of_text
from swarm_tui.failures.events import FailureDetail, RaisedError, parse_failure
from swarm_tui.model.text import plain


def cause(type: str, message: str = "", **fields: object) -> str:
    error = msgspec.convert({"type": type, "message": message, **fields}, RaisedError)
    return cause_of_failure("", FailureDetail(errors=(error,)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("test_login.py:10: ConnectionRefusedError: [Errno 1]", "test_cart.py:4: ConnectionRefusedError: [Errno 61]"),
        ("users.py:3: KeyError: 'alice'", "users.py:3: KeyError: 'bob'"),
        ("timed out after 30 s", "timed out after 45.5 s"),
        ("no server at /tmp/tmux-0/a", "no server at /tmp/tmux-1000/swarm-12"),
        ("no host 3f2a9bcd-11aa-4f3a-9bcd-0123456789ab", "no host 00aa9bcd-1bcd-4abc-8888-abcdef012345"),
        ("request req_8fK2jd93 failed", "request req_77aBc12x failed"),
        ("7 bytes are left", "12345678 bytes are left"),
        ("1 item is missing", "3 items is missing"),
        ("cannot check out 3f2a9bc", "cannot check out 71d04fa0"),
        ("<app.User object at 0x7f001122>", "<app.User object at 0x55aa>"),
        ("test_a.py:1: OSError: cannot read ./data/a.json", "test_a.py:9: OSError: cannot read ../b/c/d.json"),
        ("test_a.py:1: IOError: 2026-01-02T10:11:12Z is late", "test_a.py:9: IOError: 2025-11-30 09:01:00 is late"),
        ("a.py:1: E: http://localhost:81/x is down", "a.py:1: E: https://example.org/y?z=1 is down"),
        ("a.py:1: ValueError: [1, 2, 3] has no 4", "a.py:1: ValueError: [] has no 5"),
        ("CalledProcessError: Command '['git', 'push']' returned non-zero exit status 1.",
         "CalledProcessError: Command 'git pull' returned non-zero exit status 128."),
    ],
)  # fmt: skip
def test_same_cause_with_different_values(one: str, other: str) -> None:
    assert cause_of_text(one) == cause_of_text(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("fixture 'host' not found", "fixture 'disk' not found"),
        ("a.py:1: ModuleNotFoundError: No module named 'a'", "a.py:1: ModuleNotFoundError: No module named 'b'"),
        ("a.py:1: AttributeError: 'A' object has no attribute 'x'",
         "a.py:1: AttributeError: 'A' object has no attribute 'y'"),
        ("a.py:1: ApiError: HTTP 401 for /x", "a.py:1: ApiError: HTTP 503 for /x"),
        ("users.py:3: KeyError: 'alice'", "carts.py:3: KeyError: 'alice'"),
        ("a.py:1: OSError: Command 'git' died with 9", "a.py:1: OSError: Command 'make' died with 9"),
        ("can't open it, don't ask", "can't close it, don't ask"),
    ],
)  # fmt: skip
def test_two_causes(one: str, other: str) -> None:
    assert cause_of_text(one) != cause_of_text(other)


def test_program_error_cause_includes_place() -> None:
    place = {"file": "shop/cart.py", "function": "load"}
    assert cause("shop.Broken", "cart 7", **place) == cause("shop.Broken", "cart 8", **place)
    assert cause("shop.Broken", "cart 7", **place) != cause(
        "shop.Broken", "cart 7", file="shop/cart.py", function="save"
    )
    by_name = [cause("KeyError", f"'{name}'", statement="return users[name]", **place) for name in ("alice", "bob")]
    assert by_name[0] == by_name[1]
    assert cause("KeyError", "'a'", statement="x[a]", **place) != cause("KeyError", "'a'", statement="y[a]", **place)


def test_variable_values_do_not_split_cause() -> None:
    one = cause("shop.Missing", "user alice not found", file="a.py", function="f", values=("alice",))
    assert one == cause("shop.Missing", "user bob not found", file="a.py", function="f", values=("bob",))


def test_error_naming_culprit_has_no_place() -> None:
    for type, message in (
        ("ImportError", "cannot import name 'a' from 'b' (/x/y.py)"),
        ("sqlite3.OperationalError", "no such table: users"),
        ("TypeError", "send() missing 1 required positional argument: 'to'"),
        ("_pytest.fixtures.FixtureLookupError", "fixture 'db' not found"),
    ):
        assert cause(type, message, file="a.py", function="f") == cause(type, message, file="b.py", function="g")
    assert cause("AttributeError", "'NoneType' object has no attribute 'x'", file="a.py") != cause(
        "AttributeError", "'NoneType' object has no attribute 'x'", file="b.py"
    )


def test_assertion_cause_uses_checked_calls() -> None:
    def failed(message: str, test: str, *subjects: str) -> str:
        place = {"file": "test_a.py", "function": test, "place": f"test_a.py::{test}", "is_test": True}
        return cause("AssertionError", message, subjects=subjects, **place)

    assert failed("assert 3 == 4", "test_a", "total") == failed("assert None == 1", "test_b", "total")
    assert failed("assert 3 == 4", "test_a", "total") != failed("assert 3 == 4", "test_a", "parse")
    assert failed("assert 3 == 4", "test_a") != failed("assert 3 == 4", "test_b")
    assert failed("no money left\nassert 3 == 4", "test_a") == failed("no money left\nassert 1 == 2", "test_b")
    server = "assert {0} == 200\n +  where {0} = <Response [{0}]>.status_code"
    assert failed(server.format(500), "a", "get") != failed(server.format(404), "a", "get")


def test_several_errors_are_one_cause() -> None:
    first, second = RaisedError(type="OSError", message="full"), RaisedError(type="KeyError", file="a.py")
    both = [cause_of_failure("", FailureDetail(errors=errors)) for errors in ((first, second), (second, first))]
    assert both[0] == both[1] != cause_of_failure("", FailureDetail(errors=(first,)))


@given(st.text(max_size=300), st.text(max_size=50), st.text(max_size=50))
def test_cause_is_one_safe_line(text: str, type: str, word: str) -> None:
    detail = parse_failure({"errors": [{"type": type, "message": text, "values": [word], "place": word}]})
    for line in (cause_of_text(text), cause_of_failure(text, detail)):
        assert plain(line, 10_000) == line
        assert len(line) <= CAUSE_LIMIT


@pytest.mark.parametrize("fields", [None, 3, [], {}, {"errors": []}, {"errors": [{"type": 3}]}, {"errors": "x"}])
def test_invalid_failure_fields_are_dropped(fields: object) -> None:
    assert parse_failure(fields) is None


def test_failure_detail_is_limited_and_safe() -> None:
    error = {"type": "E" * 999, "message": "\x1b[31m" + "m" * 9_999, "subjects": ["s\n"] * 99, "is_test": True}
    detail = parse_failure({"errors": [error] * 99, "wrappers": ["w" * 999] * 99, "more": 1})
    assert detail is not None
    assert len(detail.errors) == 4
    assert len(detail.wrappers) == len(detail.errors[0].subjects) == 12
    assert len(detail.errors[0].type) == 160
    assert len(detail.errors[0].message) <= 600
    assert "\x1b" not in detail.errors[0].message
