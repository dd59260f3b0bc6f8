"""The tmux server of mngr. One call reads all panes, or the screens of many agents."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.processes.run import Finished, run_process
from swarm_tui.errors import AdapterError, NoTmuxServer, UsageError
from swarm_tui.model.text import plain

# mngr binds these for the whole server, to destroy and to stop the current agent without a question.
DESTRUCTIVE_KEYS: Final = ("C-q", "C-t")
SAFE_KEY_TABLE: Final = "swarm"
AGENT_WINDOW: Final = "agent"
CALL_TIMEOUT: Final = 10.0

_NO_SERVER: Final = re.compile(r"no server running|error connecting to|server exited|lost server")
_SESSION_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
# Names of sessions and mngr's ids have no colon. The window's name follows its length in bytes.
_PANE_FORMAT: Final = (
    "#{pane_dead}:#{pane_pid}:#{pane_width}:#{pane_height}:#{pane_id}:#{@mngr_agent_pane}:#{@mngr_agent_id}"
    ":#{session_name}:#{n:window_name}:#{window_name}:#{pane_current_command}"
)
LIST_PANES: Final = ("list-panes", "-a", "-F", _PANE_FORMAT)


@dataclass(frozen=True, slots=True)
class Pane:
    """A pane of the server."""

    session: str
    window: str
    is_dead: bool
    command: str
    """The program in the foreground, if tmux knows it."""
    process_id: int
    width: int
    height: int
    agent_id: str
    """mngr's id of the agent from an option of the session, which survives a rename; or empty."""
    is_agent_pane: bool
    """Whether mngr started the agent in this pane."""


class Tmux:
    """A tmux server, selected by the environment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = {name: value for name, value in environment.items() if name not in ("TMUX", "TMUX_PANE")}

    async def version(self) -> str:
        finished = await run_process(["tmux", "-V"], environment=self.environment, timeout=CALL_TIMEOUT)
        return finished.text.strip().rpartition(" ")[2]

    async def list_panes(self) -> tuple[Pane, ...]:
        """Return all panes of all sessions; raise NoTmuxServer if there is no server."""
        return parse_panes((await self._run(*LIST_PANES)).stdout)

    async def capture(self, sessions: Sequence[str], *, history: int = 0) -> dict[str, str | None]:
        """Return the screens of agents' windows with colours, in one call; None for windows that do not exist.

        The text is unsafe: clean it before showing it.
        """
        if not sessions:
            return {}
        mark = secrets.token_hex(12)
        lines = []
        for index, session in enumerate(sessions):
            lines.append(f"display-message -p {mark}:{index}")
            lines.append(f"capture-pane -p -e -S {-history} -t '{_window(session)}'")
        # Commands from a file continue after an error; commands of a command line do not.
        finished = await self._call("source-file", "-", stdin="\n".join(lines).encode())
        _raise_without_server(finished, self.environment)
        return _split_screens(finished.text, mark, sessions)

    async def pipe_pane(self, session: str, command: Sequence[str]) -> None:
        """Copy the output of an agent's pane from now on to a program's standard input."""
        # tmux expands the line as a format before the shell runs it.
        line = shlex.join(["exec", *command]).replace("#", "##").replace("%", "%%")
        await self._run("pipe-pane", "-O", "-t", _window(session), line)

    async def resize_window(self, session: str, width: int, height: int) -> None:
        await self._run("resize-window", "-t", _window(session), "-x", str(width), "-y", str(height))

    async def forget_variables(self, names: Sequence[str]) -> None:
        """Remove variables from the server's environment, which new terminals inherit."""
        words = [word for name in names for word in ("set-environment", "-g", "-u", name, ";")]
        if words:
            await self._run(*words[:-1])

    async def protect_session(self, session: str) -> None:
        """Set a separate key table for a session, without mngr's destructive keys.

        Unbinding them does not last, because every `mngr create` binds them again. With the table, the keys reach the
        program in the pane.
        """
        bindings = await self._run("list-keys", "-T", "root")
        await self._run("source-file", "-", stdin=_safe_bindings(bindings.text).encode())
        await self._run("set-option", "-t", f"={_checked(session)}:", "key-table", SAFE_KEY_TABLE)

    async def unprotect_session(self, session: str) -> None:
        """Restore the server's keys for a session."""
        await self._run("set-option", "-u", "-t", f"={_checked(session)}:", "key-table")

    async def is_protected(self, session: str) -> bool:
        finished = await self._run("show-options", "-v", "-t", f"={_checked(session)}:", "key-table")
        return finished.text.strip() == SAFE_KEY_TABLE

    async def remove_attach_popups(self, session: str) -> None:
        """Remove the popups that open when a client attaches to a session, such as mngr's welcome.

        A popup takes all keys until it closes. mngr's popup closes at once if sh is dash, and loses what was typed.
        """
        target = _window(session)
        for line in (await self._run("show-hooks", "-t", target)).text.splitlines():
            hook, _, command = line.partition(" ")
            if hook.startswith("client-attached[") and command.startswith("display-popup"):
                await self._run("set-hook", "-u", "-t", target, hook)

    async def show_in_status_line(self, session: str, text: str) -> tuple[tuple[str, str | None], ...]:
        """Show a text at the left of a session's status line. Return the options before; none if nothing changed."""
        target = f"={_checked(session)}:"
        shown = f" {text.replace('#', '##')}  [#S] "
        wanted = {"status": "on", "status-left": shown, "status-left-length": str(len(shown) + len(session))}
        own = _option_values((await self._run("show-options", "-t", target)).text)
        if own.get("status-left") == shown:
            return ()
        words = [word for option, value in wanted.items() for word in ("set-option", "-t", target, option, value, ";")]
        await self._run(*words[:-1])
        return tuple((option, own.get(option)) for option in wanted)

    async def restore_options(self, session: str, options: Sequence[tuple[str, str | None]]) -> None:
        """Restore a session's options, and unset those that it did not have."""
        target = f"={_checked(session)}:"
        for option, value in options:
            words = ["-u", "-t", target, option] if value is None else ["-t", target, option, value]
            await self._run("set-option", *words)

    async def bound_destructive_keys(self) -> tuple[str, ...]:
        """Return the destructive keys that are bound on this server."""
        bindings = await self._run("list-keys", "-T", "root")
        bound = {line.partition("-T root ")[2].split(maxsplit=1)[0] for line in bindings.text.splitlines()}
        return tuple(key for key in DESTRUCTIVE_KEYS if key in bound)

    async def prefix_key(self) -> str:
        """Return the prefix key, such as C-b."""
        return (await self._run("show-options", "-gv", "prefix")).text.strip()

    async def kill_server(self) -> None:
        """Stop the server and all its programs; raise UsageError unless it is a private server."""
        if not self.environment.get("TMUX_TMPDIR"):
            raise UsageError("cannot stop the user's tmux server", "swarm-tui stops private servers only")
        try:
            await self._run("kill-server")
        except NoTmuxServer:
            return

    def attach_command(self, session: str) -> list[str]:
        """Return a command that attaches to a session. It is faster than `mngr connect`."""
        return ["tmux", "attach-session", "-t", f"={_checked(session)}"]

    async def output_of(self, *words: str) -> str:
        """Return the output of a tmux command; "" if it fails."""
        finished = await self._call(*words)
        return finished.text.strip() if finished.code == 0 else ""

    async def _run(self, *words: str, stdin: bytes | None = None) -> Finished:
        finished = await self._call(*words, stdin=stdin)
        _raise_without_server(finished, self.environment)
        if finished.code != 0:
            raise AdapterError(f"tmux {words[0]} failed: {plain(finished.error_text, 300)}")
        return finished

    async def _call(self, *words: str, stdin: bytes | None = None) -> Finished:
        folder = self.environment.get("TMUX_TMPDIR")
        if folder and not Path(folder).is_dir():
            # tmux would silently use another server in /tmp.
            raise NoTmuxServer(f"the tmux folder does not exist any more: {folder}", "its agents have exited")
        # -u: print non-ASCII names unchanged.
        return await run_process(
            ["tmux", "-u", *words], environment=self.environment, stdin=stdin, timeout=CALL_TIMEOUT
        )


