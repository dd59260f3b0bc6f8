"""A shell line of a test: its output in order, its input, its end, its bounds."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from swarm_tui.adapters.processes.shell import BackgroundOutput, OutputSource, SegmentCollector, ShellRun, run_shell
from swarm_tui.errors import AdapterError
from tests.adapters.descriptors import open_descriptors
from tests.waiting import PATIENCE, until


def run(line: str, folder: Path, *, stdin: bytes = b"", timeout: float = PATIENCE, limit: int = 1 << 20) -> ShellRun:
    return run_shell(line, cwd=folder, environment=dict(os.environ), stdin=stdin, timeout=timeout, output_limit=limit)


def is_running(process: int) -> bool:
    """Return whether a process runs; one that has ended but was not waited for yet does not."""
    try:
        return bool(Path(f"/proc/{process}/environ").read_bytes())
    except (FileNotFoundError, ProcessLookupError):
        return False


def written(result: ShellRun, source: OutputSource) -> bytes:
    return b"".join(segment.data for segment in result.segments if segment.source is source)


def test_both_outputs_keep_their_order(tmp_path: Path) -> None:
    dice = random.Random(7)
    for _ in range(20):
        sides = [dice.choice(list(OutputSource)) for _ in range(80)]
        line = "; ".join(f"echo {n}{' >&2' if side is OutputSource.STDERR else ''}" for n, side in enumerate(sides))
        segments = run(line, tmp_path).segments
        found = [(segment.source, int(word)) for segment in segments for word in segment.data.split()]
        assert found == [(side, number) for number, side in enumerate(sides)]


@pytest.mark.parametrize(
    ("line", "code"), [("true", 0), ("exit 7", 7), ("kill -9 $$", 137), ("no-such-program-at-all", 127)]
)
def test_exit_code_is_that_of_shell(tmp_path: Path, line: str, code: int) -> None:
    assert run(line, tmp_path).code == code


def test_command_gets_all_input_while_writing(tmp_path: Path) -> None:
    text = b"0123456789abcdef" * 20_000
    assert written(run("cat", tmp_path, stdin=text), OutputSource.STDOUT) == text


def test_partly_read_input_is_not_an_error(tmp_path: Path) -> None:
    result = run("head -c 3", tmp_path, stdin=b"x" * 1_000_000)
    assert (result.code, written(result, OutputSource.STDOUT)) == (0, b"xxx")


def test_missing_input_is_empty(tmp_path: Path) -> None:
    result = run("cat; echo done", tmp_path)
    assert written(result, OutputSource.STDOUT) == b"done\n"


def test_timeout_stops_command_and_children(tmp_path: Path) -> None:
    line = "rm -f begun; trap 'echo told to stop' TERM; sleep 1000 & echo $! > child; echo begin; touch begun; wait"
    for seconds in (1, 4, 16, 64):
        result = run(line, tmp_path, timeout=seconds)
        assert (result.is_timed_out, result.code) == (True, 124)
        child = int((tmp_path / "child").read_text())
        until(lambda child=child: not is_running(child), "the child to end")  # type: ignore[misc]
        # On a busy machine the shell may be stopped before it has begun.
        if (tmp_path / "begun").exists():
            break
    assert written(result, OutputSource.STDOUT) == b"begin\ntold to stop\n"


def test_command_that_ignores_term_is_killed(tmp_path: Path) -> None:
    result = run("trap '' TERM; sleep 1000; :", tmp_path, timeout=0.1)
    assert (result.is_timed_out, result.code) == (True, 124)


def test_flood_is_truncated_in_the_middle(tmp_path: Path) -> None:
    result = run("echo first; head -c 50000000 /dev/zero; echo last", tmp_path, limit=100_000)
    output = written(result, OutputSource.STDOUT)
    assert result.is_truncated
    assert len(output) < 300_000
    assert output.startswith(b"first\n")
    assert output.endswith(b"last\n")
    assert b"bytes left out" in output


def test_background_program_does_not_delay_command(tmp_path: Path) -> None:
    result = run("(while [ ! -e go ]; do sleep 0.01; done; echo late) & echo early", tmp_path)
    assert not result.is_timed_out
    assert written(result, OutputSource.STDOUT) == b"early\n"
    assert isinstance(result.background, BackgroundOutput)
    (tmp_path / "go").touch()
    assert [segment.data for segment in result.background.finish()] == [b"late\n"]


def test_removed_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match="cannot start"):
        run("true", tmp_path / "gone")


def test_line_with_nul_byte_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match="cannot start"):
        run("echo \0", tmp_path)


def test_many_tiny_writes_use_bounded_memory() -> None:
    collector = SegmentCollector(limit=10_000)
    for number in range(20_000):
        collector.add((OutputSource.STDOUT, OutputSource.STDERR)[number % 2], b"x")
    assert len(collector.segments()) < 200
    assert collector.is_full


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = open_descriptors()
    for line in ("echo a", "cat", "exit 3"):
        run(line, tmp_path, stdin=b"text")
    with pytest.raises(AdapterError):
        run("true", tmp_path / "gone", stdin=b"text")
    assert open_descriptors() == before
