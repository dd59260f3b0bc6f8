"""Connects a person's terminal to an agent's on this machine, and puts everything back as it was behind them.

mngr binds ctrl+q to "destroy this agent" and ctrl+t to "stop it" for its whole tmux server: while a person
is attached, the agent's session (and our own, when we run inside tmux) gets a key table without the two.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.mngr_messages import is_agent_name
from swarm_tui.adapters.mngr_settings import mngr_environment
from swarm_tui.adapters.processes.foreground import restored_terminal, run_in_foreground
from swarm_tui.adapters.processes.group import how_to_get
from swarm_tui.adapters.processes.run import Finished, run_process
from swarm_tui.adapters.processes.terminal import TerminalProgram
from swarm_tui.adapters.ssh import ssh_noticing_loss, target_of
from swarm_tui.adapters.tmux import AGENT_WINDOW, CALL_TIMEOUT, Tmux
from swarm_tui.errors import AdapterError, ProgramMissing, SwarmError, UsageError
from swarm_tui.hosts.protocol import AgentAddress, Host, HostUnreachable
from swarm_tui.model.spec import MngrSettings

CLIENT_GRACE: Final = 2.0


@dataclass(frozen=True, slots=True)
class OuterTerminal:
    """The tmux that we ourselves run in."""

    socket: str
    session: str
    prefix: str
    is_same_server: bool


@dataclass(frozen=True, slots=True)
class AttachPlan:
    """What attaching to an agent would meet."""

    agent: str
    """Its name for mngr."""
    session: str
    is_there: bool
    """Whether it has a terminal to attach to."""
    is_ended: bool = False
    """Its program has ended; its terminal shows what it left."""
    prefix: str = "C-b"
    outer: OuterTerminal | None = None

    @property
    def way_back(self) -> str:
        """Return the keys that detach, as they must be pressed here."""
        if self.outer is None:
            return f"{self.prefix} d"
        # The outer tmux takes the first prefix; only a second one goes through to the inner tmux.
        return f"{self.prefix} {self.prefix} d" if self.outer.prefix == self.prefix else f"{self.prefix} d"


@dataclass(frozen=True, slots=True)
class PreparedAttach:
    """What was changed before attaching, so that it can be put back."""

    approach: AttachPlan
    protected: tuple[tuple[str | None, str], ...] = ()
    """(socket, session) of the sessions that got the safe key table."""
    size: tuple[int, int] | None = None
    size_option: str = ""
    warning: str = ""
    status: tuple[tuple[str, str | None], ...] = ()
    """Options of the session's status line before the way back was written there."""


