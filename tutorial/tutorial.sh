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

# pressing tab completes commands, options and sweeps, once this is in ~/.bashrc
eval "$(swarm-tui completion bash)"

# see what is missing on this machine, and how to get it
swarm-tui doctor

# the other machines that agents can run on; `swarm-tui hosts add user@machine` adds one
swarm-tui hosts list

##############################################################################
# WATCHING
#   The room shows every test of a sweep at once. Nothing has to be set up to have a look.
##############################################################################

# write a simulated sweep of 60 tests, more than half of it done: nothing is run
swarm-tui simulate --headless --tests 60 --ahead 0.6 --seconds 0 simulated

# open the room on it; `?` shows the keys, q leaves
swarm-tui open ./simulated

# the same in words, only what needs a look
swarm-tui status ./simulated --only blocked,failed

# the same sweep a minute before its end; `open --at` shows that in the room, where [ and ] go on from there
swarm-tui status ./simulated --at -1m

# another sweep, and what is different in it: tests that became red, kept fixes that are broken again, the cost
swarm-tui simulate --headless --tests 64 --ahead 0.6 --seconds 0 --seed 2 later
swarm-tui compare ./simulated ./later

# wait until something is so, as scripts do; here it is so already
swarm-tui wait --until 'failed or done' ./simulated

# what has happened in it, one JSON object a line; --follow goes on until the sweep is finished
swarm-tui events --json ./simulated

# a whole sweep on a sample project, in two minutes and without a model; what it offers:
swarm-tui demo --help

##############################################################################
# A SWEEP
#   One agent works on each test, in a copy of the repository. Your checkout is left alone.
##############################################################################

# a small project to try it on: a function that is wrong, and its test
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

# the offline agent plays recorded work, so that all of this can be tried without a model; this one asks first
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

# when it is sent back
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

# start a sweep; on a terminal the room opens, here it runs in the background
swarm-tui run --agent offline --records records --headless > sweep.log 2>&1 &

# where does it stand?
swarm-tui status

# stand in front of an agent: look, type, detach
swarm-tui attach --help

# all agents of mngr in one grid, also those that you made yourself; without --plain it is a room
swarm-tui watch --plain

# have mngr record the terminal whenever you connect to an agent
swarm-tui record-connect --help

# ask something of the sweep: eight agents at once from now on
swarm-tui request slots 8

# twenty dollars and no more: when they are spent, nothing further is launched until you say so
swarm-tui request budget 20

# stop it; what is done is kept
swarm-tui stop

# take it up again, as after a crash or a reboot
swarm-tui resume --headless > resumed.log 2>&1 &

# everything that needs a person, with the id by which it is answered
swarm-tui pending

# how that is done, for one agent or for all that ask the same
swarm-tui answer --help

# write to the agent that waits, named by a part of its test: that is an answer too
swarm-tui request message double --text "Yes, please."

## WHEN IT IS DONE

# the sweeps of this repository
swarm-tui list

# the fixes that its agents made, the most useful one first
swarm-tui fixes --list

# what a pull request of them would say; with --push it is opened
swarm-tui fixes --pr

# the same as patches for `git am`
swarm-tui fixes --patches patches

# what would be without a part of a fix? 1.1 is the first hunk of fix 1, `--json` names all
swarm-tui fixes --revert 1.1 --list

# keep or revert each of them: on a terminal one after the other, here one by its rank
swarm-tui fixes --revert 1 --why "it was right" --apply swarm/checked

# send a fix back to its agent with a word, and wait for what comes of it
swarm-tui fixes --send-back 1 --why "Add the number to itself."
swarm-tui wait --until done

# put the branch together once more, and see what the integrator says of it
swarm-tui integrate --json

# make a page of everything: it opens anywhere, without a network
swarm-tui report --output page

# remove the agents and their copies; the branches and the sweep's folder stay
swarm-tui clean --yes

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

## AGENTS THAT WRITE

# comments that have no commands yet
swarm-tui tutorial check tutorial.sh

# have agents write the commands below such comments, each block a commit; it says when nothing is left to do
swarm-tui tutorial fill tutorial.sh

# have agents write tests for blocks that have none, and mend those whose block was edited
swarm-tui tutorial sync tutorial.sh tests

# the same as a slash command for Claude Code: `/swarm-tutorial sync tutorial.sh tests`
swarm-tui tutorial install-command

## OUR OWN

# this tutorial is checked in the same way, in the repository of swarm-tui
swarm-tui tutorial check tutorial/tutorial.sh tests/e2e
