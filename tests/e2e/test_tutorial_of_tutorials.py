"""The part of the tutorial on tutorials and their tests."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from swarm_tui.e2e import CommandResult, E2eSession, expect
from swarm_tui.tutorial.read import read_blocks
from tests.git_project import PYTEST_INI

ROOT = Path(__file__).resolve().parents[2]


def run_block(e2e: E2eSession) -> CommandResult:
    """Run the last cited block."""
    return e2e.run(e2e.tutorial_blocks[-1])


@pytest.fixture
def with_tutorial(e2e: E2eSession) -> None:
    """Return a session with the example tutorial."""
    _run_example(e2e, "cat > tutorial.sh")


@pytest.fixture
def with_tests(e2e: E2eSession, with_tutorial: None) -> None:
    """Return a session with the example tutorial and its tests."""
    (e2e.folder / "pytest.ini").write_text(PYTEST_INI)
    _run_example(e2e, "cat > tests/test_greetings.py")


@pytest.fixture
def committed(e2e: E2eSession, with_tests: None) -> None:
    """Return a session with the example committed to a repository."""
    git = "git -c user.name=Ada -c user.email=ada@example.org"
    expect(e2e.run(f"git init --quiet && git add . && {git} commit --quiet --message Begin")).to_succeed()


def _run_example(e2e: E2eSession, command: str) -> None:
    (block,) = (
        block
        for block in read_blocks(ROOT / "tutorial" / "tutorial.sh")
        if any(line.startswith(command) for line in block.commands)
    )
    expect(e2e.run(block.text)).to_succeed()


def test_a_tutorial_is_a_script_of_blocks(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # a tutorial is a shell script: empty lines separate its blocks, comments are their titles
        cat > tutorial.sh <<'EOF'
        #!/bin/sh

        ## GREETINGS

        # greet the world
        echo "hello, world"

        # greet the current user
        echo "hello, $(id -un)"
        EOF
    """)
    expect(run_block(e2e)).to_succeed()
    expect(e2e.run("sh tutorial.sh").stdout).to_match(r"^hello, world\nhello, \S+\n$")


@pytest.mark.usefixtures("with_tutorial")
def test_blocks_are_listed_with_line_section_and_title(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # list the blocks with their lines, sections and titles
        swarm-tui tutorial blocks tutorial.sh
    """)
    expect(run_block(e2e).stdout).to_equal(
        "tutorial.sh: 2 blocks\n\nGREETINGS\n  5  greet the world\n  8  greet the current user\n"
    )


@pytest.mark.usefixtures("with_tutorial")
def test_blocks_are_listed_for_scripts(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # print the blocks as JSON
        swarm-tui tutorial blocks tutorial.sh --json
    """)
    blocks = json.loads(run_block(e2e).stdout)["blocks"]
    assert [block["commands"] for block in blocks] == [['echo "hello, world"'], ['echo "hello, $(id -un)"']]


@pytest.mark.usefixtures("with_tutorial")
def test_tests_cite_blocks(e2e: E2eSession) -> None:
    e2e.write_tutorial_block(r'''
        # a test cites its block, runs commands and checks their results;
        # the fixture `e2e` is part of swarm-tui; each test has a separate home and folder
        mkdir -p tests
        cat > tests/test_greetings.py <<'EOF'
        from swarm_tui.e2e import E2eSession, expect


        def test_greet_the_world(e2e: E2eSession) -> None:
            e2e.write_tutorial_block("""
                # greet the world
                echo "hello, world"
            """)
            result = e2e.run('echo "hello, world"', comment="greet the world")
            expect(result).to_succeed()
            expect(result.stdout).to_equal("hello, world\n")


        def test_greet_the_current_user(e2e: E2eSession) -> None:
            """Tutorial block:
                # greet the current user
                echo "hello, $(id -un)"
            """
            expect(e2e.run('echo "hello, $(id -un)"').stdout).to_match(r"^hello, \w+")
        EOF
    ''')
    expect(run_block(e2e)).to_succeed()
    expect(e2e.run("python -m pytest --collect-only -q tests").stdout).to_contain("2 tests collected")


@pytest.mark.usefixtures("with_tests")
def test_tutorial_tests_run_under_pytest(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # run the tests with pytest
        python -m pytest -q tests
    """)
    result = run_block(e2e)
    expect(result).to_succeed()
    expect(result.stdout).to_contain("2 passed")


@pytest.mark.usefixtures("with_tests")
def test_each_test_leaves_a_transcript(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # read the transcript of a test: "# " comment, "$ " command, two spaces and standard output,
        # "! " standard error, "? " exit code
        cat .test_output/e2e/*/*world/try_1/transcript.txt
    """)
    expect(e2e.run("python -m pytest -q tests")).to_succeed()
    expect(run_block(e2e).stdout).to_equal('# greet the world\n$ echo "hello, world"\n  hello, world\n? 0\n')


