"""A full-screen program controlled by a test: keys, screens, timeouts and recordings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.adapters.processes.ends import marked_processes
from swarm_tui.e2e import E2eSession, expect
from swarm_tui.e2e.result import ExpectationFailed
from swarm_tui.e2e.session import MARK_NAME
from swarm_tui.errors import ProgramMissing

# A small full-screen program: it shows what it is told, and its size when that changes.
PROGRAM = r"""
printf '\033[2J\033[H'; echo ready; trap 'stty size' WINCH
while read -r line; do
  case "$line" in
    clear) printf '\033[2J\033[H' ;;
    quit) exit 5 ;;
    *) echo "heard: $line" ;;
  esac
done
"""


@pytest.fixture
def session() -> Iterator[E2eSession]:
    session = E2eSession()
    (session.folder / "program.sh").write_text(PROGRAM)
    yield session
    session.finish()
    session.remove()


def test_terminal_program_runs_to_exit(session: E2eSession) -> None:
    terminal = session.tmux("bash program.sh", comment="start it", width=40, height=6)
    terminal.wait_for("ready")
    terminal.type_text("it's; all -- $HOME;")
    terminal.send_keys("Enter")
    expect(terminal.wait_for(re.compile(r"^heard: .*;$", re.MULTILINE))).to_contain("heard: it's; all -- $HOME;\n")
    terminal.type_text("quit")
    terminal.send_keys("Enter")
    assert terminal.wait_for_exit() == 5
    assert session.transcript == (
        "# start it\n$ bash program.sh\n  ready\n"
        "# keys: \"it's; all -- $HOME;\" Enter\n  ready\n  it's; all -- $HOME;\n  heard: it's; all -- $HOME;\n"
        "# keys: 'quit' Enter\n  ready\n  it's; all -- $HOME;\n  heard: it's; all -- $HOME;\n  quit\n"
        "? 5\n"
    )


def test_resize_reaches_program(session: E2eSession) -> None:
    terminal = session.tmux("bash program.sh")
    terminal.wait_for("ready")
    terminal.resize(100, 30)
    terminal.send_keys("Enter")
    terminal.wait_for("30 100")


def test_wait_until_gone(session: E2eSession) -> None:
    terminal = session.tmux("bash program.sh")
    terminal.wait_for("ready")
    terminal.type_text("clear")
    terminal.send_keys("Enter")
    terminal.wait_until_gone("ready")


def test_program_has_plain_terminal_and_session_environment(session: E2eSession) -> None:
    terminal = session.tmux("env | cut -c1-70; stty size; cat", env={"GREETING": "it's"}, width=120, height=60)
    screen = terminal.wait_for("60 120")
    expect(screen).to_contain(f"HOME={session.home}")
    expect(screen).to_contain("GREETING=it's")
    expect(screen).not_to_contain("TMUX=")
    expect(screen).not_to_contain("TMUX_PANE=")
    assert session.run("tmux list-sessions").exit_code != 0


def test_wait_timeout_shows_screen(session: E2eSession) -> None:
    terminal = session.tmux("bash program.sh")
    terminal.wait_for("ready")
    with pytest.raises(ExpectationFailed, match=r"to show 'never', but timed out after 0\.1 s\n\n-+\nready\n-+"):
        terminal.wait_for("never", timeout=0.1)
    with pytest.raises(ExpectationFailed, match="to exit, but it is still running"):
        terminal.wait_for_exit(timeout=0.1)


def test_wait_fails_at_once_after_exit(session: E2eSession) -> None:
    terminal = session.tmux("echo gone; kill -9 $$")
    with pytest.raises(ExpectationFailed, match="the program exited with 137"):
        terminal.wait_for("never", timeout=60)


def test_invalid_key_raises_error(session: E2eSession) -> None:
    terminal = session.tmux("cat")
    with pytest.raises(ValueError, match="invalid key: 'Entr'"):
        terminal.send_keys("Entr")


def test_two_terminals_are_independent(session: E2eSession) -> None:
    first = session.tmux("echo one; cat")
    with session.tmux("echo two; cat") as second:
        expect(second.wait_for("two")).not_to_contain("one")
    expect(first.wait_for("one")).not_to_contain("two")
    session.finish()
    assert marked_processes(MARK_NAME, session.environment[MARK_NAME]) == {}
    assert "was still running" not in session.transcript


def test_recording_contains_output(session: E2eSession) -> None:
    terminal = session.tmux("printf 'gr\\303\\274n \\033[1mbold\\033[0m\\n'; exit 0", width=50, height=5)
    terminal.wait_for_exit()
    header, *events = (json.loads(line) for line in session.recordings[0].read_text().splitlines())
    assert (header["version"], header["width"], header["height"]) == (2, 50, 5)
    assert "".join(text for _, kind, text in events if kind == "o") == "grün \x1b[1mbold\x1b[0m\r\n"
    assert [time for time, _, _ in events] == sorted(time for time, _, _ in events)


def test_terminal_without_tmux_raises_error(session: E2eSession, tmp_path: Path) -> None:
    session.environment["PATH"] = str(tmp_path)
    with pytest.raises(ProgramMissing, match="tmux is not installed"):
        session.tmux("cat")
