"""A host that mngr reaches by ssh: this machine by its loopback, with an sshd, keys and a tmux server of its own."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.isolation import IsolatedMngr
from tests.programs import end_with_parent, require_program
from tests.waiting import until


@dataclass(frozen=True)
class RemoteHost:
    """The far side, as its own user would see it."""

    address: str
    """What follows the @ in an agent's address."""
    environment: dict[str, str]

    def tmux(self, *words: str) -> str:
        return subprocess.run(["tmux", *words], env=self.environment, capture_output=True, text=True).stdout.strip()


@contextlib.contextmanager
def remote_host(mngr: IsolatedMngr) -> Iterator[RemoteHost]:
    """Return a host named box of the provider pool; it and its tmux server are gone afterwards."""
    place = mngr.root / "far"
    (place / "t").mkdir(parents=True)
    port = _free_port()
    for name in ("host", "client"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", place / name], check=True)
    shutil.copy(place / "client.pub", place / "authorized")
    host_key = " ".join((place / "host.pub").read_text().split()[:2])
    (place / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key}\n")
    (place / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {place}/host\nAuthorizedKeysFile {place}/authorized\n"
        f"PidFile {place}/sshd.pid\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n"
        f"Subsystem sftp internal-sftp\nSetEnv TMUX_TMPDIR={place}/t LANG=C.UTF-8\n"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    daemon = subprocess.Popen(
        [require_program("sshd"), "-D", "-e", "-f", place / "sshd_config"],
        stderr=subprocess.DEVNULL,
        preexec_fn=end_with_parent,
    )
    environment = mngr.environment | {"TMUX_TMPDIR": str(place / "t")}
    _add_provider(mngr, place, port)
    try:
        _wait_for(port)
        yield RemoteHost("box.pool", environment)
    finally:
        subprocess.run(["tmux", "kill-server"], env=environment, capture_output=True, check=False)
        daemon.terminate()
        daemon.wait()


def _add_provider(mngr: IsolatedMngr, place: Path, port: int) -> None:
    words = [mngr.adapter.path, "config", "path", "--scope", "user"]
    settings = Path(
        subprocess.run(words, env=mngr.environment, capture_output=True, text=True, check=True).stdout.strip()
    )
    settings.parent.mkdir(parents=True, exist_ok=True)
    pool = {"backend": "ssh", "host_dir": f"{place}/mngr"}
    box = {"address": "127.0.0.1", "user": getpass.getuser(), "key_file": f"{place}/client"}
    box |= {"known_hosts_file": f"{place}/known_hosts"}
    lines = ["", "[providers.pool]", *(f'{name} = "{value}"' for name, value in pool.items())]
    lines += ["[providers.pool.hosts.box]", f"port = {port}", *(f'{name} = "{value}"' for name, value in box.items())]
    with settings.open("a") as file:
        file.write("\n".join(lines) + "\n")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int) -> None:
    def answers() -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        return False

    until(answers, "sshd to answer")
