"""The first steps of the tutorial."""

from __future__ import annotations

from swarm_tui import __version__
from swarm_tui.cli.main import COMMANDS
from swarm_tui.e2e import E2eSession, expect


def test_help_lists_every_command(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # list the commands
        swarm-tui --help
    """)
    result = e2e.run("swarm-tui --help", comment="list the commands")
    expect(result).to_succeed()
    expect(result.stderr).to_be_empty()
    for command in COMMANDS:
        if command.group:
            expect(result.stdout).to_contain(f"  {command.name} ")


def test_version_is_one_line(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # print the version
        swarm-tui --version
    """)
    result = e2e.run("swarm-tui --version", comment="print the version")
    expect(result).to_succeed()
    expect(result.stdout).to_equal(f"swarm-tui {__version__}\n")


def test_command_help_has_examples(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # every command has a help page with examples
        swarm-tui tutorial --help
    """)
    result = e2e.run("swarm-tui tutorial --help", comment="every command explains itself")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("examples:")
    expect(result.stdout).to_contain("swarm-tui tutorial check tutorial.sh tests/e2e")


def test_mistyped_command_gets_suggestion(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # a mistyped command prints the most similar one and does nothing
        swarm-tui tutorail
    """)
    result = e2e.run("swarm-tui tutorail")
    expect(result).to_exit_with(2)
    expect(result.stdout).to_be_empty()
    expect(result.stderr).to_contain("did you mean `swarm-tui tutorial`?")


def test_no_hosts_explains_how_to_add_one(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # list the hosts that agents can run on; to add one: `swarm-tui hosts add user@machine`
        swarm-tui hosts list
    """)
    result = e2e.run("swarm-tui hosts list")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("no hosts; to add one: `swarm-tui hosts add user@machine`")
