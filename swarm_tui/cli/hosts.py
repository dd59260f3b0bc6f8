"""`swarm-tui hosts`: the machines that agents can run on, as mngr's own settings have them."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarm_tui.adapters.mngr_hosts import MngrHost
    from swarm_tui.model.shapes import ShownMachine
    from swarm_tui.model.sweep import MngrSettings

DESCRIPTION = """\
The machines that agents can run on (`swarm-tui run --host NAME`). They are entries of mngr's own settings, one
provider for each: `add` shows the entry, asks, writes it, and tries it; `list` shows them; `check` examines them
as `doctor --host` does; `remove` takes an entry out again. Nothing is installed on a machine.

exit codes: 0 all is well, 1 a host cannot be used, 2 misuse"""
EXAMPLES = """\
  swarm-tui hosts add me@box1                                 with the keys and names that ssh uses
  swarm-tui hosts add me@10.0.0.5:2222 --name box2 --key ~/.ssh/box2
  swarm-tui hosts list --json
  swarm-tui hosts check box1 --agent claude
  swarm-tui hosts remove box1"""


_FORCE = "--force removes it all the same"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="add|list|check|remove", required=True)
    add = verbs.add_parser("add", help="write a machine into mngr's settings, and try it", allow_abbrev=False)
    add.add_argument("machine", metavar="USER@MACHINE[:PORT]", help="what is left out comes from ssh's own settings")
    add.add_argument("--name", metavar="NAME", help="what to call it (default: made from its address)")
    add.add_argument("--key", metavar="FILE", type=Path, help="the private key (default: the one that ssh uses)")
    add.add_argument(
        "--known-hosts", metavar="FILE", type=Path, help="the file with host keys (default: ~/.ssh/known_hosts)"
    )
    add.add_argument("--host-dir", metavar="PATH", help="mngr's folder there (default: .mngr-remote in its home)")
    add.add_argument("--fingerprint", metavar="SHA256:...", help="trust the host key that has this fingerprint")
    add.add_argument("--yes", action="store_true", help="do not ask; trusts no host key that is not known yet")
    listed = verbs.add_parser("list", help="list them", allow_abbrev=False)
    listed.add_argument("--json", action="store_true", help="print JSON")
    check = verbs.add_parser("check", help="examine them", allow_abbrev=False)
    check.add_argument("names", nargs="*", metavar="NAME", help="which (default: all)")
    check.add_argument("--agent", metavar="TYPE", help="the type of agent that is to run there, such as claude")
    check.add_argument("--json", action="store_true", help="print JSON")
    remove = verbs.add_parser("remove", help="take one out of mngr's settings", allow_abbrev=False)
    remove.add_argument("name", metavar="NAME")
    remove.add_argument("--force", action="store_true", help="also when agents live there, or it cannot be asked")
    remove.add_argument("--yes", action="store_true", help="do not ask")
    for parsed in (add, remove):
        parsed.add_argument("--mngr", metavar="PATH", help="the mngr to use (default: SWARM_MNGR, PATH, our own)")


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
        print("mngr knows no machine yet; `swarm-tui hosts add user@machine` adds one.")
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
    from swarm_tui.adapters.mngr_hosts import find_host
    from swarm_tui.cli.doctor import print_checks
    from swarm_tui.doctor.checks import Requirements, check_hosts, current_machine

    known = _known_hosts()
    names = tuple(find_host(known, name).shown for name in arguments.names) or tuple(host.shown for host in known)
    if not names:
        print("mngr knows no machine yet; `swarm-tui hosts add user@machine` adds one.")
        return 0
    checks = asyncio.run(check_hosts(Requirements(agent=arguments.agent, hosts=names), current_machine()))
    return print_checks(checks, is_json=arguments.json)


async def _remove(arguments: argparse.Namespace) -> int:
    from swarm_tui.adapters.mngr import Mngr
    from swarm_tui.adapters.mngr_hosts import find_host, remove_entry
    from swarm_tui.adapters.mngr_settings import mngr_environment
    from swarm_tui.errors import AdapterError, SwarmError, UsageError
    from swarm_tui.model.formatting import counted

    settings = await _settings(arguments.mngr)
    host = find_host(_known_hosts(), arguments.name)
    if not arguments.force:
        try:
            listed = await Mngr(settings.path, mngr_environment(settings)).list_agents(host.provider)
        except AdapterError as error:
            raise SwarmError(
                f"nobody can say whether agents live on {host.shown}: {error.message}",
                "--force removes it all the same",
            ) from error
        here = [
            agent.name
            for agent in listed.agents
            if not host.neighbours or (agent.host and agent.host.name == host.name)
        ]
        if here:
            raise UsageError(
                f"{counted(len(here), 'agent')} live on {host.shown}: {', '.join(here[:5])}",
                "`swarm-tui clean` removes those of a sweep; with --force they can no more be reached",
            )
        if listed.errors:
            raise SwarmError(f"nobody can say whether agents live on {host.shown}: {listed.errors[0].message}", _FORCE)
    if not arguments.yes and not confirm(f"Remove {host.shown} ({host.target.shown}) from {host.settings}?"):
        raise SwarmError("nothing was changed", "--yes does not ask")
    remove_entry(host)
    print(f"removed {host.shown} from {host.settings}; nothing was changed on the machine")
    return 0


def confirm(question: str) -> bool:
    """Ask a person; without a terminal the answer is no."""
    if not sys.stdin.isatty():
        return False
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


async def _settings(mngr: str | None) -> MngrSettings:
    from swarm_tui.adapters.mngr_settings import current_settings
    from swarm_tui.adapters.provision import find_mngr

    return current_settings((await find_mngr(mngr)).path)


def _known_hosts() -> list[MngrHost]:
    from swarm_tui.adapters.mngr_hosts import read_hosts
    from swarm_tui.adapters.mngr_settings import current_settings

    return read_hosts(Path(current_settings("mngr").host_dir or ""), Path.cwd())
