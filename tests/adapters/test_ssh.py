"""Machines as people write them, and what ssh complains of in words."""

from __future__ import annotations

import pytest

from swarm_tui.adapters.ssh import SshTarget, connection_error, parse_target
from swarm_tui.errors import UsageError

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
async def test_a_machine_is_read(text: str, user: str, address: str, port: int) -> None:
    target = await parse_target(text)
    assert (target.user, target.address, target.port) == (user, address, port)


@pytest.mark.parametrize(
    "text",
    ["", "@box1", "me@", "-oProxyCommand=x", "me@-oProxyCommand=x", "-x@box1", "me@box1:", "me@box1:x", "me@box1:0",
     "me@box1:65536", "me@box1:99999999999", "me@::1", "a b@c", "me@box;ls", "me@$(ls)", "me@bo\nx", "mé@box", "a@b@c"],
)  # fmt: skip
async def test_what_is_no_machine_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        await parse_target(text)


def test_no_word_of_a_machine_is_taken_for_an_option() -> None:
    words = SshTarget("me", "box1", 2222, "/k", "/with a space/known").words("-v")
    assert words[-7:] == ["-v", "-p", "2222", "-l", "me", "--", "box1"]
    assert 'UserKnownHostsFile="/with a space/known"' in words


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.", "set up anew"),
        ("Host key verification failed.", "not known: `swarm-tui hosts add`"),
        ("WARNING: UNPROTECTED PRIVATE KEY FILE!\nPermission denied (publickey).", "chmod 600 /k"),
        ("me@box1: Permission denied (publickey).", "accepts no key of yours"),
        ("ssh: Could not resolve hostname box1: Name or service not known", "no machine named box1"),
        ("ssh: connect to host box1 port 22: Connection refused", "nothing listens at port 22"),
        ("ssh: connect to host box1 port 22: Connection timed out", "did not answer within 10 s"),
        (
            "kex_exchange_identification: \x1b[31mConnection closed",
            "ssh to me@box1 failed: kex_exchange_identification: Con",
        ),
        ("", "without a word"),
    ],
)
def test_a_complaint_of_ssh_says_what_to_do(said: str, expected: str) -> None:
    error = connection_error(SshTarget("me", "box1", 22, "/k", "/kh"), said)
    assert expected in str(error)
    assert "\x1b" not in str(error)
