"""What is done to an agent's copy before the agent starts, and the folders that the agents have outside of it."""

from __future__ import annotations

import re
import secrets
import shlex
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.set_up import set_up_script
from swarm_tui.model.limits import own_folder
from swarm_tui.model.sweep import SweepSpec

# Of a socket's 107 bytes, agents and their tests need most themselves.
_LONGEST_PARENT: Final = 30
_PLAIN_PATH: Final = re.compile(r"/[\w./@+-]*")
_OURS: Final = re.compile(r"sw-[0-9a-f]{12}")


def new_temporary_folder(spec: SweepSpec) -> str:
    """Return a path that nobody has, for the temporary folders of a sweep's agents; it is made by the first one."""
    parent = tempfile.gettempdir()
    if spec.is_private and spec.mngr.tmux_tmpdir is not None:
        # It goes with the home that was made for this sweep alone.
        parent = spec.mngr.tmux_tmpdir
    if len(parent) > _LONGEST_PARENT or not _PLAIN_PATH.fullmatch(parent):
        parent = "/tmp"
    return f"{parent}/sw-{secrets.token_hex(6)}"


@dataclass(frozen=True, slots=True)
class HostSetUp:
    """What of the preparation is different on another host."""

    checkout: str
    is_done: bool
    """Whether the set-up was run once for all agents there."""


def preparation_words(spec: SweepSpec, number: int, host: HostSetUp | None = None) -> tuple[str, ...]:
    """Return the words by which mngr prepares the copy of an agent, and its temporary folder."""
    commands = [_own_folder_command(spec, number)] if spec.temporary and number else []
    if host is None:
        commands += spec.fill
    if spec.setup and (host is None or not host.is_done):
        commands.append(set_up_script(spec.setup, spec.repository if host is None else host.checkout))
    return tuple(word for command in commands for word in ("--extra-provision-command", command))


def _own_folder_command(spec: SweepSpec, number: int) -> str:
    """Return the command that makes the folder anew; the one above it has to be ours."""
    above, own = shlex.quote(spec.temporary), shlex.quote(own_folder(spec.temporary, number))
    home = f" && mkdir {own}/home" if spec.has_own_home else ""
    return f"mkdir -m 700 -p {above} && test -O {above} && test ! -L {above} && rm -rf {own} && mkdir {own}{home}"


def checked_temporary(spec: SweepSpec) -> str:
    """Return the path of a sweep's temporary folders, or nothing when it does not look like one that we make.

    sweep.json is a file that anybody may have written: nothing is removed on its word alone.
    """
    folder = Path(spec.temporary or "/")
    is_ours = _OURS.fullmatch(folder.name) is not None and folder.is_absolute() and ".." not in folder.parts
    return spec.temporary if is_ours else ""


def temporary_folder(spec: SweepSpec) -> Path | None:
    """Return the folder of a sweep's temporary folders if it is here and ours."""
    folder = Path(checked_temporary(spec) or "/")
    return folder if folder.name and folder.is_dir() and not folder.is_symlink() else None


def remove_temporary_folder(spec: SweepSpec) -> None:
    """Remove the temporary folders of a sweep's agents on this machine."""
    folder = temporary_folder(spec)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
