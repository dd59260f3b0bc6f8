"""Run single commands by ssh, and read host keys."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from swarm_tui.adapters.processes.run import Finished, run_process
from swarm_tui.errors import AdapterError, ProgramTimeout, UsageError
from swarm_tui.files import open_regular
from swarm_tui.model.spec import HostSettings
from swarm_tui.model.text import plain, plain_lines

CONNECT_TIMEOUT: Final = 10
CALL_TIMEOUT: Final = 25.0
FAILED: Final = 255
"""The exit code of ssh itself. All others are those of the command."""

SILENT_SHELL: Final = "let its ~/.bashrc print only in terminals: begin it with `case $- in *i*) ;; *) return;; esac`"
"""The hint for a shell that prints something before every command."""

FOREIGN_SHELLS: Final = frozenset({"fish", "csh", "tcsh", "nu", "xonsh", "elvish", "pwsh"})
"""Login shells that do not run the commands of mngr, which are written for sh."""
OTHER_SHELL: Final = "run `chsh -s /bin/bash` there; ~/.bashrc can still `exec` the other shell in terminals"

_NOTICES_LOSS: Final = (
    "-o", f"ConnectTimeout={CONNECT_TIMEOUT}", "-o", "ServerAliveInterval=3", "-o", "ServerAliveCountMax=3",
)  # fmt: skip
"""Options with which ssh exits within ten seconds if the host stops answering."""

_TARGET: Final = re.compile(
    r"(?:(?P<user>[a-z_][a-z0-9_.-]*)@)?"
    r"(?P<machine>[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+(?:%[a-z0-9]+)?\])(?::(?P<port>\d{1,9}))?",
    re.IGNORECASE | re.ASCII,
)
_ADD_SHOWS: Final = "run `swarm-tui hosts add`, which shows the key and asks"
_ACCEPTED_KEY: Final = re.compile(r"^debug1: Server accepts key: (.+?) [A-Z0-9-]+ SHA256:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SshTarget:
    """A host and its ssh connection."""

    user: str
    address: str
    port: int = 22
    key_file: str | None = None
    known_hosts_file: str | None = None
    name: str = ""
    """The user's name for the host. The settings of ssh may have a key for that name."""
    is_found_by_name: bool = False
    """Whether ssh needs the name to find the host, because of a jump host or an IPv6 address."""

    @property
    def shown(self) -> str:
        """Return `user@host`, with the port if it is not 22."""
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.user}@{address}" + (f":{self.port}" if self.port != 22 else "")

    @property
    def known_name(self) -> str:
        """Return the name of the host in known_hosts files."""
        return self.address if self.port == 22 else f"[{self.address}]:{self.port}"

    def words(self, *options: str) -> list[str]:
        """Return the arguments of ssh up to the host. A command can follow."""
        words = ["ssh", "-T", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "ControlPath=none"]
        words += _NOTICES_LOSS
        if self.known_hosts_file is not None:
            words += ["-o", f"UserKnownHostsFile={_quoted(self.known_hosts_file)}"]
        if self.key_file is not None:
            words += ["-i", self.key_file, "-o", "IdentitiesOnly=yes"]
        return [*words, *options, "-p", str(self.port), "-l", self.user, "--", self.address]


def target_of(access: HostSettings) -> SshTarget:
    """Return how to connect to a host of a sweep."""
    return SshTarget(
        access.user,
        access.address,
        access.port,
        os.path.expanduser(access.key_file) if access.key_file else None,
        os.path.expanduser(access.known_hosts_file) if access.known_hosts_file else None,
    )


async def parse_target(text: str) -> SshTarget:
    """Parse `user@host:port`, with defaults from ssh's settings. Raise UsageError if it is invalid."""
    found = _TARGET.fullmatch(text)
    if found is None:
        raise UsageError(f"invalid host: {plain(text, 100)!r}", "use user@host or user@host:port")
    user, machine, port = found["user"], found["machine"].strip("[]"), found["port"]
    if port is not None and not 0 < int(port) < 65536:
        raise UsageError(f"invalid port: {plain(port, 20)}", "use a port from 1 to 65535")
    answer = (await run_process(["ssh", "-G", "--", machine], timeout=CALL_TIMEOUT)).text
    return target_in_settings(machine, answer, user, port)


def target_in_settings(machine: str, answer: str, user: str | None = None, port: str | None = None) -> SshTarget:
    """Return a host as in the output of `ssh -G`, except for what the user has given."""
    known = dict(line.split(" ", 1) for line in answer.splitlines() if " " in line)
    address = known.get("hostname", "") or machine
    is_behind_another = any(known.get(way, "none") != "none" for way in ("proxyjump", "proxycommand"))
    is_found_by_name = is_behind_another or (":" in address and address != machine)
    return SshTarget(
        user or known.get("user", "") or getpass.getuser(),
        machine if is_found_by_name else address,
        int(port or known.get("port", "") or 22),
        name=machine,
        is_found_by_name=is_found_by_name,
    )


