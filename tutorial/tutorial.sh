#!/usr/bin/env bash
# The tutorial of swarm-tui, block by block. Each block is cited by a test in tests/e2e, which runs it.
set -euo pipefail

##############################################################################
# FIRST STEPS
##############################################################################

# see what there is to do
swarm-tui --help

# see which version this is
swarm-tui --version

# every command explains itself, with examples
swarm-tui tutorial --help

# a command that is mistyped is told what was probably meant, and nothing is done
swarm-tui tutorail

##############################################################################
# A TUTORIAL AND ITS TESTS
#   The tests of a command line program begin with its tutorial.
##############################################################################

## BLOCKS

# a tutorial is a shell script: empty lines part its blocks, comments give them titles
cat > tutorial.sh <<'EOF'
#!/bin/sh

## GREETINGS

# greet the world
echo "hello, world"

# greet whoever is here
echo "hello, $(id -un)"
EOF

# list its blocks, with their lines, sections and titles
swarm-tui tutorial blocks tutorial.sh

# the same for a script of yours
swarm-tui tutorial blocks tutorial.sh --json

## TESTS THAT CITE A BLOCK

# a test says which block it is about, runs commands, and expects something of them;
# the fixture `e2e` comes with swarm-tui, each test has a home and a folder of its own
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


def test_greet_whoever_is_here(e2e: E2eSession) -> None:
    """Tutorial block:
        # greet whoever is here
        echo "hello, $(id -un)"
    """
    expect(e2e.run('echo "hello, $(id -un)"').stdout).to_match(r"^hello, \w+")
EOF

# they are plain pytest tests
python -m pytest -q tests

# each test leaves a transcript: "# " comment, "$ " command, two spaces before what it printed,
# "! " before what it complained about, "? " its exit code
cat .test_output/e2e/*/*world/try_1/transcript.txt

# give a run a name, and keep transcripts of failing tests only
python -m pytest -q tests --swarm-e2e-run-name before-lunch --swarm-e2e-artifacts on-failure

## FULL-SCREEN PROGRAMS

# a test can also sit in front of a terminal: press keys, wait for what must appear;
# what was shown is recorded beside the transcript, as an asciicast
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

## DO THEY STILL FIT?

# blocks without a test, tests without a block: exit code 1 if there are any
swarm-tui tutorial check tutorial.sh tests

# when a block was edited since, the check shows the test that cites its old text, and the difference
sed -i 's/hello, world/good morning, world/' tutorial.sh
swarm-tui tutorial check tutorial.sh tests

# the same for a script of yours
swarm-tui tutorial check tutorial.sh tests --json

# tests without citations fit too, if the lines of the block stand somewhere in their source
swarm-tui tutorial check tutorial.sh tests --lenient

# this tutorial is checked in the same way, in the repository of swarm-tui
swarm-tui tutorial check tutorial/tutorial.sh tests/e2e
