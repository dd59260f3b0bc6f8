"""Environment and settings files of mngr, with its ssh hosts."""

from __future__ import annotations

import json
import os
import re
import site
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from swarm_tui.adapters.mngr_messages import is_agent_name
from swarm_tui.adapters.processes.environment import passed_variables, project_environment
from swarm_tui.adapters.ssh import SshTarget
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.files import read_regular, replacing
from swarm_tui.model.spec import HostSettings, MngrSettings
from swarm_tui.model.text import plain

_SETTING_NAMES: Final = ("MNGR_HOST_DIR", "TMUX_TMPDIR", "MNGR_PREFIX", "MNGR_ROOT_NAME")
HOST_VARIABLES: Final = (
    *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH"),
    *("DOCKER_TLS_VERIFY", "MODAL_PROFILE", "MODAL_CONFIG_PATH", "MODAL_ENVIRONMENT"),
)
"""The variables with which mngr reaches or creates other hosts, in addition to those of `--pass-env`."""
_PROJECT_FILES: Final = (".mngr/settings.toml", ".mngr/settings.local.toml")


def current_settings(path: str, environment: Mapping[str, str] | None = None) -> MngrSettings:
    """Return settings with which later calls of mngr find the same agents, in any environment."""
    given = os.environ if environment is None else environment
    home = given.get("HOME") or str(Path.home())
    root = given.get("MNGR_ROOT_NAME") or "mngr"
    return MngrSettings(
        path=path,
        host_dir=str(Path(given.get("MNGR_HOST_DIR") or f"{home}/.{root}").expanduser().absolute()),
        tmux_tmpdir=given.get("TMUX_TMPDIR") or None,
        prefix=given.get("MNGR_PREFIX") or f"{root}-",
        home=home,
    )


