"""A test's session: isolated, written down, and gone without a trace."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.adapters.marked_processes import marked_processes
from swarm_tui.adapters.shell import OutputSource, Segment
from swarm_tui.e2e import E2eSession, expect
from swarm_tui.e2e.expectations import ExpectationFailed
from swarm_tui.e2e.isolation import MARK_NAME, isolated_environment, make_isolation, remove_isolation
from swarm_tui.e2e.result import ordered_lines


@pytest.fixture
def session() -> Iterator[E2eSession]:
    session = E2eSession()
    yield session
    session.finish()
    session.remove()


def test_the_transcript_tells_all_in_order(session: E2eSession) -> None:
    session.run("echo one; echo two >&2; printf three; exit 3", comment="count\nto three")
    session.run("cat <<EOF\na  b\nEOF")
    assert session.transcript == (
        "# count\n# to three\n$ echo one; echo two >&2; printf three; exit 3\n  one\n! two\n  three\n? 3\n"
        "$ cat <<EOF\n> a  b\n> EOF\n  a  b\n? 0\n"
    )


def test_escape_sequences_are_kept_in_the_transcript_and_inert_in_a_message(session: E2eSession) -> None:
    result = session.run(r"printf '\033[31mred\033]0;title\007\n'; exit 1")
    assert "\x1b[31mred" in session.transcript
    with pytest.raises(ExpectationFailed) as failure:
        expect(result).to_succeed()
    assert "  red\n" in str(failure.value)
    assert "\x1b" not in str(failure.value)


def test_a_command_sees_a_home_a_folder_and_a_tmux_of_its_own(session: E2eSession) -> None:
    values = session.run('echo "$HOME|$PWD|$TMPDIR|$TMUX_TMPDIR"').stdout.strip().split("|")
    assert all(Path(value).is_relative_to(session.isolation.base) for value in values)
    assert len(f"{session.isolation.sockets}/tmux-{os.getuid()}/{'x' * 20}") < 107


def test_what_is_personal_or_pytests_own_is_not_passed_on(session: E2eSession, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_command_may_be_given_more(session: E2eSession) -> None:
    expect(session.run("echo $GREETING; cat", env={"GREETING": "hello"}, stdin="ünï").stdout).to_equal("hello\nünï")
    expect(session.run("echo $GREETING").stdout).to_equal("\n")
    session.environment["GREETING"] = "always"
    expect(session.run("echo $GREETING").stdout).to_equal("always\n")


def test_what_is_left_running_is_ended_and_told(session: E2eSession) -> None:
    session.run("setsid sleep 1003 >/dev/null 2>&1 & echo started")
    mark = session.environment[MARK_NAME]
    while "sleep 1003" not in marked_processes(MARK_NAME, mark).values():
        pass
    session.finish()
    assert marked_processes(MARK_NAME, mark) == {}
    assert "# was still running and was ended: sleep 1003\n" in session.transcript


def test_what_is_written_in_the_background_is_told_at_the_end(session: E2eSession) -> None:
    session.run("(trap 'echo goodbye; exit' TERM; while :; do sleep 0.01; done) & echo started")
    session.finish()
    assert session.transcript.endswith("  goodbye\n")


def test_read_only_folders_go_too() -> None:
    session = E2eSession()
    session.run("mkdir -p a/b && touch a/b/c && chmod -R a-w a")
    session.remove()
    assert not session.isolation.base.exists()


def test_a_citation_is_kept_without_its_indentation(session: E2eSession) -> None:
    session.write_tutorial_block("""
        # see the other commands
        mytool --help
    """)
    assert session.tutorial_blocks == ("# see the other commands\nmytool --help",)


def test_an_empty_citation_is_refused(session: E2eSession) -> None:
    with pytest.raises(ValueError, match="needs the lines"):
        session.write_tutorial_block("\n   \n")


def test_an_output_that_is_no_text_is_still_shown(session: E2eSession) -> None:
    result = session.run(r"printf 'a\377b\n'")
    expect(result.stdout).to_equal("a\ufffdb\n")


def test_lines_that_both_outputs_share_stay_whole(session: E2eSession) -> None:
    session.run("printf 'working...'; echo careful >&2; echo ' done'")
    assert session.transcript.splitlines()[1:] == ["  working... done", "! careful", "? 0"]


@given(st.lists(st.tuples(st.sampled_from(list(OutputSource)), st.text("ab\n", max_size=6)), max_size=12))
def test_the_lines_are_those_of_each_output_in_the_order_of_their_first_characters(
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
