"""The part of the tutorial on sweeps, with the real mngr."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from swarm_tui.agents.offline.records import find_record
from swarm_tui.e2e import CommandResult, E2eSession, expect
from swarm_tui.tutorial.read import read_blocks
from tests.waiting import PATIENCE, until

TUTORIAL = Path(__file__).resolve().parents[2] / "tutorial" / "tutorial.sh"

SIMULATED = "swarm-tui simulate --headless --tests 60 --ahead 0.6 --seconds 0 simulated"


def run_block(e2e: E2eSession, timeout: float = PATIENCE) -> CommandResult:
    """Run the last cited block."""
    return e2e.run(e2e.tutorial_blocks[-1], timeout=timeout)


def test_completion_is_a_shell_script(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # complete commands, options and sweeps with Tab; add this line to ~/.bashrc
        eval "$(swarm-tui completion bash)"
    """)
    expect(run_block(e2e)).to_succeed()
    result = e2e.run(f"{e2e.tutorial_blocks[-1]}\ncomplete -p swarm-tui")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("swarm-tui")


def test_doctor_lists_found_and_missing_programs(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # check this machine for missing programs, and how to install them
        swarm-tui doctor
    """)
    e2e.environment["SWARM_MNGR"] = "/no/mngr"
    result = run_block(e2e)
    expect(result).to_exit_with(1)
    expect(result.stdout).to_match(r"git\s+\S*\s*2\.")
    expect(result.stdout).to_contain("/no/mngr")


def test_a_simulated_sweep_is_written(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # write a simulated sweep of 60 tests, 60 % done; no agent or test runs
        swarm-tui simulate --headless --tests 60 --ahead 0.6 --seconds 0 simulated
    """)
    expect(run_block(e2e)).to_succeed()
    status = json.loads(e2e.run("swarm-tui status ./simulated --json").stdout)
    assert len(status["tests"]) == 60
    assert sum(test["result"] is not None for test in status["tests"]) > 30


def test_room_opens_and_quits(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # open the room on this sweep; press `?` to show the keys, `q` to quit
        swarm-tui open ./simulated
    """)
    expect(e2e.run(SIMULATED)).to_succeed()
    with e2e.tmux("swarm-tui open ./simulated", width=120, height=40) as terminal:
        terminal.wait_for("Tests 60")
        terminal.send_keys("?")
        terminal.wait_for("Keys of this screen")
        terminal.send_keys("Escape")
        terminal.wait_until_gone("Keys of this screen")
        terminal.send_keys("q")
        assert terminal.wait_for_exit() == 0


def test_status_lists_tests_that_need_attention(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # print the tests that need attention
        swarm-tui status ./simulated --only blocked,error
    """)
    expect(e2e.run(SIMULATED)).to_succeed()
    shown = run_block(e2e)
    expect(shown).to_succeed()
    told = shown.stdout.strip().splitlines()[1:]
    assert told
    assert all(line.split()[0] in ("blocked", "error", "no") for line in told if line.startswith("  "))


