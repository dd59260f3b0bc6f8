"""Machines that are not there: sshd on the loopback, each with a home and a tmux server of its own."""

from __future__ import annotations

import contextlib
import getpass
import os
import random
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from swarm_tui.adapters.scratch import short_folder
from swarm_tui.adapters.ssh import target_of
from swarm_tui.model.spec import HostSettings
from tests.leftovers import MARK
from tests.programs import end_with_parent, require_program
from tests.waiting import PATIENCE, until

PORTS_TRIED = 20

CONFIG = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {keys}
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
UseDNS no
Subsystem sftp internal-sftp
SetEnv HOME={folder}/home TMUX_TMPDIR={folder}/tmux PATH={path} GIT_CONFIG_NOSYSTEM=1 {mark}
"""


class SshdEnded(Exception):
    """An sshd has ended at its start: another program listens at its port."""


@dataclass
class LoopbackHost:
    """One machine: its sshd can be started, stopped and frozen."""

    folder: Path
    port: int
    client_key: Path
    user: str = field(default_factory=getpass.getuser)
    path: str = os.defpath
    """The PATH of its programs."""
    options: str = ""
    disk: Path | None = None
    """For a disk of its own, as root: its folder of mngr, which this machine sees empty."""
    _sshd: subprocess.Popen[bytes] | None = None

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def access(self) -> HostSettings:
        return HostSettings(
            name=self.folder.name,
            provider=self.folder.name,
            address="127.0.0.1",
            host_dir=str(self.disk or self.folder / "mngr"),
            port=self.port,
            user=self.user,
            key_file=str(self.client_key),
            known_hosts_file=str(self.folder.parent / "known_hosts"),
        )

    @property
    def host_key_line(self) -> str:
        """Return its key as a known_hosts file has it."""
        kind, key = (self.folder / "host_key.pub").read_text().split()[:2]
        return f"[127.0.0.1]:{self.port} {kind} {key}\n"

    def make(self) -> None:
        """Make its files."""
        for name in ("home", "tmux"):
            (self.folder / name).mkdir(parents=True, mode=0o700)
        (self.folder / "log").touch()
        self.new_host_key()
        self._configure()
        if self.disk is not None:
            self.disk.mkdir(exist_ok=True)
            (self.folder / "disk").mkdir()

    def _configure(self) -> None:
        mark = f"{MARK}={os.environ.get(MARK, '')}"
        keys = f"{self.client_key}.pub"
        text = CONFIG.format(port=self.port, folder=self.folder, keys=keys, path=self.path, mark=mark)
        (self.folder / "sshd_config").write_text(text + self.options)

    def new_host_key(self) -> None:
        for name in ("host_key", "host_key.pub"):
            (self.folder / name).unlink(missing_ok=True)
        make_key(self.folder / "host_key")

    def start_at_free_port(self) -> None:
        """Start its sshd for the first time, at another port if another program has taken the chosen one."""
        for _ in range(PORTS_TRIED):
            with contextlib.suppress(SshdEnded):
                return self.start()
            self.port = free_port()
            self._configure()
        return self.start()

    def start(self) -> None:
        """Start its sshd, and wait until it listens."""
        # sshd wants this folder, even where nobody needs it.
        with contextlib.suppress(OSError):
            Path("/run/sshd").mkdir(exist_ok=True)
        words = [require_program("sshd"), "-D", "-f", str(self.folder / "sshd_config"), "-E", str(self.folder / "log")]
        if self.disk is not None:
            mount = 'mount --bind "$0" "$1" && shift && exec "$@"'
            words = ["sh", "-c", mount, str(self.folder / "disk"), str(self.disk), *words]
            words = ["unshare", "-m", "--propagation", "private", *words]
        log = self.folder / "log"
        before = log.stat().st_size
        self._sshd = sshd = subprocess.Popen(words, stdin=subprocess.DEVNULL, preexec_fn=end_with_parent)

        def logged() -> str:
            # Bytes, as sshd ends its lines with two characters, which are one in text.
            return log.read_bytes()[before:].decode(errors="replace")

        # Another sshd, such as that of another test run, may listen at the port by now: only the own log tells.
        until(
            lambda: f"listening on 127.0.0.1 port {self.port}" in logged() or sshd.poll() is not None,
            f"sshd to listen at port {self.port}",
            describe=logged,
        )
        if sshd.poll() is not None:
            raise SshdEnded(logged())

    def stop(self) -> None:
        """End its sshd and all its connections; its agents live on."""
        if self._sshd is None:
            return
        for process in reversed(self._processes()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._sshd.wait()
        self._sshd = None

    def run(self, script: str) -> str:
        """Run a script of sh there; return what it prints."""
        words = [*target_of(self.access).words(), script]
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE).stdout

    def freeze(self, is_frozen: bool = True) -> None:
        """Let it answer nothing any more, or again."""
        for process in self._processes():
            # One that serves a connection may have ended meanwhile.
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP if is_frozen else signal.SIGCONT)

    def _processes(self) -> list[int]:
        """Return its sshd and those that serve a connection, which are named sshd too."""
        found = [self._sshd.pid] if self._sshd is not None else []
        for process in found:
            listed = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(process)], capture_output=True, text=True)
            found += [int(line.split()[0]) for line in listed.stdout.splitlines() if "sshd" in line]
        return found

    def end(self) -> None:
        """End all that runs there."""
        self.freeze(False)
        self.stop()
        environment = {**os.environ, "TMUX_TMPDIR": str(self.folder / "tmux")}
        subprocess.run(["tmux", "kill-server"], env=environment, capture_output=True, check=False)


def can_have_own_disks() -> bool:
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


def mngr_settings(hosts: Sequence[LoopbackHost]) -> str:
    """Return the settings by which mngr knows the hosts: a provider each."""
    parts = []
    for host in hosts:
        access = host.access
        parts.append(f'[providers.{access.name}]\nbackend = "ssh"\nhost_dir = "{access.host_dir}"')
        parts.append(f"[providers.{access.name}.hosts.{access.name}]")
        parts.append(f'address = "{access.address}"\nport = {access.port}\nuser = "{access.user}"')
        parts.append(f'key_file = "{access.key_file}"\nknown_hosts_file = "{access.known_hosts_file}"')
    return "\n".join(parts) + "\n"


def make_key(path: Path) -> None:
    words = [require_program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)


def free_port() -> int:
    """Return a port below those that connections get by themselves, one of which could take it again at once."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@contextlib.contextmanager
def loopback_hosts(
    number: int = 1, *, path: str = os.defpath, options: str = "", has_own_disks: bool = False
) -> Iterator[list[LoopbackHost]]:
    """Return running machines; they are gone afterwards."""
    with tempfile.TemporaryDirectory(dir=short_folder(), prefix="sh", ignore_cleanup_errors=True) as folder:
        client_key = Path(folder) / "client_key"
        make_key(client_key)
        hosts = [
            LoopbackHost(
                Path(folder) / f"h{each + 1}",
                free_port(),
                client_key,
                path=path,
                options=options,
                disk=Path(folder) / "mngr" if has_own_disks else None,
            )
            for each in range(number)
        ]
        try:
            for host in hosts:
                host.make()
                host.start_at_free_port()
            (Path(folder) / "known_hosts").write_text("".join(host.host_key_line for host in hosts))
            yield hosts
        finally:
            for host in hosts:
                host.end()
