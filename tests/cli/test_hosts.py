"""`swarm-tui hosts` and `doctor --host` with real machines of sshd on the loopback, and the real mngr."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.adapters.mngr_settings import user_settings
from tests.cli.command_line import run_swarm_tui
from tests.isolation import IsolatedMngr, isolate_mngr
from tests.loopback import LoopbackHost, loopback_hosts, make_key
from tests.programs import make_program

OWN_SETTINGS = "# my own\n[providers.modal]\nis_enabled = false\n"

pytestmark = [pytest.mark.slow, pytest.mark.needs("ssh", "sshd", "ssh-keygen")]


@dataclass
class Setting:
    """A mngr of its own, and a machine."""

    mngr: IsolatedMngr
    host: LoopbackHost
    known_hosts: Path

    quick_mngr: str = ""
    """A stand-in that only tells its version, for what comes before mngr is asked anything."""

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {**self.mngr.environment, "SWARM_MNGR": self.quick_mngr or self.mngr.settings.path}
        return run_swarm_tui(*words, folder=self.mngr.repository, environment=environment)

    def add(self, *words: str, name: str = "box1") -> subprocess.CompletedProcess[str]:
        target = f"{self.host.user}@127.0.0.1:{self.host.port}"
        keys = ("--key", str(self.host.client_key), "--known-hosts", str(self.known_hosts))
        return self.run("hosts", "add", target, "--name", name, *keys, *words)

    def trust(self) -> None:
        self.known_hosts.write_text(self.host.host_key_line)

    @property
    def settings_file(self) -> Path:
        path = user_settings(self.mngr.host_dir)
        assert path is not None
        return path

    def settings(self) -> str:
        return self.settings_file.read_text()


@pytest.fixture(scope="module")
def machine(mngr_path: str) -> Iterator[Setting]:
    with isolate_mngr(mngr_path) as mngr, loopback_hosts() as (host,):
        make_program(host.folder / "mngr", "echo mngr 0.3.0")
        yield Setting(mngr, host, host.folder / "known_hosts")


@pytest.fixture
def setting(machine: Setting) -> Iterator[Setting]:
    """Return the machine, which mngr does not know, with settings as they were before."""
    machine.settings_file.write_text(OWN_SETTINGS)
    yield machine
    machine.known_hosts.unlink(missing_ok=True)


def test_a_host_is_added_checked_listed_and_removed(setting: Setting) -> None:
    unknown = setting.add("--yes")
    assert unknown.returncode == 1
    assert "after you have verified it on that machine" in unknown.stderr
    assert not setting.known_hosts.exists()
    shown = subprocess.run(["ssh-keygen", "-lf", f"{setting.host.folder}/host_key"], capture_output=True, text=True)
    fingerprint = shown.stdout.split()[1]
    assert fingerprint in unknown.stderr

    added = setting.add("--yes", "--fingerprint", fingerprint)
    assert added.returncode == 0, added.stderr
    assert "[providers.box1.hosts.box1]" in added.stderr, "the entry is shown before it is written"
    assert setting.known_hosts.read_text() == setting.host.host_key_line
    assert setting.settings().startswith(OWN_SETTINGS)
    assert f'host_dir = "{setting.host.home}/.mngr-remote"' in setting.settings()

    (listed,) = json.loads(setting.run("hosts", "list", "--json").stdout)
    assert (listed["name"], listed["port"], listed["key_file"]) == (
        "box1", setting.host.port, str(setting.host.client_key)
    )  # fmt: skip
    again = setting.add("--yes")
    assert (again.returncode, "the name box1 is already used" in again.stderr) == (2, True)

    checks = json.loads(setting.run("hosts", "check", "box1", "--json").stdout)["checks"]
    assert {"box1", "box1 git", "box1 tmux", "box1 python3", "box1 disk", "box1 clock"} <= {c["name"] for c in checks}
    assert {check["name"]: check["found"] for check in checks}["box1 clock"] == "correct"
    rows = json.loads(setting.run("doctor", "--host", "box1", "--json").stdout)["checks"]
    assert [row["name"] for row in rows if row["name"].startswith("box1")] == [check["name"] for check in checks]

    asked = setting.run("hosts", "remove", "box1")
    assert (asked.returncode, "nothing was changed" in asked.stderr) == (1, True)
    removed = setting.run("hosts", "remove", "box1", "--yes")
    assert removed.returncode == 0, removed.stderr
    assert setting.settings() == OWN_SETTINGS


def test_a_host_with_agents_is_not_removed(setting: Setting) -> None:
    setting.trust()
    assert setting.add("--yes").returncode == 0
    request = CreateRequest(
        name="sleeper", command=("sleep", "1000"), source=setting.mngr.repository, host="box1", provider="box1"
    )
    asyncio.run(setting.mngr.adapter.create(request))
    refused = setting.run("hosts", "remove", "box1", "--yes")
    assert (refused.returncode, "box1 has 1 agent: sleeper" in refused.stderr) == (2, True)
    setting.host.stop()
    unsure = setting.run("hosts", "remove", "box1", "--yes")
    assert (unsure.returncode, "cannot list the agents on box1" in unsure.stderr) == (1, True)
    assert setting.run("hosts", "remove", "box1", "--yes", "--force").returncode == 0
    assert "box1" not in setting.settings()
    setting.host.start()


def test_what_is_wrong_with_a_machine_is_one_sentence(
    setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setting, "quick_mngr", str(setting.host.folder / "mngr"))

    wrong = setting.add("--yes", "--fingerprint", "SHA256:wrong")
    assert (wrong.returncode, setting.known_hosts.exists()) == (1, False)

    def says(*words: str) -> str:
        answer = setting.add("--yes", *words)
        assert answer.returncode == 1
        _, hint = answer.stderr.splitlines()
        assert hint.startswith("hint: ")
        assert "box1" not in setting.settings()
        return answer.stderr

    setting.trust()
    make_key(tmp_path / "other")
    assert "accepts none of your keys" in says("--key", str(tmp_path / "other"))
    (tmp_path / "open").write_bytes(setting.host.client_key.read_bytes())
    (tmp_path / "open").chmod(0o644)
    assert f"others can read it\nhint: chmod 600 {tmp_path}/open" in says("--key", str(tmp_path / "open"))
    make_key(tmp_path / "another")
    kind, key = (tmp_path / "another.pub").read_text().split()[:2]
    setting.known_hosts.write_text(f"[127.0.0.1]:{setting.host.port} {kind} {key}\n")
    assert "the host was reinstalled" in says()
    setting.host.stop()
    assert f"nothing listens at port {setting.host.port}" in says()
    setting.host.start()
    setting.trust()


def test_a_frozen_machine_is_waited_for_a_limited_time(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    setting.trust()
    monkeypatch.setattr(setting, "quick_mngr", str(setting.host.folder / "mngr"))
    monkeypatch.setattr("swarm_tui.adapters.ssh.CONNECT_TIMEOUT", 1)
    setting.host.freeze()
    answer = setting.add("--yes")
    setting.host.freeze(False)
    assert answer.returncode == 1
    assert " within 1 s\nhint: the host may be frozen" in answer.stderr


def test_an_account_without_a_shell_is_told_from_a_machine_that_is_down(setting: Setting) -> None:
    setting.trust()
    config = setting.host.folder / "sshd_config"
    before = config.read_text()
    nologin = make_program(setting.host.folder / "nologin", "echo This account is currently not available.; exit 1")
    setting.host.stop()
    config.write_text(f"{before}ForceCommand {nologin}\n")
    setting.host.start()
    answer = setting.add("--yes")
    setting.host.stop()
    config.write_text(before)
    setting.host.start()
    assert answer.returncode == 1
    assert "This account is currently not available.\nhint: give its user a login shell" in answer.stderr


def test_a_shell_that_prints_before_every_command_is_named(setting: Setting) -> None:
    setting.trust()
    (setting.host.home / ".bashrc").write_text("echo Welcome to box1\n")
    answer = setting.add("--yes")
    (setting.host.home / ".bashrc").unlink()
    assert answer.returncode == 1
    assert "prints 'Welcome to box1' before each command" in answer.stdout


def test_a_host_that_lacks_programs_gets_a_row_for_each(setting: Setting) -> None:
    setting.trust()
    assert setting.add("--yes").returncode == 0
    tools = setting.host.folder / "tools"
    for program in ("sh", "date", "head", "df", "awk", "dirname", "cat"):
        tools.mkdir(exist_ok=True)
        (tools / program).symlink_to(f"/usr/bin/{program}")
    config = setting.host.folder / "sshd_config"
    before = config.read_text()
    setting.host.stop()
    path = next(word for word in before.split() if word.startswith("PATH="))
    config.write_text(
        before.replace(path, f"PATH={tools} SHELL=/usr/bin/fish").replace("UseDNS no", "UseDNS no\nMaxStartups 2:30:5")
    )
    setting.host.start()
    answer = setting.run("hosts", "check", "--agent", "claude", "--json")
    setting.host.stop()
    config.write_text(before)
    setting.host.start()
    assert answer.returncode == 1
    rows = {row["name"]: row for row in json.loads(answer.stdout)["checks"]}
    missing = {name for name, row in rows.items() if not row["ok"]}
    assert missing >= {"box1 git", "box1 tmux", "box1 python3", "box1 jq", "box1 claude", "box1 shell"}
    assert all(rows[name]["fix"] for name in missing)
