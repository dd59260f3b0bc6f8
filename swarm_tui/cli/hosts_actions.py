"""Actions of `swarm-tui hosts`: add a tested entry to the settings of mngr, list, check and remove hosts."""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.mngr_settings import (
    MngrHost,
    add_entry,
    check_address,
    check_name,
    current_settings,
    entry_text,
    find_host,
    mngr_environment,
    name_for,
    read_hosts,
    remove_entry,
    user_settings,
)
from swarm_tui.adapters.provision import find_mngr
from swarm_tui.adapters.ssh import HostKey, SshTarget, accepted_key, is_known, offered_keys, parse_target, remember
from swarm_tui.cli.doctor import checks_as_text, print_checks
from swarm_tui.doctor.checks import Requirements, check_hosts, current_machine
from swarm_tui.doctor.host_checks import judge_host, probe_host
from swarm_tui.errors import AdapterError, SwarmError, UsageError
from swarm_tui.model.formatting import counted
from swarm_tui.model.shapes import MngrHostJson

REMOTE_FOLDER: Final = ".mngr-remote"
# Used in the shells of agents and in git URLs.
_FORCE: Final = "to remove the host anyway, add --force"
_HOST_DIR: Final = re.compile(r"/[\w./+@-]*", re.ASCII)


async def add_host(arguments: argparse.Namespace) -> int:
    """Add a host. If anything fails, the settings of mngr do not change."""
    target = await parse_target(arguments.machine)
    check_address(target.address)
    name = check_name(arguments.name or name_for(target.name))
    if arguments.host_dir is not None and _HOST_DIR.fullmatch(arguments.host_dir) is None:
        raise UsageError(
            f"invalid --host-dir: {arguments.host_dir}", "use an absolute path of letters, digits and ./+@_-"
        )
    found = await find_mngr(arguments.mngr)
    settings = current_settings(found.path)
    mngr = Mngr(found.path, mngr_environment(settings))
    home = Path(settings.host_dir or "")
    file = user_settings(home)
    if file is None:
        # Any call creates mngr's home, with a profile and its settings.
        await mngr.plugins()
        file = user_settings(home)
    if file is None:
        raise SwarmError(f"missing mngr profile in {home}", f"run `{found.path} list`")
    for known in read_hosts(home, Path.cwd()):
        if known.provider == name:
            raise UsageError(
                f"the name {name} is already used, for {known.target.shown}",
                f"to check that host: `swarm-tui hosts check {known.shown}`; to use another name: --name NAME",
            )
    target = await _with_keys(target, arguments)
    answers = await probe_host(target, arguments.host_dir or "")
    host_dir = arguments.host_dir or f"{answers['home']}/{REMOTE_FOLDER}"
    if _HOST_DIR.fullmatch(host_dir) is None:
        raise SwarmError(f"unsupported characters in {host_dir}", "name another folder with --host-dir")
    host = MngrHost(name, name, target, host_dir, file)
    print(f"This entry will be added to {file}:\n\n{entry_text(host)}", file=sys.stderr)
    if not arguments.yes and not confirm("Add it?"):
        raise SwarmError("nothing was written: not confirmed", "to skip the question, add --yes")
    add_entry(host)
    await _try_with_mngr(mngr, host)
    checks = judge_host(host, answers, None, {})
    print(checks_as_text(checks))
    print(f"added {name}; to use it: `swarm-tui run --host {name}`")
    return 0 if all(check.ok for check in checks) else 1


async def _with_keys(target: SshTarget, arguments: argparse.Namespace) -> SshTarget:
    """Return the target with its key files; an unknown host key is trusted only if the user confirms it."""
    known_hosts = (arguments.known_hosts or Path.home() / ".ssh" / "known_hosts").expanduser().absolute()
    target = replace(target, known_hosts_file=str(known_hosts))
    if arguments.key is not None:
        key = arguments.key.expanduser().absolute()
        if not key.is_file():
            raise UsageError(
                f"--key: file not found: {arguments.key}", "name the private key, such as ~/.ssh/id_ed25519"
            )
        target = replace(target, key_file=str(key))
    # Only ssh itself can reach these hosts to check their keys.
    if not target.is_found_by_name and not await is_known(target, known_hosts):
        await _learn_keys(target, known_hosts, arguments)
    return replace(target, key_file=target.key_file or await accepted_key(target))