@pytest.mark.usefixtures("with_tests")
def test_run_has_a_name_and_keeps_artifacts(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # name a run, and keep only the transcripts of failing tests
        python -m pytest -q tests --swarm-e2e-run-name before-lunch --swarm-e2e-artifacts on-failure
    """)
    expect(run_block(e2e)).to_succeed()
    assert not (e2e.folder / ".test_output").exists()
    expect(e2e.run("sed -i s/hello,/bye,/ tests/test_greetings.py")).to_succeed()
    (e2e.folder / "tests" / "test_red.py").write_text("def test_red(e2e):\n    e2e.run('echo red')\n    assert False\n")
    expect(run_block(e2e)).to_exit_with(1)
    kept = [folder.name for folder in (e2e.folder / ".test_output/e2e/before-lunch").iterdir()]
    assert "tests.test_red.test_red" in kept
    assert "tests.test_greetings.test_greet_the_current_user" in kept


def test_test_controls_a_terminal(e2e: E2eSession) -> None:
    e2e.write_tutorial_block(r"""
        # a test can also use a terminal: send keys and wait for output;
        # the screen is recorded as an asciicast next to the transcript
        mkdir -p tests
        cat > tests/test_pager.py <<'EOF'
        from swarm_tui.e2e import E2eSession, expect


        def test_a_pager(e2e: E2eSession) -> None:
            (e2e.folder / "poem").write_text("".join(f"line {number}\n" for number in range(1, 101)))
            with e2e.tmux("less poem", width=40, height=10) as terminal:
                terminal.wait_for("line 9")
                terminal.send_keys("G")
                expect(terminal.wait_for("line 100")).not_to_contain("line 9\n")
                terminal.send_keys("q")
                assert terminal.wait_for_exit() == 0
        EOF
        python -m pytest -q tests/test_pager.py
    """)
    (e2e.folder / "pytest.ini").write_text(PYTEST_INI)
    result = run_block(e2e)
    expect(result).to_succeed()
    expect(result.stdout).to_contain("1 passed")
    (recording,) = e2e.folder.rglob("screen-1.cast")
    assert "line 100" in recording.read_text()


@pytest.mark.usefixtures("with_tests")
def test_tutorial_and_tests_match(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # list blocks without a test and tests without a block; exit code 1 if there are any
        swarm-tui tutorial check tutorial.sh tests
    """)
    result = run_block(e2e)
    expect(result).to_succeed()
    expect(result.stdout).to_contain("each block has a test, and each test a block")
    with (e2e.folder / "tutorial.sh").open("a") as tutorial:
        tutorial.write("\n# say goodbye\necho bye\n")
    result = run_block(e2e)
    expect(result).to_exit_with(1)
    expect(result.stdout).to_contain("1 block without a test\n  tutorial.sh:11  say goodbye\n")


@pytest.mark.usefixtures("with_tests")
def test_an_edited_block_is_shown_with_the_difference(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # after a change to a block, show the test that cites the old text, and the difference
        sed -i 's/hello, world/good morning, world/' tutorial.sh
        swarm-tui tutorial check tutorial.sh tests
    """)
    result = run_block(e2e)
    expect(result).to_exit_with(1)
    expect(result.stdout).to_contain('      - echo "hello, world"\n      + echo "good morning, world"\n')


@pytest.mark.usefixtures("with_tests")
def test_findings_are_printed_as_json(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # print the findings as JSON
        swarm-tui tutorial check tutorial.sh tests --json
    """)
    result = run_block(e2e)
    expect(result).to_succeed()
    findings = json.loads(result.stdout)
    assert (findings["blocks"], findings["tests"]) == (2, 2)
    assert findings["uncited_blocks"] == findings["unmatched_tests"] == findings["near_misses"] == []


@pytest.mark.usefixtures("with_tutorial")
def test_block_may_be_cited_in_source(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # accept tests without citations if their source contains the lines of the block
        swarm-tui tutorial check tutorial.sh tests --lenient
    """)
    source = '''
        def test_both():
            """
            # greet the world
            echo "hello, world"
            # greet the current user
            echo "hello, $(id -un)"
            """
    '''
    (e2e.folder / "tests").mkdir()
    (e2e.folder / "tests" / "test_it.py").write_text(textwrap.dedent(source))
    expect(run_block(e2e)).to_succeed()
    expect(e2e.run("swarm-tui tutorial check tutorial.sh tests")).to_exit_with(1)


@pytest.mark.usefixtures("with_tutorial")
def test_comments_without_commands_are_found(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # list comments without commands
        swarm-tui tutorial check tutorial.sh
    """)
    result = run_block(e2e)
    expect(result).to_succeed()
    expect(result.stdout).to_contain("each comment has commands")
    with (e2e.folder / "tutorial.sh").open("a") as tutorial:
        tutorial.write("\n# say goodbye to the world\n")
    result = run_block(e2e)
    expect(result).to_exit_with(1)
    expect(result.stdout).to_contain("1 comment without commands\n  tutorial.sh:11  say goodbye to the world\n")


@pytest.mark.usefixtures("committed")
def test_agents_have_nothing_to_fill(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # have agents write the missing commands, one commit per block
        swarm-tui tutorial fill tutorial.sh
    """)
    result = run_block(e2e)
    expect(result).to_succeed()
    expect(result.stderr).to_contain("tutorial.sh: each comment has commands; nothing to do")


@pytest.mark.usefixtures("committed")
def test_agents_have_nothing_to_test(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # have agents write missing tests, and update the tests of changed blocks
        swarm-tui tutorial sync tutorial.sh tests
    """)
    result = run_block(e2e)
    expect(result).to_succeed()
    expect(result.stderr).to_contain("each block has a test, and each test a block; nothing to do")


def test_slash_command_is_installed_without_overwriting(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # add a slash command to Claude Code: `/swarm-tutorial sync tutorial.sh tests`
        swarm-tui tutorial install-command
    """)
    expect(run_block(e2e)).to_succeed()
    place = e2e.folder / ".claude/commands/swarm-tutorial.md"
    assert "argument-hint: fill FILE | sync FILE TESTS_DIR" in place.read_text()
    place.write_text("mine\n")
    result = run_block(e2e)
    expect(result).to_exit_with(2)
    expect(result.stderr).to_contain("swarm-tui did not write it")
    assert place.read_text() == "mine\n"


def test_our_own_tutorial_and_tests_match(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # check this tutorial in the repository of swarm-tui
        swarm-tui tutorial check tutorial/tutorial.sh tests/e2e
    """)
    expect(e2e.run(f"cd {ROOT} && {e2e.tutorial_blocks[-1]}")).to_succeed()
