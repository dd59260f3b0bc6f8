"""The keys by which ssh knows machines again: looked up, shown as fingerprints, and kept once a person has agreed."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.process import run_process
from swarm_tui.adapters.ssh import CONNECT_TIMEOUT, SshTarget
from swarm_tui.errors import AdapterError
from swarm_tui.regular_file import open_regular

_KEY_LINE: Final = re.compile(r"[^\s#]\S* (?:ssh|ecdsa|sk)-\S+ [A-Za-z0-9+/=]+")


@dataclass(frozen=True, slots=True)
class HostKey:
    """A key that a machine shows."""

    line: str
    """As a known_hosts file has it."""
    fingerprint: str
    kind: str
    """ED25519, RSA ..."""


async def is_known(target: SshTarget, file: Path) -> bool:
    """Return whether a known_hosts file has a key of the machine."""
    if not file.is_file():
        return False
    return (await run_process(["ssh-keygen", "-F", target.known_name, "-f", str(file)], timeout=10)).code == 0


async def offered_keys(target: SshTarget) -> tuple[HostKey, ...]:
    """Ask the machine for its keys: whoever answers there may say anything, so that a person has to compare them."""
    words = ["ssh-keyscan", "-T", str(CONNECT_TIMEOUT), "-p", str(target.port), "--", target.address]
    scanned = await run_process(words, timeout=CONNECT_TIMEOUT + 10)
    lines = [line for line in scanned.text.splitlines() if _KEY_LINE.fullmatch(line)]
    if not lines:
        raise AdapterError(
            f"{target.shown} shows no host key", f"is sshd running at port {target.port} of {target.address}?"
        )
    return tuple([await _host_key(line) for line in lines])


async def _host_key(line: str) -> HostKey:
    shown = (await run_process(["ssh-keygen", "-l", "-f", "-"], stdin=f"{line}\n".encode(), timeout=10)).text.split()
    if len(shown) < 3:
        raise AdapterError("ssh-keygen does not understand the host key that was shown")
    return HostKey(line, shown[1], shown[-1].strip("()"))


def remember(keys: tuple[HostKey, ...], file: Path) -> None:
    """Append keys to a known_hosts file, which is made if there is none."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = "".join(f"{key.line}\n" for key in keys)
    with contextlib.suppress(FileNotFoundError), open_regular(file) as known:
        known.seek(0, os.SEEK_END)
        if known.tell():
            known.seek(-1, os.SEEK_END)
            text = text if known.read(1) == b"\n" else f"\n{text}"
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as known_hosts:
        known_hosts.write(text)