@contextlib.contextmanager
def ssh_noticing_loss(environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Return an environment in which `ssh` exits if its host is lost, for programs that call ssh without options.

    Otherwise a terminal stays connected to a frozen host for hours.
    """
    path = environment.get("PATH", os.defpath)
    ssh = shutil.which("ssh", path=path)
    if ssh is None:
        yield dict(environment)
        return
    with tempfile.TemporaryDirectory(prefix="swarm-ssh-", ignore_cleanup_errors=True) as folder:
        own = Path(folder) / "ssh"
        own.write_text(f'#!/bin/sh\nexec {shlex.join([ssh, *_NOTICES_LOSS])} "$@"\n')
        own.chmod(0o700)
        yield {**environment, "PATH": f"{folder}{os.pathsep}{path}"}


async def run_script(target: SshTarget, script: str, *, timeout: float = CALL_TIMEOUT) -> Finished:
    """Run a script with sh on the host, whatever its login shell is. Raise AdapterError if ssh fails."""
    finished = await _call(target, [*target.words(), "exec sh -s"], script.encode(), timeout)
    if finished.code == FAILED:
        raise connection_error(target, finished.error_text)
    return finished


async def accepted_key(target: SshTarget) -> str | None:
    """Return the file of the accepted key; None if it is a key of an ssh agent."""
    by_name = replace(target, address=target.name or target.address)
    finished = await _call(target, [*by_name.words("-v"), "true"], b"", CALL_TIMEOUT)
    if finished.code == FAILED:
        raise connection_error(target, finished.error_text)
    accepted = _ACCEPTED_KEY.findall(finished.error_text)
    return accepted[-1] if accepted and Path(accepted[-1]).is_file() else None


async def _call(target: SshTarget, words: list[str], stdin: bytes, timeout: float) -> Finished:
    try:
        return await run_process(words, stdin=stdin, timeout=timeout)
    except ProgramTimeout:
        raise _no_answer(target, timeout) from None


def _no_answer(target: SshTarget, seconds: float) -> AdapterError:
    return AdapterError(
        f"no answer from {target.shown} within {seconds:g} s", "the host may be frozen, or the network down"
    )


def connection_error(target: SshTarget, said: str) -> AdapterError:
    """Return an error with a hint for an error message of ssh."""
    where, lowered = target.shown, said.lower()
    key = target.key_file or "your key"
    if "identification has changed" in lowered:
        file = target.known_hosts_file or "~/.ssh/known_hosts"
        return AdapterError(
            f"the host key of {where} does not match {file}: the host was reinstalled, or another host answers",
            f"if it was reinstalled: `ssh-keygen -f {shlex.quote(file)} -R {shlex.quote(target.known_name)}`, "
            "and add it again",
        )
    if "host key verification failed" in lowered or "host key is known" in lowered:
        way = f"run `ssh {target.name}`, which shows the key and asks" if target.is_found_by_name else _ADD_SHOWS
        return AdapterError(f"unknown host key: {where}", way)
    if "unprotected private key" in lowered:
        return AdapterError(f"ssh does not use {key}, because others can read it", f"chmod 600 {shlex.quote(key)}")
    if "permission denied" in lowered or "too many authentication failures" in lowered:
        hint = f"use another key with --key, or add its public part to ~{target.user}/.ssh/authorized_keys there"
        return AdapterError(f"{where} accepts none of your keys ({plain(key, 200)})", hint)
    if "could not resolve" in lowered or "name or service not known" in lowered:
        return AdapterError(f"unknown host: {target.address}", "check the name, or use its address")
    if "connection refused" in lowered:
        return AdapterError(f"nothing listens at port {target.port} of {target.address}", "is sshd running there?")
    if "timed out" in lowered or "not responding" in lowered:
        return AdapterError(
            f"no answer from {where} within {CONNECT_TIMEOUT} s", "the host may be frozen, or the network down"
        )
    lines = [line for line in plain_lines(said).splitlines() if line.strip() and not line.startswith("debug")]
    return AdapterError(f"ssh to {where} failed: {plain(lines[-1], 300) if lines else 'no error message'}")


def _quoted(path: str) -> str:
    # ssh splits the value of an option into words.
    return '"' + path.replace('"', '\\"') + '"' if re.search(r"\s", path) else path


_KEY_LINE: Final = re.compile(r"[^\s#]\S* (?:ssh|ecdsa|sk)-\S+ [A-Za-z0-9+/=]+")


@dataclass(frozen=True, slots=True)
class HostKey:
    """A key of a host."""

    line: str
    """The line of a known_hosts file."""
    fingerprint: str
    kind: str
    """The type: ED25519, RSA ..."""


async def is_known(target: SshTarget, file: Path) -> bool:
    """Return whether a known_hosts file has a key of the host."""
    if not file.is_file():
        return False
    return (await run_process(["ssh-keygen", "-F", target.known_name, "-f", str(file)], timeout=10)).code == 0


async def offered_keys(target: SshTarget) -> tuple[HostKey, ...]:
    """Return the keys that a host offers. The user must compare them, because any host can answer."""
    words = ["ssh-keyscan", "-T", str(CONNECT_TIMEOUT), "-p", str(target.port), "--", target.address]
    scanned = await run_process(words, timeout=CONNECT_TIMEOUT + 10)
    lines = [line for line in scanned.text.splitlines() if _KEY_LINE.fullmatch(line)]
    if not lines:
        raise AdapterError(
            f"no host key from {target.shown}", f"is sshd running at port {target.port} of {target.address}?"
        )
    return tuple([await _host_key(line) for line in lines])


async def _host_key(line: str) -> HostKey:
    shown = (await run_process(["ssh-keygen", "-l", "-f", "-"], stdin=f"{line}\n".encode(), timeout=10)).text.split()
    if len(shown) < 3:
        raise AdapterError("ssh-keygen does not understand the host key")
    return HostKey(line, shown[1], shown[-1].strip("()"))


def remember(keys: tuple[HostKey, ...], file: Path) -> None:
    """Append keys to a known_hosts file, and create it if it is missing."""
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
