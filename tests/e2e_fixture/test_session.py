"""The session of a test: isolation, transcript and cleanup."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.adapters.processes.ends import marked_processes
from swarm_tui.adapters.processes.shell import OutputSource, Segment
from swarm_tui.e2e import E2eSession, expect
from swarm_tui.e2e.result import ExpectationFailed, ordered_lines
from swarm_tui.e2e.session import MARK_NAME, isolated_environment, make_isolation, remove_isolation


@pytest.fixture
def session() -> Iterator[E2eSession]:
    session = E2eSession()
    yield session
    session.finish()
    session.remove()


def test_transcript_contains_everything_in_order(session: E2eSession) -> None:
    session.run("echo one; echo two >&2; printf three; exit 3", comment="count\nto three")
    session.run("cat <<EOF\na  b\nEOF")
    assert session.transcript == (
        "# count\n# to three\n$ echo one; echo two >&2; printf three; exit 3\n  one\n! two\n  three\n? 3\n"
        "$ cat <<EOF\n> a  b\n> EOF\n  a  b\n? 0\n"
    )


def test_messages_contain_no_escape_sequences(session: E2eSession) -> None:
    result = session.run(r"printf '\033[31mred\033]0;title\007\n'; exit 1")
    assert "\x1b[31mred" in session.transcript
    with pytest.raises(ExpectationFailed) as failure:
        expect(result).to_succeed()
    assert "  red\n" in str(failure.value)
    assert "\x1b" not in str(failure.value)


def test_command_has_separate_home_folder_and_tmux(session: E2eSession) -> None:
    values = session.run('echo "$HOME|$PWD|$TMPDIR|$TMUX_TMPDIR"').stdout.strip().split("|")
    assert all(Path(value).is_relative_to(session.isolation.base) for value in values)
    assert len(f"{session.isolation.sockets}/tmux-{os.getuid()}/{'x' * 20}") < 107


def test_personal_and_pytest_variables_are_not_passed(session: E2eSession, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TMUX", "TMUX_PANE", "PYTEST_XDIST_WORKER", "MNGR_HOST_DIR", "XDG_CONFIG_HOME", "COLUMNS", "GIT_DIR"):
        monkeypatch.setenv(name, "personal")
    monkeypatch.setenv("PLAIN", "kept")
    isolation = make_isolation()
    environment = isolated_environment(isolation, Path("/programs"))
    remove_isolation(isolation)
    assert "personal" not in environment.values()
    assert "PYTEST_CURRENT_TEST" not in environment
    assert environment["PLAIN"] == "kept"
    assert environment["PATH"].startswith("/programs:")


def test_run_accepts_environment_and_stdin(session: E2eSession) -> None:
    expect(session.run("echo $GREETING; cat", env={"GREETING": "hello"}, stdin="ünï").stdout).to_equal("hello\nünï")
    expect(session.run("echo $GREETING").stdout).to_equal("\n")
    session.environment["GREETING"] = "always"
    expect(session.run("echo $GREETING").stdout).to_equal("always\n")


def test_remaining_processes_are_killed_and_listed(session: E2eSession) -> None:
    session.run("setsid sleep 1003 >/dev/null 2>&1 & echo started")
    mark = session.environment[MARK_NAME]
    while "sleep 1003" not in marked_processes(MARK_NAME, mark).values():
        pass
    session.finish()
    assert marked_processes(MARK_NAME, mark) == {}
    assert "# killed after the test: sleep 1003\n" in session.transcript


def test_background_output_is_in_transcript(session: E2eSession) -> None:
    session.run("(trap 'echo goodbye; exit' TERM; while :; do sleep 0.01; done) & echo started")
    session.finish()
    assert session.transcript.endswith("  goodbye\n")


def test_read_only_folders_are_removed() -> None:
    session = E2eSession()
    session.run("mkdir -p a/b && touch a/b/c && chmod -R a-w a")
    session.remove()
    assert not session.isolation.base.exists()


def test_citation_is_dedented(session: E2eSession) -> None:
    session.write_tutorial_block("""
        # see the other commands
        mytool --help
    """)
    assert session.tutorial_blocks == ("# see the other commands\nmytool --help",)


def test_empty_citation_raises_error(session: E2eSession) -> None:
    with pytest.raises(ValueError, match="requires the lines"):
        session.write_tutorial_block("\n   \n")


def test_binary_output_is_shown(session: E2eSession) -> None:
    result = session.run(r"printf 'a\377b\n'")
    expect(result.stdout).to_equal("a\ufffdb\n")


def test_interrupted_lines_stay_complete(session: E2eSession) -> None:
    session.run("printf 'working...'; echo careful >&2; echo ' done'")
    assert session.transcript.splitlines()[1:] == ["  working... done", "! careful", "? 0"]


@given(st.lists(st.tuples(st.sampled_from(list(OutputSource)), st.text("ab\n", max_size=6)), max_size=12))
def test_lines_are_ordered_by_first_character(
    writes: list[tuple[OutputSource, str]],
) -> None:
    lines = ordered_lines(tuple(Segment(source, text.encode()) for source, text in writes))
    starts: list[tuple[int, OutputSource, str]] = []
    for source in OutputSource:
        whole = "".join(text for side, text in writes if side is source)
        places = [number for number, (side, text) in enumerate(writes) if side is source for _ in text]
        position = 0
        for line in whole.removesuffix("\n").split("\n") if whole else []:
            starts.append((places[position], source, line))
            position += len(line) + 1
    assert [tuple(line) for line in lines] == [(source, line) for _, source, line in sorted(starts, key=lambda s: s[0])]
