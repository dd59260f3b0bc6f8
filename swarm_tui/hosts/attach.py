"""Connect the user's terminal to an agent's, and restore both afterwards.

mngr binds ctrl+q (destroy this agent) and ctrl+t (stop it) for its whole tmux server. While the user is attached, the
agent's session, and our own inside tmux, have a key table without these keys.
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
    """The tmux around us."""

    socket: str
    session: str
    prefix: str
    is_same_server: bool


@dataclass(frozen=True, slots=True)
class AttachPlan:
    """The state of an agent's terminal before attaching."""

    agent: str
    """The agent's name for mngr."""
    session: str
    is_there: bool
    """Whether the agent has a terminal."""
    is_ended: bool = False
    """The agent's program has exited, and the terminal shows its last screen."""
    prefix: str = "C-b"
    outer: OuterTerminal | None = None

    @property
    def way_back(self) -> str:
        """Return the keys that detach."""
        if self.outer is None:
            return f"{self.prefix} d"
        # The outer tmux takes the first prefix, so press it twice for the inner tmux.
        return f"{self.prefix} {self.prefix} d" if self.outer.prefix == self.prefix else f"{self.prefix} d"


@dataclass(frozen=True, slots=True)
class PreparedAttach:
    """The changes before attaching, to undo them later."""

    approach: AttachPlan
    protected: tuple[tuple[str | None, str], ...] = ()
    """(socket, session) of the sessions with the safe key table."""
    size: tuple[int, int] | None = None
    size_option: str = ""
    warning: str = ""
    status: tuple[tuple[str, str | None], ...] = ()
    """The options of the session's status line before the keys to detach were shown there."""


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
        """Return the state of an agent's terminal. Change and start nothing."""
        if not is_agent_name(agent):
            raise UsageError(f"invalid name of an agent: {agent!r}")
        try:
            found = (await self._host.statuses()).by_name.get(agent)
        except HostUnreachable as error:
            raise AdapterError(f"cannot see the agents: {error.message}", error.hint) from error
        if found is None:
            raise AdapterError(
                f"mngr knows no agent {agent} any more", "it was destroyed, or belongs to another home of mngr"
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
        """Make attaching safe. With `is_started`, start a stopped agent first, which runs its command again."""
        if not approach.is_there:
            if not is_started:
                raise UsageError(f"{approach.agent} is stopped", "to attach, start its command from the beginning")
            report = await self._mngr.start([approach.agent])
            if report.failed or report.missing:
                reason = report.failed[0].error if report.failed else "unknown agent"
                raise AdapterError(f"cannot start {approach.agent}: {reason}")
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
        """Show the keys to detach in the session's status line. Without one, the room has shown them."""
        with contextlib.suppress(SwarmError):
            return await self._tmux.show_in_status_line(approach.session, f"{approach.way_back}: back to the room")
        return ()

    def run(self, prepared: PreparedAttach) -> int:
        """Connect our terminal to the agent's until the user detaches. Block, and return the exit code.

        Start nothing, even if the engine stops the agent at this moment. If the agent's program has exited,
        `mngr connect` would restart or refuse the agent, so show its last screen with tmux.
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
            raise ProgramMissing(f"cannot start mngr: {error.message}", how_to_get("mngr")) from error

    def open_pane(self, prepared: PreparedAttach, rows: int, columns: int) -> TerminalProgram:
        """Show an agent's session in a pseudo-terminal."""
        environment = self._environment | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        words = ["tmux", "-u", *self._tmux.attach_command(prepared.approach.session)[1:]]
        if self._settings is not None:
            words = [*target_of(self._settings).words("-t", "-t"), shlex.join(words)]
        return TerminalProgram(words, rows=rows, columns=columns, environment=environment)

    async def clean_up(self, prepared: PreparedAttach) -> None:
        """Restore keys and size, if the session still exists."""
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
            # TMUX belongs to a server that has exited.
            return None
        is_same = (
            self._settings is None and socket is not None and os.path.realpath(socket) == os.path.realpath(own_socket)
        )
        if is_same and own_session == session:
            raise UsageError("this is the terminal of the agent itself", "attach from another terminal")
        return OuterTerminal(own_socket, own_session, prefix or "C-b", is_same)

    async def _protect_outer(self, approach: AttachPlan, protected: list[tuple[str | None, str]]) -> str:
        """Remove the destructive keys from our own session, too, which sees keys first inside tmux."""
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
        # The client that left may still be exiting. Another client belongs to another user.
        deadline = time.monotonic() + CLIENT_GRACE
        while await self._tmux.output_of("list-clients", "-t", f"={session}"):
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(0.05)
        await self._tmux.resize_window(session, *size)
        # Resizing makes the size manual, and the window would not fit the next client.
        words = [option] if option else []
        flags = ["-w"] if option else ["-w", "-u"]
        await self._tmux.output_of("set-option", *flags, "-t", f"={session}:{AGENT_WINDOW}", "window-size", *words)


class SshAttacher(Attacher):
    """Attaches to an agent that only mngr can reach. Its terminal cannot be examined or changed before."""

    def __init__(self, local: Host, mngr: MngrSettings, address: AgentAddress) -> None:
        super().__init__(local, mngr)
        self._address = address

    async def examine(self, agent: str) -> AttachPlan:
        return AttachPlan(self._address.mngr_name, self._address.session, is_there=True)

    async def prepare(self, approach: AttachPlan, *, is_started: bool = False) -> PreparedAttach:
        return PreparedAttach(approach, warning="do not press ctrl+q or ctrl+t: mngr would destroy or stop the agent")

    def open_pane(self, prepared: PreparedAttach, rows: int, columns: int) -> TerminalProgram:
        raise UsageError("cannot show the pane of an agent on another machine", "press `a` to attach")

    async def clean_up(self, prepared: PreparedAttach) -> None:
        """Do nothing, because nothing was changed."""


class _OuterTmux(Tmux):
    """The tmux server around us, by its socket."""

    def __init__(self, socket: str) -> None:
        super().__init__(os.environ)
        self._socket = socket

    async def _call(self, *words: str, stdin: bytes | None = None) -> Finished:
        words = ("tmux", "-u", "-S", self._socket, *words)
        return await run_process(words, environment=self.environment, stdin=stdin, timeout=CALL_TIMEOUT)

    async def session_of(self, pane: str) -> str:
        """Return the name of the session with a pane."""
        target = ["-t", pane] if re.fullmatch(r"%\d+", pane) else []
        return (await self._run("display-message", "-p", *target, "#{session_name}")).text.strip()

    async def has_deadly_keys(self) -> bool:
        """Whether mngr has bound its keys on this server."""
        return "mngr" in (await self._run("list-keys", "-T", "root")).text