def test_sweep_is_shown_at_earlier_time(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # print the state one minute before the end; `open --at -1m` opens the room at that time
        swarm-tui status ./simulated --at -1m
    """)
    expect(e2e.run(SIMULATED)).to_succeed()
    expect(run_block(e2e)).to_succeed()
    counts = [
        json.loads(e2e.run(f"swarm-tui status ./simulated --json {words}").stdout)["counts"].get("queued", 0)
        for words in ("", "--at -1m", "--at=-2m")
    ]
    assert counts[0] < counts[1] < counts[2]
    plain = e2e.run("swarm-tui open ./simulated --plain --at -2m")
    expect(plain.stdout).to_match(r"^Sweep \S+: at \d\d:\d\d:\d\d\n")
    expect(plain.stdout).to_contain(f"{counts[2]} queued")
    wrong = e2e.run("swarm-tui open ./simulated --plain --at yesterday")
    expect(wrong).to_exit_with(2)
    expect(wrong.stderr).to_contain("invalid time: 'yesterday'\nhint: use 12:04, 12:04:31, 2026-11-19T12:04, or -10m")
    with e2e.tmux("swarm-tui open ./simulated --at -2m", width=120, height=40) as terminal:
        terminal.wait_for("· Esc now")
        terminal.send_keys("q")
        assert terminal.wait_for_exit() == 0


def test_two_sweeps_are_compared(e2e: E2eSession) -> None:
    expect(e2e.run(SIMULATED)).to_succeed()
    e2e.write_tutorial_block("""
        # write a second sweep and compare both: tests that now fail, kept fixes that are broken again, cost
        swarm-tui simulate --headless --tests 64 --ahead 0.6 --seconds 0 --seed 2 later
        swarm-tui compare ./simulated ./later
    """)
    shown = run_block(e2e)
    expect(shown).to_succeed()
    compared = json.loads(e2e.run("swarm-tui compare ./simulated ./later --json").stdout)
    tests = {
        name: {each["test"] for each in json.loads(e2e.run(f"swarm-tui status ./{name} --json").stdout)["tests"]}
        for name in ("simulated", "later")
    }
    assert {each["test"] for each in compared["new"]} == tests["later"] - tests["simulated"]
    assert {each["test"] for each in compared["gone"]} == tests["simulated"] - tests["later"]
    expect(shown.stdout).to_match(r"(?m)^ +simulated +later$")
    expect(shown.stdout).to_match(r"(?m)^tests +60 +64$")
    expect(e2e.run("swarm-tui compare ./later ./later")).to_exit_with(2)
    alone = e2e.run("swarm-tui compare")
    expect(alone).to_exit_with(2)
    expect(alone.stderr).to_contain("no sweeps in this repository")


def test_script_waits_and_reads_events(e2e: E2eSession) -> None:
    expect(e2e.run(SIMULATED)).to_succeed()
    e2e.write_tutorial_block("""
        # wait until a condition is true, for scripts; here it is true immediately
        swarm-tui wait --until 'error or done' ./simulated
    """)
    expect(run_block(e2e).stdout).to_equal("error\n")
    e2e.write_tutorial_block("""
        # print the events, one JSON object per line; --follow continues until the sweep has finished
        swarm-tui events --json ./simulated
    """)
    types = [json.loads(line)["type"] for line in run_block(e2e).stdout.splitlines()]
    assert types[:2] == ["engine_started", "queued"]


@pytest.mark.parametrize(
    ("name", "words"),
    [("demo", "--headless"), ("attach", "--start"), ("record-connect", "--connect-command"), ("answer", "--group")],
)
def test_remaining_commands_have_help(e2e: E2eSession, name: str, words: str) -> None:
    e2e.write_tutorial_block("""
        # show the options of the demo: a complete sweep on a sample project, without a model
        swarm-tui demo --help
    """)
    e2e.write_tutorial_block("""
        # show how to attach your terminal to an agent
        swarm-tui attach --help
    """)
    e2e.write_tutorial_block("""
        # show how to record the terminal when you connect to an agent with mngr
        swarm-tui record-connect --help
    """)
    e2e.write_tutorial_block("""
        # show how to answer one agent, or all agents with the same question
        swarm-tui answer --help
    """)
    (block,) = (block for block in e2e.tutorial_blocks if f"swarm-tui {name} " in block)
    result = e2e.run(block)
    expect(result).to_succeed()
    expect(result.stdout).to_contain(words)


@pytest.fixture
def project(e2e: E2eSession, mngr_path: str) -> E2eSession:
    """Return a session with the tutorial's small project."""
    e2e.environment["SWARM_MNGR"] = mngr_path
    for beginning in ("git init --quiet", "mkdir -p records"):
        (block,) = (block for block in read_blocks(TUTORIAL) if block.commands[0].startswith(beginning))
        expect(e2e.run(block.text)).to_succeed()
    return e2e


@pytest.mark.slow
def test_agents_outside_of_sweeps_are_watched(project: E2eSession) -> None:
    project.write_tutorial_block("""
        # list all agents of mngr, including those that you created; without --plain the room opens
        swarm-tui watch --plain
    """)
    nobody = run_block(project)
    expect(nobody).to_succeed()
    expect(nobody.stdout).to_contain("mngr has no agent to show")


def test_small_project_is_created(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
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
        printf '%s\\n' records .pytest_cache __pycache__ > .gitignore
        git add .
        git commit --quiet --message "Double numbers"
    """)
    expect(run_block(e2e)).to_succeed()
    expect(e2e.run("git status --porcelain").stdout).to_be_empty()
    expect(e2e.run("python -m pytest -q -p no:cacheprovider")).to_exit_with(1)


def test_record_is_a_readable_file(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
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
    """)
    expect(run_block(e2e)).to_succeed()
    record = find_record(e2e.folder / "records", "test_double.py::test_double")
    assert record is not None
    assert [step.name for step in record.steps] == ["run", "ask", "edit", "run", "commit"]


@pytest.mark.slow
def test_sweep_is_questioned_stopped_resumed_and_answered(project: E2eSession) -> None:
    e2e = project
    e2e.write_tutorial_block("""
        # start a sweep in the background; on a terminal, `run` without --headless opens the room
        swarm-tui run --agent offline --records records --headless > sweep.log 2>&1 &
    """)
    expect(run_block(e2e)).to_succeed()
    until(lambda: states(e2e) == ["waiting"], "the agent's question")
    e2e.write_tutorial_block("""
        # print the state of the sweep
        swarm-tui status
    """)
    expect(run_block(e2e).stdout).to_match(r"waiting +✗ +test_double.py::test_double  May I change double.py\?")
    e2e.write_tutorial_block("""
        # run at most eight agents at the same time
        swarm-tui request slots 8
    """)
    expect(run_block(e2e)).to_succeed()
    assert json.loads(e2e.run("swarm-tui status --json").stdout)["slots"] == 8
    e2e.write_tutorial_block("""
        # limit the cost to 20 dollars; when the budget is spent, no agent is launched until you raise it
        swarm-tui request budget 20
    """)
    expect(run_block(e2e)).to_succeed()
    assert json.loads(e2e.run("swarm-tui status --json").stdout)["budget"] == 20
    e2e.write_tutorial_block("""
        # stop the sweep; finished work is kept
        swarm-tui stop
    """)
    expect(run_block(e2e)).to_succeed()
    assert states(e2e) == ["stopped"]
    e2e.write_tutorial_block("""
        # resume the sweep, for example after a crash or a reboot
        swarm-tui resume --headless > resumed.log 2>&1 &
    """)
    expect(run_block(e2e)).to_succeed()
    until(lambda: states(e2e) == ["waiting"], "the same question")
    e2e.write_tutorial_block("""
        # list everything that needs you, with the id for `swarm-tui answer`
        swarm-tui pending
    """)
    expect(run_block(e2e).stdout).to_match(r"[a-z2-7]{8} +1 +waits +May I change double.py\?\n +[a-z2-7]{8}  swarm-")
    e2e.write_tutorial_block("""
        # send a message to the waiting agent; it answers the question
        swarm-tui request message double --text "Yes, please."
    """)
    expect(run_block(e2e)).to_succeed()
    until(lambda: "engine finished" in (e2e.folder / "resumed.log").read_text(), "the end of the sweep")
    branch = json.loads(e2e.run("swarm-tui status --json").stdout)["integrated"]
    expect(e2e.run(f"git show {branch}:double.py").stdout).to_contain("return 2 * number")


@pytest.fixture
def swept(project: E2eSession) -> E2eSession:
    """Return a session with a finished sweep of the project, without questions."""
    expect(project.run("sed -i '/^ask = /s/.*/say = \"I go on.\"/' records/double.toml")).to_succeed()
    run = "swarm-tui run --agent offline --records records --speed 10 --headless"
    expect(project.run(run, timeout=PATIENCE)).to_succeed()
    return project


@pytest.mark.slow
def test_finished_sweep_is_reviewed_reported_and_cleaned(swept: E2eSession) -> None:
    e2e = swept
    e2e.write_tutorial_block("""
        # list the sweeps of this repository
        swarm-tui list
    """)
    expect(run_block(e2e).stdout).to_match(r"^\d{8}-\d{6}-[a-z]{5} +finished .* 1 impl fix\n$")
    e2e.write_tutorial_block("""
        # list the fixes, most useful first
        swarm-tui fixes --list
    """)
    expect(run_block(e2e).stdout).to_contain("Double exactly")
    e2e.write_tutorial_block("""
        # print the text of a pull request; --push opens it
        swarm-tui fixes --pr
    """)
    expect(run_block(e2e).stdout).to_match(
        r"(?s)^Double exactly\n\nCreated by agents.*: 1 fix\..*turns 1 test green \(measured\)"
    )
    e2e.write_tutorial_block("""
        # write the fixes as patches for `git am`
        swarm-tui fixes --patches patches
    """)
    expect(run_block(e2e).stdout).to_match(r"^patches/0001-FIX_IMPL-Double-exactly\.patch\n$")
    e2e.write_tutorial_block("""
        # preview the branch without one hunk: 1.1 is the first hunk of fix 1, `--json` lists all hunks
        swarm-tui fixes --revert 1.1 --list
    """)
    expect(run_block(e2e).stdout).to_contain("the plan is clean: 1 reverted")
    e2e.write_tutorial_block("""
        # revert fix 1 on a new branch; on a terminal, `swarm-tui fixes` opens the review
        swarm-tui fixes --revert 1 --why "it was right" --apply swarm/checked
    """)
    named = e2e.run("swarm-tui list --json").stdout
    (sweep,) = json.loads(named)
    expect(run_block(e2e)).to_succeed()
    expect(e2e.run("git show swarm/checked:double.py").stdout).to_contain("number + number + 1")
    e2e.write_tutorial_block("""
        # send a fix back to its agent with a comment, and wait for the revision
        swarm-tui fixes --send-back 1 --why "Add the number to itself."
        swarm-tui wait --until done
    """)
    expect(run_block(e2e, timeout=PATIENCE)).to_succeed()
    expect(e2e.run(f"git show {sweep['integrated']}:double.py").stdout).to_contain("return number + number\n")
    e2e.write_tutorial_block("""
        # integrate again and print the report of the integrator
        swarm-tui integrate --json
    """)
    outcome = json.loads(run_block(e2e, timeout=PATIENCE).stdout)
    assert len(outcome["impl_commit_hashes"]) == 1
    e2e.write_tutorial_block("""
        # write the results as static HTML that opens without a network
        swarm-tui report --output page
    """)
    expect(run_block(e2e)).to_succeed()
    assert "Double by adding" in "".join(path.read_text() for path in (e2e.folder / "page").rglob("*.html"))
    e2e.write_tutorial_block("""
        # remove the agents and their copies; the branches and the folder of the sweep remain
        swarm-tui clean --yes
    """)
    expect(run_block(e2e)).to_succeed()
    expect(e2e.run("git for-each-ref refs/swarm").stdout).to_be_empty()
    expect(e2e.run(f"git rev-parse --verify {sweep['integrated']}")).to_succeed()


def states(e2e: E2eSession) -> list[str]:
    """Return the states of the newest sweep's tests; empty if there is no sweep."""
    asked = e2e.run("swarm-tui status --json")
    return [each["state"] for each in json.loads(asked.stdout)["tests"]] if asked.exit_code == 0 else []