async def _learn_keys(target: SshTarget, file: Path, arguments: argparse.Namespace) -> None:
    """Show the keys of an unknown host, and save them if the user confirms."""
    offered = await offered_keys(target)
    if arguments.fingerprint is not None:
        chosen = tuple(key for key in offered if key.fingerprint == arguments.fingerprint)
        if not chosen:
            raise SwarmError(f"no host key of {target.shown} has that fingerprint; it has {_shown(offered)}")
        remember(chosen, file)
        return
    print(f"{target.shown} is not in {file}. Its host keys are:", file=sys.stderr)
    for key in offered:
        print(f"  {key.kind:8} {key.fingerprint}", file=sys.stderr)
    print("To verify, run `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on that machine.", file=sys.stderr)
    if arguments.yes or not confirm("Trust these keys?"):
        raise SwarmError(
            f"unknown host key of {target.shown}: not confirmed",
            f"to trust it, add --fingerprint {offered[-1].fingerprint} after you have verified it on that machine",
        )
    remember(offered, file)


def _shown(keys: tuple[HostKey, ...]) -> str:
    return ", ".join(key.fingerprint for key in keys)


async def _try_with_mngr(mngr: Mngr, host: MngrHost) -> None:
    """Have mngr list the agents on the host; if that fails, remove the entry."""
    try:
        problems = [problem.message for problem in (await mngr.list_agents(host.provider)).errors]
    except AdapterError as error:
        problems = [error.message]
    if problems:
        remove_entry(host)
        raise SwarmError(f"ssh can reach {host.shown}, but mngr cannot: {problems[0]}; the entry was removed")


def list_known(*, is_json: bool) -> int:
    """Print the hosts."""
    hosts = _known_hosts()
    if is_json:
        print(json.dumps([_as_json(host) for host in hosts], indent=1))
    elif not hosts:
        print("no hosts; to add one: `swarm-tui hosts add user@machine`")
    else:
        width = max(len(host.shown) for host in hosts)
        print("\n".join(f"{host.shown:{width}}  {host.target.shown}  {host.host_dir}" for host in hosts))
    return 0


def _as_json(host: MngrHost) -> MngrHostJson:
    target = host.target
    return {
        "name": host.shown,
        "provider": host.provider,
        "user": target.user,
        "address": target.address,
        "port": target.port,
        "key_file": target.key_file,
        "known_hosts_file": target.known_hosts_file,
        "host_dir": host.host_dir,
        "settings": str(host.settings),
    }


def check_known(arguments: argparse.Namespace) -> int:
    """Check hosts by name, or all; return the exit code."""
    known = _known_hosts()
    names = tuple(find_host(known, name).shown for name in arguments.names) or tuple(host.shown for host in known)
    if not names:
        print("no hosts; to add one: `swarm-tui hosts add user@machine`")
        return 0
    checks = asyncio.run(check_hosts(Requirements(agent=arguments.agent, hosts=names), current_machine()))
    return print_checks(checks, is_json=arguments.json)


async def remove_host(arguments: argparse.Namespace) -> int:
    """Remove a host without agents from the settings of mngr."""
    settings = current_settings((await find_mngr(arguments.mngr)).path)
    host = find_host(_known_hosts(), arguments.name)
    if not arguments.force:
        try:
            listed = await Mngr(settings.path, mngr_environment(settings)).list_agents(host.provider)
        except AdapterError as error:
            raise SwarmError(f"cannot list the agents on {host.shown}: {error.message}", _FORCE) from error
        here = [
            agent.name
            for agent in listed.agents
            if not host.neighbours or (agent.host and agent.host.name == host.name)
        ]
        if here:
            raise UsageError(
                f"{host.shown} has {counted(len(here), 'agent')}: {', '.join(here[:5])}",
                "remove them with `swarm-tui clean`; after --force you can no longer reach them",
            )
        if listed.errors:
            raise SwarmError(f"cannot list the agents on {host.shown}: {listed.errors[0].message}", _FORCE)
    if not arguments.yes and not confirm(f"Remove {host.shown} ({host.target.shown}) from {host.settings}?"):
        raise SwarmError("nothing was changed: not confirmed", "to skip the question, add --yes")
    remove_entry(host)
    print(f"removed {host.shown} from {host.settings}; the host itself did not change")
    return 0


def confirm(question: str) -> bool:
    """Ask the user; without a terminal, return False."""
    if not sys.stdin.isatty():
        return False
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _known_hosts() -> list[MngrHost]:
    return read_hosts(Path(current_settings("mngr").host_dir or ""), Path.cwd())
