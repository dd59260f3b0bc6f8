"""A provider of the real mngr that makes hosts of machines on the loopback."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.isolation import IsolatedMngr
from tests.loopback import LoopbackHost

ENTRY_POINTS = "[mngr]\nloopback = swarm_loopback.provider\n"
SETTINGS = '[providers.loopback]\nbackend = "loopback"\nhost_dir = "{host_dir}"\n'


@dataclass(frozen=True)
class LoopbackPool:
    """The machines that the provider makes hosts of."""

    folder: Path
    environment: dict[str, str]
    """The variables with which mngr finds the provider and the machines."""

    @property
    def free(self) -> list[str]:
        return sorted(path.stem for path in (self.folder / "free").glob("*.toml"))

    @property
    def made(self) -> list[str]:
        return sorted(path.stem for path in (self.folder / "made").glob("*.toml"))

    def asked(self, name: str) -> dict[str, Any]:
        """Return what mngr was asked for when a host was made."""
        asked: dict[str, Any] = json.loads((self.folder / "made" / f"{name}.json").read_text())
        return asked


@contextlib.contextmanager
def loopback_pool(mngr: IsolatedMngr, hosts: Sequence[LoopbackHost], settings: Path) -> Iterator[LoopbackPool]:
    """Teach mngr the provider, and let it have these machines."""
    root = hosts[0].folder.parent
    plugin = root / "plugin"
    (plugin / "swarm_loopback").mkdir(parents=True)
    (plugin / "swarm_loopback" / "__init__.py").touch()
    (plugin / "swarm_loopback" / "provider.py").symlink_to(Path(__file__).with_name("provider.py"))
    information = plugin / "swarm_loopback-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: swarm-loopback\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(ENTRY_POINTS)
    for name in ("free", "made"):
        (root / "pool" / name).mkdir(parents=True)
    known_hosts = root / "known_hosts"
    known_hosts.write_text("".join(host.host_key_line for host in hosts))
    for host in hosts:
        access = host.access
        text = f'address = "127.0.0.1"\nport = {access.port}\nuser = "{access.user}"\n'
        text += f'key_file = "{access.key_file}"\nknown_hosts_file = "{known_hosts}"\n'
        (root / "pool" / "free" / f"{access.name}.toml").write_text(text)
    before = settings.read_text() if settings.exists() else ""
    settings.write_text(before + SETTINGS.format(host_dir=hosts[0].disk or root / "mngr"))
    own = {"PYTHONPATH": str(plugin), "LOOPBACK_POOL": str(root / "pool")}
    mngr.adapter.environment.update(own)
    try:
        yield LoopbackPool(root / "pool", own)
    finally:
        settings.write_text(before)
        for name in own:
            mngr.adapter.environment.pop(name)