class Attacher:
    """Attach to agents of one host through `mngr connect`."""

    def __init__(
        self, host: Host, mngr: MngrSettings, repository: Path | None = None, own: Mapping[str, str] | None = None
    ) -> None:
        """`own` is the environment of the user's terminal, by default that of this process."""
        self._host = host
        self._tmux = host.tmux
        self._repository = repository if repository is not None and repository.is_dir() else None
        self._own = os.environ if own is None else own
        self._settings = host.settings
        self._environment = host.tmux.environment if host.settings is None else mngr_environment(mngr)
        self._mngr = Mngr(mngr.path, self._environment, self._repository)

    async def examine(self, agent: str) -> AttachPlan:
        """Return what attaching would meet; changes and starts nothing."""
        if not is_agent_name(agent):
            raise UsageError(f"{agent!r} is no name of an agent")
        try:
            found = (await self._host.statuses()).by_name.get(agent)
        except HostUnreachable as error:
            raise AdapterError(f"nothing can be told about the agents: {error.message}", error.hint) from error
        if found is None:
            raise AdapterError(
                f"mngr knows no agent {agent} any more", "it was destroyed, or belongs to another mngr home"
            )
        is_there = found.state != "STOPPED"
        prefix, socket = "C-b", None
        if is_there:
            prefix = await self._tmux.prefix_key() or "C-b"
            socket = await self._tmux.output_of("display-message", "-p", "#{socket_path}")
        session = found.address.session
        outer = await self._outer(session, socket)
        return AttachPlan(found.address.mngr_name, session, is_there, found.state == "DONE", prefix, outer)

    async def prepare(self, approach: AttachPlan, *, is_started: bool = False) -> PreparedAttach:
        """Make it safe to attach; with `is_started`, a stopped agent is started first: its command runs again."""
        if not approach.is_there:
            if not is_started:
                raise UsageError(f"{approach.agent} is stopped", "attaching would start its command from the beginning")
            report = await self._mngr.start([approach.agent])
            if report.failed or report.missing:
                reason = report.failed[0].error if report.failed else "mngr does not know it"
                raise AdapterError(f"{approach.agent} could not be started: {reason}")
        protected: list[tuple[str | None, str]] = []
        if not await self._tmux.is_protected(approach.session):
            await self._tmux.protect_session(approach.session)
            protected.append((None, approach.session))
        warning = await self._protect_outer(approach, protected)
        with contextlib.suppress(SwarmError):
            await self._tmux.remove_attach_popups(approach.session)
        target = f"={approach.session}:{AGENT_WINDOW}"
        shown = await self._tmux.output_of("display-message", "-p", "-t", target, "#{window_width} #{window_height}")
        option = await self._tmux.output_of("show-options", "-wv", "-t", target, "window-size")
        words = shown.split()
        size = (int(words[0]), int(words[1])) if len(words) == 2 else None
        status = await self._show_way_back(approach)
        return PreparedAttach(approach, tuple(protected), size, option, warning, status)

    async def _show_way_back(self, approach: AttachPlan) -> tuple[tuple[str, str | None], ...]:
        """Say in the session's status line how to come back; without one the room has said it before."""
        with contextlib.suppress(SwarmError):
            return await self._tmux.show_in_status_line(approach.session, f"{approach.way_back}: back to the room")
        return ()

    def run(self, prepared: PreparedAttach) -> int:
        """Hand our terminal to the agent's until the person detaches; blocks; return the exit code.

        Nothing is started, also when the engine stops the agent this very moment. `mngr connect` starts an agent whose
        program has ended, or refuses it: tmux itself shows what such a program left.
        """
        approach = prepared.approach
        if approach.is_ended:
            words = self._tmux.attach_command(approach.session)
        else:
            words = [*self._mngr.connect_command(approach.agent), "--no-start"]
        try:
            if self._settings is None:
                return run_in_foreground(words, cwd=self._repository, environment=self._environment)
            with restored_terminal(), ssh_noticing_loss(self._environment) as environment:
                return run_in_foreground(words, cwd=self._repository, environment=environment)
        except ProgramMissing as error:
            raise ProgramMissing(f"mngr cannot be started: {error.message}", how_to_get("mngr")) from error

    def open_pane(self, prepared: PreparedAttach, rows: int, columns: int) -> TerminalProgram:
        """Show an agent's session in a terminal of our own making."""
        environment = self._environment | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        words = ["tmux", "-u", *self._tmux.attach_command(prepared.approach.session)[1:]]
        if self._settings is not None:
            words = [*target_of(self._settings).words("-t", "-t"), shlex.join(words)]
        return TerminalProgram(words, rows=rows, columns=columns, environment=environment)

    async def clean_up(self, prepared: PreparedAttach) -> None:
        """Put back keys and size; what is gone meanwhile needs nothing put back."""
        for socket, session in prepared.protected:
            with contextlib.suppress(SwarmError):
                await (self._tmux if socket is None else _OuterTmux(socket)).unprotect_session(session)
        if prepared.status:
            with contextlib.suppress(SwarmError):
                await self._tmux.restore_options(prepared.approach.session, prepared.status)
        if prepared.size is not None:
            with contextlib.suppress(SwarmError):
                await self._restore_size(prepared.approach.session, prepared.size, prepared.size_option)

    async def _outer(self, session: str, socket: str | None) -> OuterTerminal | None:
        own_socket = self._own.get("TMUX", "").split(",")[0]
        pane = self._own.get("TMUX_PANE", "")
        if not own_socket:
            return None
        tmux = _OuterTmux(own_socket)
        try:
            prefix = await tmux.prefix_key()
            own_session = await tmux.session_of(pane)
        except SwarmError:
            # A stale TMUX: the variable outlived its server.
            return None
        is_same = (
            self._settings is None and socket is not None and os.path.realpath(socket) == os.path.realpath(own_socket)
        )
        if is_same and own_session == session:
            raise UsageError(
                "this terminal is already the agent's own", "attaching here would show it within itself without end"
            )
        return OuterTerminal(own_socket, own_session, prefix or "C-b", is_same)

    async def _protect_outer(self, approach: AttachPlan, protected: list[tuple[str | None, str]]) -> str:
        """Keep the deadly keys from our own session too: inside tmux, it is that one which sees them first."""
        outer = approach.outer
        if outer is None:
            return ""
        tmux = _OuterTmux(outer.socket)
        try:
            if await tmux.has_deadly_keys() and not await tmux.is_protected(outer.session):
                await tmux.protect_session(outer.session)
                protected.append((outer.socket, outer.session))
        except SwarmError:
            return "do not press ctrl+q or ctrl+t: mngr would destroy or stop an agent"
        return ""

    async def _restore_size(self, session: str, size: tuple[int, int], option: str) -> None:
        # The client that just left may still be on its way out; one that stays is somebody else's.
        deadline = time.monotonic() + CLIENT_GRACE
        while await self._tmux.output_of("list-clients", "-t", f"={session}"):
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(0.05)
        await self._tmux.resize_window(session, *size)
        # Resizing by command makes the size manual: the next person would see a window that does not fit.
        words = [option] if option else []
        flags = ["-w"] if option else ["-w", "-u"]
        await self._tmux.output_of("set-option", *flags, "-t", f"={session}:{AGENT_WINDOW}", "window-size", *words)


