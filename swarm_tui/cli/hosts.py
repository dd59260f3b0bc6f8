"""`swarm-tui hosts`: add, list, check and remove hosts in the settings of mngr."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarm_tui.adapters.mngr_settings import MngrHost
    from swarm_tui.model.shapes import ShownMachine
    from swarm_tui.model.spec import MngrSettings

DESCRIPTION = """\
Manage the hosts for agents (`swarm-tui run --host NAME`). Each host is a provider in the settings of mngr. `add` shows
the entry, asks, writes it and tests it. `list` lists the hosts. `check` runs the checks of `doctor --host`. `remove`
removes the entry. swarm-tui installs nothing on a host.

exit codes: 0 success, 1 a host is not usable, 2 usage error"""
EXAMPLES = """\
  swarm-tui hosts add me@box1                                 use the keys and names of ssh
  swarm-tui hosts add me@10.0.0.5:2222 --name box2 --key ~/.ssh/box2
  swarm-tui hosts list --json
  swarm-tui hosts check box1 --agent claude
  swarm-tui hosts remove box1"""


_FORCE = "to remove the host anyway, add --force"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="add|list|check|remove", required=True)
    add = verbs.add_parser("add", help="add a host to the settings of mngr", allow_abbrev=False)
    add.add_argument(
        "machine", metavar="USER@MACHINE[:PORT]", help="the address; missing parts come from ssh's settings"
    )
    add.add_argument("--name", metavar="NAME", help="the name of the host (default: from its address)")
    add.add_argument("--key", metavar="FILE", type=Path, help="the private key (default: that of ssh)")
    add.add_argument(
        "--known-hosts", metavar="FILE", type=Path, help="the file with host keys (default: ~/.ssh/known_hosts)"
    )
    add.add_argument("--host-dir", metavar="PATH", help="mngr's folder on the host (default: ~/.mngr-remote)")
    add.add_argument("--fingerprint", metavar="SHA256:...", help="trust the host key with this fingerprint")
    add.add_argument("--yes", action="store_true", help="do not ask; unknown host keys are still rejected")
    listed = verbs.add_parser("list", help="list the hosts", allow_abbrev=False)
    listed.add_argument("--json", action="store_true", help="print JSON")
    check = verbs.add_parser("check", help="check hosts", allow_abbrev=False)
    check.add_argument("names", nargs="*", metavar="NAME", help="the hosts (default: all)")
    check.add_argument("--agent", metavar="TYPE", help="also check this agent type, such as claude")
    check.add_argument("--json", action="store_true", help="print JSON")
    remove = verbs.add_parser("remove", help="remove a host from the settings of mngr", allow_abbrev=False)
    remove.add_argument("name", metavar="NAME")
    remove.add_argument("--force", action="store_true", help="remove the host even if it has agents or does not answer")
    remove.add_argument("--yes", action="store_true", help="do not ask")
    for parsed in (add, remove):
        parsed.add_argument(
            "--mngr", metavar="PATH", help="use this mngr (default: SWARM_MNGR, then PATH, then the private one)"
        )


def run(arguments: argparse.Namespace) -> int:
    match arguments.verb:
        case "add":
            from swarm_tui.cli.hosts_add import add_host

            return asyncio.run(add_host(arguments))
        case "list":
            return _list(is_json=arguments.json)
        case "check":
            return _check(arguments)
        case _:
            return asyncio.run(_remove(arguments))


def _list(*, is_json: bool) -> int:
    hosts = _known_hosts()
    if is_json:
        print(json.dumps([_as_json(host) for host in hosts], indent=1))
    elif not hosts:
        print("no hosts; to add one: `swarm-tui hosts add user@machine`")
    else:
        width = max(len(host.shown) for host in hosts)
        print("\n".join(f"{host.shown:{width}}  {host.target.shown}  {host.host_dir}" for host in hosts))
    return 0


def _as_json(host: MngrHost) -> ShownMachine:
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


def _check(arguments: argparse.Namespace) -> int:
    from swarm_tui.adapters.mngr_settings import find_host
    from swarm_tui.cli.doctor import print_checks
    from swarm_tui.doctor.checks import Requirements, check_hosts, current_machine

    known = _known_hosts()
    names = tuple(find_host(known, name).shown for name in arguments.names) or tuple(host.shown for host in known)
    if not names:
        print("no hosts; to add one: `swarm-tui hosts add user@machine`")
        return 0
    checks = asyncio.run(check_hosts(Requirements(agent=arguments.agent, hosts=names), current_machine()))
    return print_checks(checks, is_json=arguments.json)


async def _remove(arguments: argparse.Namespace) -> int:
    from swarm_tui.adapters.mngr import Mngr
    from swarm_tui.adapters.mngr_settings import find_host, mngr_environment, remove_entry
    from swarm_tui.errors import AdapterError, SwarmError, UsageError
    from swarm_tui.model.formatting import counted

    settings = await _settings(arguments.mngr)
    host = find_host(_known_hosts(), arguments.name)
    if not arguments.force:
        try:
            listed = await Mngr(settings.path, mngr_environment(settings)).list_agents(host.provider)
        except AdapterError as error:
            raise SwarmError(
                f"cannot list the agents on {host.shown}: {error.message}",
                _FORCE,
            ) from error
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


async def _settings(mngr: str | None) -> MngrSettings:
    from swarm_tui.adapters.mngr_settings import current_settings
    from swarm_tui.adapters.provision import find_mngr

    return current_settings((await find_mngr(mngr)).path)


def _known_hosts() -> list[MngrHost]:
    from swarm_tui.adapters.mngr_settings import current_settings, read_hosts

    return read_hosts(Path(current_settings("mngr").host_dir or ""), Path.cwd())