def parse_panes(output: bytes) -> tuple[Pane, ...]:
    """Parse the output of LIST_PANES."""
    panes = (_parse_pane(line) for line in output.splitlines())
    return tuple(pane for pane in panes if pane is not None)


def is_without_server(error: str) -> bool:
    """Return whether an error of tmux means that no server is running."""
    return _NO_SERVER.search(error) is not None


def _checked(session: str) -> str:
    if _SESSION_NAME.fullmatch(session) is None:
        raise UsageError(f"invalid name of an agent's tmux session: {session!r}")
    return session


def _window(session: str) -> str:
    """Return the target of a session's agent window. Without `=`, longer names would match."""
    return f"={_checked(session)}:{AGENT_WINDOW}"


def _raise_without_server(finished: Finished, environment: Mapping[str, str]) -> None:
    if finished.code != 0 and is_without_server(finished.error_text):
        folder = environment.get("TMUX_TMPDIR") or "the default folder"
        raise NoTmuxServer(f"no tmux server in {folder}", "its agents have exited, or run on another server")


def _parse_pane(line: bytes) -> Pane | None:
    fields = line.split(b":", 9)
    if len(fields) != 10 or not fields[1].isdigit() or not fields[8].isdigit():
        return None
    dead, process_id, width, height, pane_id, agent_pane, agent_id, session, length, rest = fields
    window, command = rest[: int(length)], rest[int(length) + 1 :]
    return Pane(
        session=session.decode("utf-8", "replace"),
        window=window.decode("utf-8", "replace"),
        is_dead=dead == b"1",
        command=command.decode("utf-8", "replace"),
        process_id=int(process_id),
        width=int(width or 0),
        height=int(height or 0),
        agent_id=agent_id.decode("utf-8", "replace"),
        is_agent_pane=agent_pane == pane_id if agent_pane else window == AGENT_WINDOW.encode(),
    )


def _option_values(shown: str) -> dict[str, str]:
    """Parse the output of show-options."""
    lines = (line.partition(" ") for line in shown.splitlines())
    return {name: "".join(shlex.split(value)) for name, _, value in lines if name.startswith("status")}


def _split_screens(text: str, mark: str, sessions: Sequence[str]) -> dict[str, str | None]:
    screens: dict[str, str | None] = dict.fromkeys(sessions)
    for part in text.split(f"{mark}:")[1:]:
        index, _, screen = part.partition("\n")
        screens[sessions[int(index)]] = screen or None
    return screens


def _safe_bindings(bindings: str) -> str:
    """Return commands that copy the server's root bindings, except the destructive ones, to our key table."""
    kept = []
    for line in bindings.splitlines():
        flags, table, rest = line.partition("-T root ")
        if table and rest.split(maxsplit=1)[:1] not in ([key] for key in DESTRUCTIVE_KEYS):
            kept.append(f"{flags}-T {SAFE_KEY_TABLE} {rest}")
    return "\n".join(kept)
