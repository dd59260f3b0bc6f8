"""`swarm-tui hosts`: add, list, check and remove hosts in the settings of mngr."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

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
    from swarm_tui.cli.hosts_actions import add_host, check_known, list_known, remove_host

    match arguments.verb:
        case "add":
            return asyncio.run(add_host(arguments))
        case "list":
            return list_known(is_json=arguments.json)
        case "check":
            return check_known(arguments)
        case _:
            return asyncio.run(remove_host(arguments))
