"""Messages of unmet expectations."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from swarm_tui.adapters.processes.shell import OutputSource, Segment
from swarm_tui.e2e import CommandResult, expect
from swarm_tui.e2e.result import ExpectationFailed


def result(
    code: int = 0, stdout: str = "", stderr: str = "", *, earlier: tuple[CommandResult, ...] = (), stopped: bool = False
) -> CommandResult:
    segments = (Segment(OutputSource.STDOUT, stdout.encode()), Segment(OutputSource.STDERR, stderr.encode()))
    return CommandResult("mytool x", "", code, segments, 1.5, stopped, False, earlier)


def message_of(check: Callable[[], None]) -> str:
    with pytest.raises(ExpectationFailed) as failure:
        check()
    return str(failure.value)


def test_met_expectation_prints_nothing() -> None:
    expect(result()).to_succeed()
    expect(result(2)).to_fail()
    expect(result(2)).to_exit_with(2)
    expect(result(stdout="abc").stdout).to_contain("b")
    expect(result(stdout="abc").stdout).not_to_contain("x")
    expect(result(stdout="abc").stdout).to_match(r"^a.c$")
    expect("abc").to_equal("abc")
    expect("").to_be_empty()


@pytest.mark.parametrize(
    "check",
    [
        lambda: expect(result(1)).to_succeed(),
        lambda: expect(result(0)).to_fail(),
        lambda: expect(result(1)).to_exit_with(2),
        lambda: expect(result(124, stopped=True)).to_fail(),
        lambda: expect(result(124, stopped=True)).to_exit_with(124),
        lambda: expect("abc").to_contain("x"),
        lambda: expect("abc").not_to_contain("b"),
        lambda: expect("abc").to_match("^b"),
        lambda: expect("abc").to_equal("abc\n"),
        lambda: expect(" ").to_be_empty(),
    ],
)
def test_unmet_expectation_fails(check: Callable[[], None]) -> None:
    message_of(check)


def test_failure_message_shows_previous_commands() -> None:
    first = result(0, "ready\n")
    assert message_of(lambda: expect(result(3, "out\n", "bad\n", earlier=(first,))).to_succeed()) == (
        "expected `mytool x` to succeed, but it exited with 3\n\n"
        "$ mytool x\n  ready\n? 0\n$ mytool x\n  out\n! bad\n? 3"
    )


def test_failure_message_of_output_shows_transcript() -> None:
    message = message_of(lambda: expect(result(0, "Usage\n", "bad\n").stderr).to_be_empty())
    assert message == "expected stderr of `mytool x` to be empty\n\n$ mytool x\n  Usage\n! bad\n? 0"


def test_unequal_texts_are_shown_as_diff() -> None:
    message = message_of(lambda: expect("a\nb \n").to_equal("a\nb\n"))
    assert "  'a\\n'" in message
    assert "- 'b\\n'" in message
    assert "+ 'b \\n'" in message


def test_failure_message_names_timeout_or_signal() -> None:
    assert "was stopped after 1.5 s" in message_of(lambda: expect(result(124, stopped=True)).to_succeed())
    assert "killed by signal 9" in message_of(lambda: expect(result(137)).to_succeed())


def test_long_output_is_shortened() -> None:
    output = "".join(f"line {number}\n" for number in range(10_000))
    message = message_of(lambda: expect(result(1, output)).to_succeed())
    assert len(message.splitlines()) < 100
    assert "line 0\n" in message
    assert "line 9999\n" in message
    assert "lines left out" in message


def test_expect_other_type_raises_error() -> None:
    with pytest.raises(TypeError, match="not int"):
        expect(3)  # type: ignore[call-overload]
