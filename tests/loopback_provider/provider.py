# mypy: ignore-errors
"""A provider of mngr's whose new hosts are machines on the loopback that wait in a folder: runs inside the real mngr.

The folder is named by LOOPBACK_POOL. `free/` has a file for each machine that waits, with its settings; a machine that
is made a host goes from there to `made/NAME.toml`, and `made/NAME.json` has what mngr was asked for.
"""

import json
import os
import tomllib
from pathlib import Path

from imbue.mngr import hookimpl
from imbue.mngr.errors import MngrError
from imbue.mngr.primitives import ProviderBackendName
from imbue.mngr.providers.ssh.backend import SSHProviderBackend
from imbue.mngr.providers.ssh.config import SSHHostConfig, SSHProviderConfig
from imbue.mngr.providers.ssh.instance import SSHProviderInstance

NAME = ProviderBackendName("loopback")


class LoopbackProviderConfig(SSHProviderConfig):
    """The settings of the provider: those of the ssh provider."""

    backend: ProviderBackendName = NAME


class LoopbackProviderInstance(SSHProviderInstance):
    """Makes hosts of machines that wait, and destroys them."""

    def _folder(self) -> Path:
        return Path(os.environ["LOOPBACK_POOL"])

    def _get_all_hosts(self) -> dict[str, SSHHostConfig]:
        made = sorted((self._folder() / "made").glob("*.toml"))
        return {path.stem: SSHHostConfig.model_validate(tomllib.loads(path.read_text())) for path in made}

    def create_host(self, name, image=None, tags=None, build_args=None, start_args=None, lifecycle=None, **_):
        folder = self._folder()
        for waiting in sorted((folder / "free").glob("*.toml")):
            made = folder / "made" / f"{name}.toml"
            try:
                waiting.rename(made)
            except FileNotFoundError:
                continue
            asked = {
                "tags": dict(tags or {}),
                "build": list(build_args or ()),
                "start": list(start_args or ()),
                "idle": lifecycle.model_dump(mode="json") if lifecycle is not None else None,
            }
            made.with_suffix(".json").write_text(json.dumps(asked))
            return self._create_host_object(str(name), self._get_all_hosts()[str(name)])
        raise MngrError("no machine is left")

    def destroy_host(self, host) -> None:
        folder = self._folder()
        for name in list(self._get_all_hosts()):
            if self._host_id_for_name(name) == getattr(host, "id", host):
                self.get_host(getattr(host, "id", host)).execute_idempotent_command("tmux kill-server; true")
                (folder / "made" / f"{name}.toml").rename(folder / "free" / f"{name}.toml")
        self._forget_cached_host(getattr(host, "id", host))

    delete_host = destroy_host


class LoopbackProviderBackend(SSHProviderBackend):
    """The backend of the provider."""

    @staticmethod
    def get_name():
        return NAME

    @staticmethod
    def get_config_class():
        return LoopbackProviderConfig

    @staticmethod
    def build_provider_instance(name, config, mngr_ctx):
        return LoopbackProviderInstance(
            name=name, host_dir=config.host_dir, mngr_ctx=mngr_ctx, hosts={}, dynamic_hosts_file=None
        )


@hookimpl
def register_provider_backend():
    return (LoopbackProviderBackend, LoopbackProviderConfig)