def mngr_environment(settings: MngrSettings, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment in which mngr and tmux find the agents of these settings.

    mngr's tmux server passes its environment to all agents, so it contains only variables that agents may get.
    """
    environment = project_environment(passed_variables(HOST_VARIABLES))
    environment = {name: value for name, value in environment.items() if name not in _SETTING_NAMES}
    environment["MNGR_PREFIX"] = settings.prefix
    for name, value in (
        ("MNGR_HOST_DIR", settings.host_dir),
        ("TMUX_TMPDIR", settings.tmux_tmpdir),
        ("HOME", settings.home),
    ):
        if value is not None:
            environment[name] = value
    if site.ENABLE_USER_SITE and settings.home not in (None, os.environ.get("HOME")):
        # Python searches for user packages below HOME, which is another folder for these agents.
        environment.setdefault("PYTHONUSERBASE", site.getuserbase())
    return environment | dict(extra or {})


def host_dir_of(settings: MngrSettings) -> Path:
    """Return mngr's folder on this machine."""
    return Path(settings.host_dir).expanduser() if settings.host_dir else Path(settings.home or Path.home()) / ".mngr"


class AgentTypes:
    """The agent types in settings files. A file is read again when it has changed."""

    def __init__(self, host_dir: Path, project: Path | None = None) -> None:
        self._host_dir = host_dir
        self._project = project
        self._signature: tuple[tuple[Path, int], ...] = ()
        self._parents: dict[str, str] = {}

    def parents(self) -> Mapping[str, str]:
        """Return the types, each with its parent type or "", for example `my-claude` with `claude`."""
        signature = tuple((path, path.stat().st_mtime_ns) for path in self._files())
        if signature != self._signature:
            self._parents = {}
            for path, _ in signature:
                self._parents |= _read_parents(path)
            self._signature = signature
        return self._parents

    def _files(self) -> Iterator[Path]:
        yield from sorted(self._host_dir.glob("profiles/*/settings.toml"))
        yield from project_settings(self._project)


def project_settings(project: Path | None) -> Iterator[Path]:
    """Yield the existing settings files of a project."""
    if project is not None:
        yield from (path for name in _PROJECT_FILES if (path := project / name).is_file())


def user_settings(host_dir: Path) -> Path | None:
    """Return the user's settings file, which may not exist; None if mngr has never run."""
    try:
        profile = tomllib.loads(read_regular(host_dir / "config.toml").decode()).get("profile")
    except (OSError, ValueError):
        return None
    if not isinstance(profile, str) or profile in ("", ".", "..") or "/" in profile:
        return None
    return host_dir / "profiles" / profile / "settings.toml"


def _read_parents(path: Path) -> dict[str, str]:
    """Return the types in one file; none if the file is unreadable."""
    try:
        types = tomllib.loads(read_regular(path).decode()).get("agent_types")
    except (OSError, ValueError):
        return {}
    if not isinstance(types, dict):
        return {}
    parents = {name: content.get("parent_type") for name, content in types.items() if isinstance(content, dict)}
    return {name: parent if isinstance(parent, str) else "" for name, parent in parents.items()}


DEFAULT_HOST_DIR: Final = "/tmp/mngr"
LONGEST_NAME: Final = 63
_TAKEN_NAMES: Final = frozenset({"local", "ssh", "docker", "modal", "lima", "vps"})
_HEADER: Final = re.compile(r"^\s*\[+\s*([^\]]*?)\s*\]+\s*(?:#.*)?$")
_MARK: Final = "# added by `swarm-tui hosts add`"


@dataclass(frozen=True, slots=True)
class MngrHost:
    """A host of a provider that uses ssh."""

    name: str
    provider: str
    target: SshTarget
    host_dir: str
    """mngr's folder on the host."""
    settings: Path
    """The settings file with the entry."""
    neighbours: tuple[str, ...] = ()
    """The other hosts of the provider. If one of them is down, mngr refuses all of them."""

    @property
    def shown(self) -> str:
        """Return the name for `--host`: the host's name, or `name.provider` if they differ."""
        return self.name if self.name == self.provider else f"{self.name}.{self.provider}"

    @property
    def access(self) -> HostSettings:
        """Return the connection settings."""
        target = self.target
        return HostSettings(
            name=self.shown,
            provider=self.provider,
            address=target.address,
            host_dir=self.host_dir,
            port=target.port,
            user=target.user,
            key_file=target.key_file or "",
            known_hosts_file=target.known_hosts_file or "",
        )


def read_hosts(host_dir: Path, project: Path | None = None) -> list[MngrHost]:
    """Return the hosts of the user's and the project's settings, by name."""
    providers = _read_providers(host_dir, project)
    hosts = [host for name, (path, content) in providers.items() for host in _hosts_of(name, content, path)]
    return sorted(hosts, key=lambda host: host.shown)


def provider_settings(host_dir: Path, project: Path | None, provider: str) -> dict[str, Any]:
    """Return mngr's settings of a provider; empty if there are none."""
    _, content = _read_providers(host_dir, project).get(provider, (None, {}))
    return content


def _read_providers(host_dir: Path, project: Path | None) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Return the settings of each provider, with the last file that sets it. The project overrides the user."""
    providers: dict[str, tuple[Path, dict[str, Any]]] = {}
    own = user_settings(host_dir)
    for path in (*((own,) if own is not None else ()), *project_settings(project)):
        for name, content in _providers_of(_parsed(path)):
            providers[name] = (path, {**providers.get(name, (path, {}))[1], **content})
    return providers


def find_host(hosts: list[MngrHost], name: str) -> MngrHost:
    """Return the host with a name; raise UsageError if there is none or more than one."""
    found = [host for host in hosts if host.shown == name] or [host for host in hosts if host.name == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{len(found)} hosts are named {name}", f"use one of {', '.join(h.shown for h in found)}")
    known = f"known hosts: {', '.join(host.shown for host in hosts[:8])}" if hosts else "no hosts yet"
    raise UsageError(f"unknown host: {plain(name, 80)}", f"{known}; add one with `swarm-tui hosts add user@machine`")


def check_name(name: str) -> str:
    """Return the name of a new host unchanged; raise UsageError if mngr cannot use it."""
    if not is_agent_name(name) or len(name) > LONGEST_NAME:
        raise UsageError(
            f"invalid name of a host: {plain(name, 80)!r}",
            f"use letters, digits, and - and _ inside; at most {LONGEST_NAME}",
        )
    if name.lower() in _TAKEN_NAMES:
        raise UsageError(f"{name} is reserved by mngr", "choose another name with --name")
    return name


def check_address(address: str) -> None:
    """Raise UsageError for an IPv6 address, which mngr writes without brackets."""
    if ":" in address:
        raise UsageError(
            f"mngr does not support IPv6 addresses: {plain(address, 60)}",
            "add a name to ~/.ssh/config (`Host box1`, `HostName ADDRESS`), and use that name",
        )


def name_for(address: str) -> str:
    """Return a name for a host, derived from its address."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", address).strip("-_")[:LONGEST_NAME].strip("-_") or "host"


def entry_text(host: MngrHost) -> str:
    """Return the settings of a host with a separate provider, because mngr refuses a provider if one host is down."""
    target = host.target
    fields: dict[str, object] = {"address": target.address, "port": target.port, "user": target.user}
    fields |= {"key_file": target.key_file} if target.key_file is not None else {}
    fields |= {"known_hosts_file": target.known_hosts_file} if target.known_hosts_file is not None else {}
    lines = [f"[providers.{host.provider}]  {_MARK}", 'backend = "ssh"', f"host_dir = {json.dumps(host.host_dir)}"]
    lines += [f"[providers.{host.provider}.hosts.{host.name}]"]
    return "\n".join([*lines, *(f"{name} = {json.dumps(value)}" for name, value in fields.items())]) + "\n"


