"""Machines as people write them, and what ssh complains of in words."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from swarm_tui.adapters.mngr_settings import check_address
from swarm_tui.adapters.ssh import SshTarget, connection_error, parse_target, ssh_noticing_loss, target_in_settings
from swarm_tui.errors import UsageError
from tests.programs import make_program

pytestmark = pytest.mark.needs("ssh")


@pytest.mark.parametrize(
    ("text", "user", "address", "port"),
    [
        ("me@box1", "me", "box1", 22),
        ("me@10.0.0.5:2222", "me", "10.0.0.5", 2222),
        ("me.too@box-1.example.org", "me.too", "box-1.example.org", 22),
        ("me@[::1]:22022", "me", "::1", 22022),
        ("me@[fe80::1%eth0]", "me", "fe80::1%eth0", 22),
    ],
)
async def test_target_is_parsed(text: str, user: str, address: str, port: int) -> None:
    target = await parse_target(text)
    assert (target.user, target.address, target.port) == (user, address, port)


@pytest.mark.parametrize(
    "text",
    ["", "@box1", "me@", "-oProxyCommand=x", "me@-oProxyCommand=x", "-x@box1", "me@box1:", "me@box1:x", "me@box1:0",
     "me@box1:65536", "me@box1:99999999999", "me@::1", "a b@c", "me@box;ls", "me@$(ls)", "me@bo\nx", "mé@box", "a@b@c"],
)  # fmt: skip
async def test_invalid_target_is_rejected(text: str) -> None:
    with pytest.raises(UsageError):
        await parse_target(text)


SETTINGS = """user root
hostname 10.0.0.5
port 2222
identityfile ~/.ssh/box1
"""


def test_ssh_settings_complete_target() -> None:
    target = target_in_settings("box1", SETTINGS)
    assert (target.user, target.address, target.port, target.name) == ("root", "10.0.0.5", 2222, "box1")
    given = target_in_settings("box1", SETTINGS, "me", "22")
    assert (given.user, given.address, given.port) == ("me", "10.0.0.5", 22)


@pytest.mark.parametrize("way", ["proxyjump gate", "proxycommand ssh -W %h:%p gate"])
def test_host_behind_jump_host_keeps_name(way: str) -> None:
    target = target_in_settings("box1", f"{SETTINGS}{way}\n")
    assert (target.address, target.port, target.is_found_by_name) == ("box1", 2222, True)
    assert (
        connection_error(target, "Host key verification failed.").hint == "run `ssh box1`, which shows the key and asks"
    )
    assert not target_in_settings("box1", f"{SETTINGS}proxycommand none\n").is_found_by_name


def test_host_with_ipv6_address_keeps_name() -> None:
    target = target_in_settings("box1", SETTINGS.replace("10.0.0.5", "fe80::1"))
    assert (target.address, target.is_found_by_name) == ("box1", True)
    check_address(target.address)
    with pytest.raises(UsageError, match=r"IPv6 addresses: fe80::1 \(add a name"):
        check_address(target_in_settings("fe80::1", "hostname fe80::1\n").address)


def test_ssh_of_programs_exits_when_host_is_lost(tmp_path: Path) -> None:
    make_program(tmp_path / "ssh", 'echo "$@"')
    with ssh_noticing_loss({"PATH": f"{tmp_path}:{os.environ['PATH']}"}) as environment:
        said = subprocess.run(["ssh", "-t", "me@box1", "a  b"], env=environment, capture_output=True, text=True).stdout
    assert said.endswith("ServerAliveCountMax=3 -t me@box1 a  b\n")
    assert "ServerAliveInterval=3" in said


def test_host_word_is_never_an_option() -> None:
    words = SshTarget("me", "box1", 2222, "/k", "/with a space/known").words("-v")
    assert words[-7:] == ["-v", "-p", "2222", "-l", "me", "--", "box1"]
    assert 'UserKnownHostsFile="/with a space/known"' in words


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.", "was reinstalled"),
        ("Host key verification failed.", "unknown host key: me@box1 (run `swarm-tui hosts add`"),
        ("WARNING: UNPROTECTED PRIVATE KEY FILE!\nPermission denied (publickey).", "chmod 600 /k"),
        ("me@box1: Permission denied (publickey).", "accepts none of your keys"),
        ("ssh: Could not resolve hostname box1: Name or service not known", "unknown host: box1"),
        ("ssh: connect to host box1 port 22: Connection refused", "nothing listens at port 22"),
        ("ssh: connect to host box1 port 22: Connection timed out", "no answer from me@box1 within 10 s"),
        (
            "kex_exchange_identification: \x1b[31mConnection closed",
            "ssh to me@box1 failed: kex_exchange_identification: Con",
        ),
        ("", "no error message"),
    ],
)
def test_error_of_ssh_has_hint(said: str, expected: str) -> None:
    error = connection_error(SshTarget("me", "box1", 22, "/k", "/kh"), said)
    assert expected in str(error)
    assert "\x1b" not in str(error)
