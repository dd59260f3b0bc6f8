"""Without the room, everything that happens is told once, and why an engine has died."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from swarm_tui.cli.display import NewLogLines
from swarm_tui.cli.progress import why_engine_died
from swarm_tui.model.state import LogLine


def line(text: str, at: float = 1.0) -> LogLine:
    return LogLine(at, "info", text)


def test_each_line_is_told_once_also_while_a_clock_that_was_set_back_stands_still() -> None:
    log = deque([line("a"), line("b")], maxlen=3)
    new_lines = NewLogLines(None)
    assert [each.text for each in new_lines.read(log)] == ["a", "b"]
    assert new_lines.read(log) == []
    log.append(line("c"))
    assert [each.text for each in new_lines.read(log)] == ["c"]
    log.extend([line("d"), line("e"), line("f"), line("g")])
    assert [each.text for each in new_lines.read(log)] == ["e", "f", "g"], "what is kept, when more was missed"


def test_what_was_known_before_is_not_told_again() -> None:
    log = deque([line("launched"), line("stopped")])
    new_lines = NewLogLines(log[-1])
    log.append(line("resumed"))
    assert [each.text for each in new_lines.read(log)] == ["resumed"]


def test_an_engine_without_last_words_had_no_room_for_them() -> None:
    assert why_engine_died("no tmux", Path("/s"), 0) == "the engine has ended: no tmux"
    assert why_engine_died("", Path("/s"), 0) == "the engine has died: the disk of /s is full"
    assert why_engine_died("", Path("/s"), 1 << 30) == "the engine has died"