class SshAttacher(Attacher):
    """Attaches to an agent that only mngr reaches: nothing of its terminal can be seen or changed before."""

    def __init__(self, local: Host, mngr: MngrSettings, address: AgentAddress) -> None:
        super().__init__(local, mngr)
        self._address = address

    async def examine(self, agent: str) -> AttachPlan:
        return AttachPlan(self._address.mngr_name, self._address.session, is_there=True)

    async def prepare(self, approach: AttachPlan, *, is_started: bool = False) -> PreparedAttach:
        return PreparedAttach(approach, warning="do not press ctrl+q or ctrl+t: mngr would destroy or stop the agent")

    def open_pane(self, prepared: PreparedAttach, rows: int, columns: int) -> TerminalProgram:
        raise UsageError("the pane of an agent on another machine cannot be shown here", "`a` attaches to it")

    async def clean_up(self, prepared: PreparedAttach) -> None:
        """Do nothing: nothing was changed."""


class _OuterTmux(Tmux):
    """The tmux server that we run in, named by its socket."""

    def __init__(self, socket: str) -> None:
        super().__init__(os.environ)
        self._socket = socket

    async def _call(self, *words: str, stdin: bytes | None = None) -> Finished:
        words = ("tmux", "-u", "-S", self._socket, *words)
        return await run_process(words, environment=self.environment, stdin=stdin, timeout=CALL_TIMEOUT)

    async def session_of(self, pane: str) -> str:
        """Return the name of the session that holds a pane."""
        target = ["-t", pane] if re.fullmatch(r"%\d+", pane) else []
        return (await self._run("display-message", "-p", *target, "#{session_name}")).text.strip()

    async def has_deadly_keys(self) -> bool:
        """Whether mngr has bound its keys on this server."""
        return "mngr" in (await self._run("list-keys", "-T", "root")).text
