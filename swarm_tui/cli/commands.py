"""The table of commands: name, module, one line of help. A module is imported only when its command is called."""

from __future__ import annotations

from typing import Final, NamedTuple


class Command(NamedTuple):
    """One command of the command line."""

    name: str
    module: str
    summary: str


# In the order in which `swarm-tui --help` lists them.
COMMANDS: Final[tuple[Command, ...]] = (
    Command("open", "swarm_tui.cli.open", "open the room on a sweep (what happens without a command)"),
    Command("simulate", "swarm_tui.cli.simulate", "watch a simulated sweep of any size: nothing is run"),
    Command("demo", "swarm_tui.cli.demo", "see a whole sweep on a sample project, without a model"),
    Command("run", "swarm_tui.cli.run", "start a sweep: one agent for each test"),
    Command("status", "swarm_tui.cli.status", "where every test of a sweep stands"),
    Command("events", "swarm_tui.cli.events", "what happens in a sweep, line by line, for scripts"),
    Command("wait", "swarm_tui.cli.wait", "wait until a sweep is done, or asks, or fails; for scripts"),
    Command("watch", "swarm_tui.cli.watch", "all agents of mngr in one grid, also those that no sweep made"),
    Command("list", "swarm_tui.cli.list", "the sweeps of this repository"),
    Command("compare", "swarm_tui.cli.compare", "what is different in the later of two sweeps"),
    Command("stop", "swarm_tui.cli.stop", "stop a sweep, so that it can be resumed"),
    Command("resume", "swarm_tui.cli.resume", "take a sweep up again after a stop, a crash or a reboot"),
    Command("request", "swarm_tui.cli.request", "ask a running sweep for something: slots, retry, hold, a message"),
    Command("pending", "swarm_tui.cli.pending", "everything in a sweep that needs a person, most urgent first"),
    Command("answer", "swarm_tui.cli.answer", "answer what an agent asks, or what many ask alike"),
    Command("integrate", "swarm_tui.cli.integrate", "make the integrated branch of a sweep again"),
    Command("clean", "swarm_tui.cli.clean", "remove a sweep's agents, copies and refs; says what is lost"),
    Command("fixes", "swarm_tui.cli.fixes", "keep or revert each fix, one after the other"),
    Command("report", "swarm_tui.cli.report", "make the page of a sweep: a folder that opens anywhere, offline"),
    Command("attach", "swarm_tui.cli.attach", "put this terminal in front of one agent"),
    Command("record-connect", "swarm_tui.cli.record_connect", "connect to an agent and record it; mngr calls this"),
    Command("tutorial", "swarm_tui.cli.tutorial", "list a tutorial's blocks, check that tests cite them"),
    Command("doctor", "swarm_tui.cli.doctor", "what is missing on this machine, and how to get it"),
    Command("hosts", "swarm_tui.cli.hosts", "the machines that agents can run on: add, list, check, remove"),
    Command("completion", "swarm_tui.cli.completion", "print the completion script of a shell"),
)

COMMAND_BY_NAME: Final = {command.name: command for command in COMMANDS}
