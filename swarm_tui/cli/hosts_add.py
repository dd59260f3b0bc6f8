"""`swarm-tui hosts add`: from `user@machine` to an entry in mngr's settings that has been tried."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

from swarm_tui.adapters.host_keys import HostKey, is_known, offered_keys, remember
from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.mngr_hosts import (
    MngrHost,
    add_entry,
    check_address,
    check_name,
    entry_text,
    name_for,
    read_hosts,
    remove_entry,
)
from swarm_tui.adapters.mngr_settings import current_settings, mngr_environment, user_settings
from swarm_tui.adapters.provision import find_mngr
from swarm_tui.adapters.ssh import SshTarget, accepted_key, parse_target
from swarm_tui.cli.doctor import checks_as_text
from swarm_tui.cli.hosts import confirm
from swarm_tui.doctor.host_checks import judge_host
from swarm_tui.doctor.host_probe import probe_host
from swarm_tui.errors import AdapterError, SwarmError, UsageError

REMOTE_FOLDER: Final = ".mngr-remote"
# It goes through the shells of agents, and into the addresses that git pushes to.
_HOST_DIR: Final = re.compile(r"/[\w./+@-]*", re.ASCII)


async def add_host(arguments: argparse.Namespace) -> int:
    """Add a machine; whatever goes wrong on the way, mngr's settings are then as they were."""
    target = await parse_target(arguments.machine)
    check_address(target.address)
    name = check_name(arguments.name or name_for(target.name))
    if arguments.host_dir is not None and _HOST_DIR.fullmatch(arguments.host_dir) is None:
        raise UsageError(
            f"--host-dir {arguments.host_dir} is no whole path", "letters, digits and ./+@_- behind a / at its begin"
        )
    found = await find_mngr(arguments.mngr)
    settings = current_settings(found.path)
    mngr = Mngr(found.path, mngr_environment(settings))
    home = Path(settings.host_dir or "")
    file = user_settings(home)
    if file is None:
        # Any call makes mngr's home, with a profile and its settings.
        await mngr.plugins()
        file = user_settings(home)
    if file is None:
        raise SwarmError(f"mngr has no profile in {home}", f"run `{found.path} list` once")
    for known in read_hosts(home, Path.cwd()):
        if known.provider == name:
            raise UsageError(
                f"there is a provider {name} already, for {known.target.shown}",
                f"`swarm-tui hosts check {known.shown}` tries it; --name gives this one another name",
            )
    target = await _with_keys(target, arguments)
    answers = await probe_host(target, arguments.host_dir or "")
    host_dir = arguments.host_dir or f"{answers['home']}/{REMOTE_FOLDER}"
    if _HOST_DIR.fullmatch(host_dir) is None:
        raise SwarmError(f"{host_dir} is no path that agents can be given", "name another folder by --host-dir")
    host = MngrHost(name, name, target, host_dir, file)
    print(f"This goes into {file}:\n\n{entry_text(host)}", file=sys.stderr)
    if not arguments.yes and not confirm("Write it?"):
        raise SwarmError("nothing was written", "--yes does not ask")
    add_entry(host)
    await _try_with_mngr(mngr, host)
    checks = judge_host(host, answers, None, {})
    print(checks_as_text(checks))
    print(f"{name} is added: `swarm-tui run --host {name}`")
    return 0 if all(check.ok for check in checks) else 1


async def _with_keys(target: SshTarget, arguments: argparse.Namespace) -> SshTarget:
    """Return the machine with the files of the keys; its own is trusted only when it is known or a person agrees."""
    known_hosts = (arguments.known_hosts or Path.home() / ".ssh" / "known_hosts").expanduser().absolute()
    target = replace(target, known_hosts_file=str(known_hosts))
    if arguments.key is not None:
        key = arguments.key.expanduser().absolute()
        if not key.is_file():
            raise UsageError(f"--key {arguments.key} is no file", "name the private key, such as ~/.ssh/id_ed25519")
        target = replace(target, key_file=str(key))
    # Such a machine shows its keys to nobody but ssh itself, which knows them or refuses.
    if not target.is_found_by_name and not await is_known(target, known_hosts):
        await _learn_keys(target, known_hosts, arguments)
    return replace(target, key_file=target.key_file or await accepted_key(target))


async def _learn_keys(target: SshTarget, file: Path, arguments: argparse.Namespace) -> None:
    """Show the keys of a machine that is not known yet, and keep them when a person agrees."""
    offered = await offered_keys(target)
    if arguments.fingerprint is not None:
        chosen = tuple(key for key in offered if key.fingerprint == arguments.fingerprint)
        if not chosen:
            raise SwarmError(f"no host key of {target.shown} has that fingerprint: it has {_shown(offered)}")
        remember(chosen, file)
        return
    print(f"{target.shown} is not known in {file} yet. It shows", file=sys.stderr)
    for key in offered:
        print(f"  {key.kind:8} {key.fingerprint}", file=sys.stderr)
    print("Compare with `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on the machine itself.", file=sys.stderr)
    if arguments.yes or not confirm("Is it this machine?"):
        raise SwarmError(
            f"the host key of {target.shown} is not known, and nobody has said that it is the right one",
            f"--fingerprint {offered[-1].fingerprint} trusts it, if that is what the machine itself has",
        )
    remember(offered, file)


def _shown(keys: tuple[HostKey, ...]) -> str:
    return ", ".join(key.fingerprint for key in keys)


async def _try_with_mngr(mngr: Mngr, host: MngrHost) -> None:
    """Have mngr look for agents on the machine; if it cannot, the entry is taken out again."""
    try:
        problems = [problem.message for problem in (await mngr.list_agents(host.provider)).errors]
    except AdapterError as error:
        problems = [error.message]
    if problems:
        remove_entry(host)
        raise SwarmError(
            f"ssh reaches {host.shown}, but mngr does not ({problems[0]})", "the entry was taken out again"
        )
