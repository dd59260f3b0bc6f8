"""The sshd of the tests."""

from __future__ import annotations

import pytest

from tests.loopback import loopback_hosts


@pytest.mark.slow
@pytest.mark.needs("sshd", "ssh")
def test_host_with_long_log_starts_again() -> None:
    with loopback_hosts(1) as (host,):
        for _ in range(10):
            host.run("true")
        host.stop()
        host.start()
        assert host.run("echo back") == "back\n"
