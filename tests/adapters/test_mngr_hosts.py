"""The machines in mngr's settings: read, added and removed, with everything else in the file as it was."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.adapters.mngr_settings import (
    MngrHost,
    add_entry,
    check_name,
    find_host,
    name_for,
    read_hosts,
    remove_entry,
)
from swarm_tui.adapters.ssh import SshTarget
from swarm_tui.errors import SwarmError, UsageError

OTHERS = """\
# mine, by hand
[agent_types.mine]   # keep
parent_type = 'claude'

[providers.modal]
is_enabled = false
"""
POOL = """
[providers.pool]
backend = "ssh"
host_dir = "/srv/mngr"   # on all of them
[providers.pool.hosts.h1]
address = "10.0.0.1"
# the second one
[providers.pool.hosts.h2]
address = "10.0.0.2"
user = "me"
port = 2222
key_file = "~/.ssh/key"
known_hosts_file = "/home/me/.ssh/known_hosts"
"""


def settings(home: Path, text: str) -> Path:
    path = home / "profiles" / "p1" / "settings.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    (home / "config.toml").write_text('profile = "p1"\n')
    return path


def box(path: Path, name: str = "box1") -> MngrHost:
    return MngrHost(name, name, SshTarget("me", "10.0.0.5", 22, "/k", "/kh"), "/home/me/.mngr-remote", path)


def test_hosts_are_read_with_the_defaults_of_mngr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    path = settings(tmp_path, OTHERS + POOL)
    first, second = read_hosts(tmp_path)
    assert first == MngrHost("h1", "pool", SshTarget("root", "10.0.0.1"), "/srv/mngr", path, ("h2",))
    assert second.target == SshTarget("me", "10.0.0.2", 2222, "/home/ada/.ssh/key", "/home/me/.ssh/known_hosts")
    assert [first.shown, second.shown] == ["h1.pool", "h2.pool"]
    assert find_host([first, second], "h2") == find_host([first, second], "h2.pool") == second


def test_only_current_profile_and_project_count(tmp_path: Path) -> None:
    settings(tmp_path, "")
    other = tmp_path / "profiles" / "p2" / "settings.toml"
    other.parent.mkdir()
    other.write_text(POOL)
    project = tmp_path / "project" / ".mngr" / "settings.toml"
    project.parent.mkdir(parents=True)
    project.write_text('[providers.ours]\nbackend = "ssh"\n[providers.ours.hosts.ours]\naddress = "ours"\n')
    assert read_hosts(tmp_path) == []
    assert [host.shown for host in read_hosts(tmp_path, tmp_path / "project")] == ["ours"]


@pytest.mark.parametrize("text", ["", OTHERS, OTHERS + POOL, "x = 1", "[providers]\n", "# a comment\n\n\n"])
def test_added_and_removed_entry_restores_file(tmp_path: Path, text: str) -> None:
    path = settings(tmp_path, text)
    path.chmod(0o640)
    add_entry(box(path))
    after = path.read_text()
    assert after.startswith(text)
    assert find_host(read_hosts(tmp_path), "box1") == box(path)
    remove_entry(box(path))
    assert path.read_text().rstrip("\n") == text.rstrip("\n")
    assert path.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in path.parent.iterdir()] == ["settings.toml"]


@given(order=st.permutations(["a", "b", "c", "d"]), text=st.sampled_from(["", OTHERS, OTHERS + POOL]))
def test_entries_may_be_removed_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, order: list[str], text: str
) -> None:
    home = tmp_path_factory.mktemp("home")
    path = settings(home, text)
    for name in ("a", "b", "c", "d"):
        add_entry(box(path, name))
    left = {"a", "b", "c", "d"}
    for name in order:
        remove_entry(find_host(read_hosts(home), name))
        left.discard(name)
        assert {host.shown for host in read_hosts(home)} - {"h1.pool", "h2.pool"} == left
        assert path.read_text().startswith(text)


def test_only_one_host_of_provider_is_removed(tmp_path: Path) -> None:
    path = settings(tmp_path, OTHERS + POOL)
    remove_entry(find_host(read_hosts(tmp_path), "h1.pool"))
    text = path.read_text()
    assert "# the second one\n[providers.pool.hosts.h2]" in text
    assert "# on all of them" in text
    assert "h1" not in text


def test_settings_behind_link_keep_the_link(tmp_path: Path) -> None:
    path = settings(tmp_path, "")
    path.rename(tmp_path / "dotfile")
    path.symlink_to(tmp_path / "dotfile")
    add_entry(box(path))
    assert path.is_symlink()
    assert "box1" in (tmp_path / "dotfile").read_text()


def test_existing_provider_is_rejected(tmp_path: Path) -> None:
    path = settings(tmp_path, POOL)
    with pytest.raises(UsageError, match="already has a provider pool"):
        add_entry(box(path, "pool"))
    assert path.read_text() == POOL


def test_broken_settings_are_reported_and_unchanged(tmp_path: Path) -> None:
    path = settings(tmp_path, "[providers\n")
    with pytest.raises(SwarmError, match=r"invalid TOML in the settings of mngr: .*fix it by hand"):
        read_hosts(tmp_path)
    with pytest.raises(SwarmError, match="invalid TOML"):
        add_entry(box(path))
    assert path.read_text() == "[providers\n"


@pytest.mark.parametrize(
    "text",
    [
        'providers = {box1 = {backend = "ssh", hosts = {box1 = {address = "x"}}}}\n',
        '[providers]\nbox1.backend = "ssh"\nbox1.hosts.box1.address = "x"\n',
        'note = """\n[providers.box1]\n"""\n[providers.box1]\nbackend = "ssh"\nhosts.box1.address = "x"\n',
    ],
)
def test_entry_in_other_style_is_not_changed(tmp_path: Path, text: str) -> None:
    path = settings(tmp_path, text)
    with pytest.raises(SwarmError, match="edit it by hand"):
        remove_entry(find_host(read_hosts(tmp_path), "box1"))
    assert path.read_text() == text
    assert tomllib.loads(text) == tomllib.loads(path.read_text())


def test_unknown_host_is_reported_with_known_ones(tmp_path: Path) -> None:
    settings(tmp_path, POOL)
    with pytest.raises(UsageError, match=r"unknown host: h9 \(known hosts: h1\.pool, h2\.pool"):
        find_host(read_hosts(tmp_path), "h9")
    with pytest.raises(UsageError, match="no hosts yet"):
        find_host([], "h9")


@pytest.mark.parametrize("name", ["-x", "a b", "", "ä", "a.b", "x" * 64, "../x", "a-", "$(x)", "modal", "LOCAL"])
def test_invalid_host_name_is_rejected(name: str) -> None:
    with pytest.raises(UsageError):
        check_name(name)


@pytest.mark.parametrize(
    ("address", "name"),
    [("10.0.0.5", "10-0-0-5"), ("box1.example.org", "box1-example-org"), ("::1", "1"), ("fe80::1%eth0", "fe80-1-eth0")],
)
def test_host_name_is_derived_from_address(address: str, name: str) -> None:
    assert check_name(name_for(address)) == name
