#!/usr/bin/env bash
# The tutorial of swarm-tui, block by block. Each block is cited by a test in tests/e2e, which runs it.
set -euo pipefail

##############################################################################
# FIRST STEPS
##############################################################################

# list the commands
swarm-tui --help

# print the version
swarm-tui --version

# every command has a help page with examples
swarm-tui tutorial --help

# a mistyped command prints the most similar one and does nothing
swarm-tui tutorail

# complete commands, options and sweeps with Tab; add this line to ~/.bashrc
eval "$(swarm-tui completion bash)"

# check this machine for missing programs, and how to install them
swarm-tui doctor

# list the hosts that agents can run on; to add one: `swarm-tui hosts add user@machine`
swarm-tui hosts list

##############################################################################
# WATCHING
#   The room shows every test of a sweep on one screen. A simulated sweep needs no setup.
##############################################################################

# write a simulated sweep of 60 tests, 60 % done; no agent or test runs
swarm-tui simulate --headless --tests 60 --ahead 0.6 --seconds 0 simulated

# open the room on this sweep; press `?` to show the keys, `q` to quit
swarm-tui open ./simulated

# print the tests that need attention
swarm-tui status ./simulated --only blocked,error

# print the state one minute before the end; `open --at -1m` opens the room at that time
swarm-tui status ./simulated --at -1m

# write a second sweep and compare both: tests that now fail, kept fixes that are broken again, cost
swarm-tui simulate --headless --tests 64 --ahead 0.6 --seconds 0 --seed 2 later
swarm-tui compare ./simulated ./later

# wait until a condition is true, for scripts; here it is true immediately
swarm-tui wait --until 'error or done' ./simulated

# print the events, one JSON object per line; --follow continues until the sweep has finished
swarm-tui events --json ./simulated

# show the options of the demo: a complete sweep on a sample project, without a model
swarm-tui demo --help

##############################################################################
# A SWEEP
#   One agent works on each test, in a copy of the repository. Your checkout does not change.
##############################################################################

# create a small project: a function with a bug, and its test
git init --quiet --initial-branch=main
git config user.name "Ada Lovelace"
git config user.email ada@example.org
cat > double.py <<'EOF'
def double(number):
    return number + number + 1
EOF
cat > test_double.py <<'EOF'
from double import double


def test_double():
    assert double(2) == 4
EOF
printf '%s\n' records .pytest_cache __pycache__ > .gitignore
git add .
git commit --quiet --message "Double numbers"

# write a record for the offline agent, which needs no model; this agent asks a question first
mkdir -p records
cat > records/double.toml <<'EOF'
test = "test_double.py::test_double"
summary = "It doubled one too many."

[[step]]
run = "as it is"

[[step]]
ask = "May I change double.py?"

[[step]]
edit = "double.py"
old = "number + number + 1"
new = "2 * number"

[[step]]
run = "without the one too many"

[[step]]
commit = "FIX_IMPL"
message = "Double exactly"

# when the fix is sent back
[[revise]]

[[revise.step]]
edit = "double.py"
old = "2 * number"
new = "number + number"

[[revise.step]]
commit = "FIX_IMPL"
message = "Double by adding"
EOF

## WHILE IT RUNS

# start a sweep in the background; on a terminal, `run` without --headless opens the room
swarm-tui run --agent offline --records records --headless > sweep.log 2>&1 &

# print the state of the sweep
swarm-tui status

# show how to attach your terminal to an agent
swarm-tui attach --help

# list all agents of mngr, including those that you created; without --plain the room opens
swarm-tui watch --plain

# show how to record the terminal when you connect to an agent with mngr
swarm-tui record-connect --help

# run at most eight agents at the same time
swarm-tui request slots 8

# limit the cost to 20 dollars; when the budget is spent, no agent is launched until you raise it
swarm-tui request budget 20

# stop the sweep; finished work is kept
swarm-tui stop

# resume the sweep, for example after a crash or a reboot
swarm-tui resume --headless > resumed.log 2>&1 &

# list everything that needs you, with the id for `swarm-tui answer`
swarm-tui pending

# show how to answer one agent, or all agents with the same question
swarm-tui answer --help

# send a message to the waiting agent; it answers the question
swarm-tui request message double --text "Yes, please."

## WHEN IT IS DONE

# list the sweeps of this repository
swarm-tui list

# list the fixes, most useful first
swarm-tui fixes --list

# print the text of a pull request; --push opens it
swarm-tui fixes --pr

# write the fixes as patches for `git am`
swarm-tui fixes --patches patches

# preview the branch without one hunk: 1.1 is the first hunk of fix 1, `--json` lists all hunks
swarm-tui fixes --revert 1.1 --list

# revert fix 1 on a new branch; on a terminal, `swarm-tui fixes` opens the review
swarm-tui fixes --revert 1 --why "it was right" --apply swarm/checked

# send a fix back to its agent with a comment, and wait for the revision
swarm-tui fixes --send-back 1 --why "Add the number to itself."
swarm-tui wait --until done

# integrate again and print the report of the integrator
swarm-tui integrate --json

# write the results as static HTML that opens without a network
swarm-tui report --output page

# remove the agents and their copies; the branches and the folder of the sweep remain
swarm-tui clean --yes

##############################################################################
# A TUTORIAL AND ITS TESTS
#   The end-to-end tests of a command line program can start from its tutorial.
##############################################################################

## BLOCKS

# a tutorial is a shell script: empty lines separate its blocks, comments are their titles
cat > tutorial.sh <<'EOF'
#!/bin/sh

## GREETINGS

# greet the world
echo "hello, world"

# greet the current user
echo "hello, $(id -un)"
EOF

# list the blocks with their lines, sections and titles
swarm-tui tutorial blocks tutorial.sh

# print the blocks as JSON
swarm-tui tutorial blocks tutorial.sh --json

## TESTS THAT CITE A BLOCK

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

# run the tests with pytest
python -m pytest -q tests

# read the transcript of a test: "# " comment, "$ " command, two spaces and standard output,
# "! " standard error, "? " exit code
cat .test_output/e2e/*/*world/try_1/transcript.txt

# name a run, and keep only the transcripts of failing tests
python -m pytest -q tests --swarm-e2e-run-name before-lunch --swarm-e2e-artifacts on-failure

## FULL-SCREEN PROGRAMS

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

## CHECK TUTORIAL AND TESTS

# list blocks without a test and tests without a block; exit code 1 if there are any
swarm-tui tutorial check tutorial.sh tests

# after a change to a block, show the test that cites the old text, and the difference
sed -i 's/hello, world/good morning, world/' tutorial.sh
swarm-tui tutorial check tutorial.sh tests

# print the findings as JSON
swarm-tui tutorial check tutorial.sh tests --json

# accept tests without citations if their source contains the lines of the block
swarm-tui tutorial check tutorial.sh tests --lenient

## AGENTS THAT WRITE

# list comments without commands
swarm-tui tutorial check tutorial.sh

# have agents write the missing commands, one commit per block
swarm-tui tutorial fill tutorial.sh

# have agents write missing tests, and update the tests of changed blocks
swarm-tui tutorial sync tutorial.sh tests

# add a slash command to Claude Code: `/swarm-tutorial sync tutorial.sh tests`
swarm-tui tutorial install-command

## THIS TUTORIAL

# check this tutorial in the repository of swarm-tui
swarm-tui tutorial check tutorial/tutorial.sh tests/e2e