def add_entry(host: MngrHost) -> None:
    """Append a host to its settings file; raise UsageError if the provider exists already."""
    before = _text_of(host.settings)
    known = _parsed(host.settings, before)
    providers = known.get("providers", {})
    if not isinstance(providers, dict) or host.provider in providers:
        raise UsageError(
            f"{host.settings} already has a provider {host.provider}",
            f"remove it with `swarm-tui hosts remove {host.provider}`, or choose another name with --name",
        )
    gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    after = before + gap + entry_text(host)
    expected = known | {"providers": providers | tomllib.loads(entry_text(host))["providers"]}
    _replace(host.settings, before, after, expected)


def remove_entry(host: MngrHost) -> None:
    """Remove a host from its settings file, and its provider if it has no other host. Keep all other lines."""
    before = _text_of(host.settings)
    expected = _parsed(host.settings, before)
    provider = expected["providers"][host.provider]
    if host.neighbours:
        del provider["hosts"][host.name]
    else:
        del expected["providers"][host.provider]
    table = ["providers", host.provider, *(("hosts", host.name) if host.neighbours else ())]
    after = "".join(_lines_without(before, table))
    # Remove the empty line between this entry and the one before.
    after = after[:-1] if after.endswith("\n\n") and not before.endswith("\n\n") else after
    _replace(host.settings, before, after, expected)


def _lines_without(text: str, table: list[str]) -> Iterator[str]:
    """Yield the lines of a settings file without a table and its subtables.

    Comments after the last value belong to the next table.
    """
    is_inside = False
    behind: list[str] = []
    for line in text.splitlines(keepends=True):
        header = _HEADER.match(line)
        if header is not None:
            parts = [part.strip().strip("\"'") for part in header.group(1).split(".")]
            is_inside = parts[: len(table)] == table
            yield from () if is_inside else behind
            behind = []
        if not is_inside:
            yield line
        elif line.strip() and not line.lstrip().startswith("#"):
            behind = []
        else:
            behind.append(line)
    yield from (line for line in behind if line.strip())


def _replace(path: Path, before: str, after: str, expected: Mapping[str, Any]) -> None:
    """Replace a settings file if the new text has the expected meaning."""
    try:
        is_as_expected = _without_empty(tomllib.loads(after)) == _without_empty(expected)
    except tomllib.TOMLDecodeError:
        is_as_expected = False
    if not is_as_expected:
        raise SwarmError(f"swarm-tui cannot edit {path}", "edit it by hand")
    target = path.resolve()
    try:
        if _text_of(path) != before:
            raise SwarmError(f"another program has just changed {path}", "try again")
        with replacing(target) as draft:
            if target.exists():
                os.fchmod(draft.fileno(), target.stat().st_mode & 0o777)
            draft.write(after.encode())
    except OSError as error:
        raise SwarmError(f"cannot write {path}: {error.strerror or error}") from error


def _without_empty(content: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in content.items() if name != "providers" or each}


def _text_of(path: Path) -> str:
    try:
        return read_regular(path).decode()
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise SwarmError(f"cannot read the settings of mngr: {path}: {error}") from error


def _parsed(path: Path, text: str | None = None) -> dict[str, Any]:
    try:
        return tomllib.loads(_text_of(path) if text is None else text)
    except tomllib.TOMLDecodeError as error:
        raise SwarmError(f"invalid TOML in the settings of mngr: {path}", f"fix it by hand: {error}") from error


def _providers_of(settings: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    providers = settings.get("providers")
    for name, content in providers.items() if isinstance(providers, dict) else ():
        if isinstance(content, dict):
            yield name, content


def _hosts_of(provider: str, content: Mapping[str, Any], path: Path) -> Iterator[MngrHost]:
    hosts = content.get("hosts")
    if content.get("backend", provider) != "ssh" or not isinstance(hosts, dict):
        return
    for name, entry in hosts.items():
        if isinstance(entry, dict) and isinstance(entry.get("address"), str):
            neighbours = tuple(other for other in hosts if other != name)
            host_dir = str(content.get("host_dir") or DEFAULT_HOST_DIR)
            yield MngrHost(name, provider, _target_of(entry), host_dir, path, neighbours)


def _target_of(entry: Mapping[str, Any]) -> SshTarget:
    """Return how to connect to the host of an entry, with the defaults of mngr."""
    port, key, known = entry.get("port"), entry.get("key_file"), entry.get("known_hosts_file")
    return SshTarget(
        user=str(entry.get("user") or "root"),
        address=str(entry["address"]),
        port=port if isinstance(port, int) else 22,
        key_file=os.path.expanduser(key) if isinstance(key, str) else None,
        known_hosts_file=known if isinstance(known, str) else None,
    )
