"""Removing what mngr and Claude Code recorded in the user's home folder for the copies of a sweep."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.agents.types import HomeLeftovers, agent_type_of
from swarm_tui.agents.types.claude.home import _without

CLAUDE: Final = agent_type_of("claude")
COPIES: Final = ("/host/copies/swarm-s-add-1", "/host/copies/swarm-s-name-1")
OTHERS: Final = ("/host/copies/swarm-s-add-10", "/home/ada/project", "/host/copies")


def environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home)}


def write_config(folder: Path, *projects: str) -> Path:
    path = folder / ".claude.json"
    path.write_text(json.dumps({"numStartups": 7, "projects": {name: {"a": 1} for name in projects}, "z": 1e3}))
    return path


def projects_in(path: Path) -> list[str]:
    return list(json.loads(path.read_text())["projects"])


def test_only_entries_of_copies_are_removed(tmp_path: Path) -> None:
    config = write_config(tmp_path, OTHERS[0], *COPIES, f"{COPIES[0]}/inner", *OTHERS[1:])
    config.chmod(0o644)
    found = CLAUDE.home_leftovers(COPIES, environment(tmp_path))
    assert found == HomeLeftovers((f"3 entries in {config}",))
    assert CLAUDE.clean_home(COPIES, environment(tmp_path)) == []
    assert projects_in(config) == list(OTHERS)
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [".claude.json"]
    assert CLAUDE.home_leftovers(COPIES, environment(tmp_path)) == HomeLeftovers()


def test_other_text_of_the_file_is_unchanged(tmp_path: Path) -> None:
    before = '{\n\t"a": 1.50, "big": 1e400, "s": "\\ud800é",\n "projects": { %s"/mine": {"projects": {}} } , "b": 2}\n'
    (tmp_path / ".claude.json").write_text(before % f'"{COPIES[0]}" : [ {{}} ] , ')
    assert CLAUDE.clean_home(COPIES, environment(tmp_path)) == []
    assert (tmp_path / ".claude.json").read_text() == before % ""


@given(
    st.dictionaries(st.text(max_size=4), st.recursive(st.none() | st.text(), st.lists, max_leaves=4), max_size=6),
    st.sets(st.text(max_size=4)),
    st.sampled_from([None, 0, 2, "\t"]),
    st.booleans(),
)
def test_removed_keys_are_missing_and_others_equal(
    projects: dict[str, object], removed: set[str], indent: int | str | None, is_ascii: bool
) -> None:
    content = {"first": [1, "}"], "projects": projects, "last": {"projects": 1}}
    text = _without(json.dumps(content, indent=indent, ensure_ascii=is_ascii), sorted(removed))
    left = {key: value for key, value in projects.items() if key not in removed}
    assert json.loads(text) == content | {"projects": left}


def test_folders_of_copies_are_removed(tmp_path: Path) -> None:
    cache = tmp_path / "cache/claude-cli-nodejs"
    projects = tmp_path / ".claude/projects"
    for parent in (cache, projects):
        for path in (*COPIES, f"{COPIES[0]}/src", *OTHERS):
            (parent / path.replace("/", "-") / "inner").mkdir(parents=True)
    (tmp_path / "precious").mkdir()
    (projects / f"{COPIES[0].replace('/', '-')}-link").symlink_to(tmp_path / "precious")
    around = environment(tmp_path) | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert CLAUDE.home_leftovers(COPIES, around).removable == (f"3 folders in {projects}", f"3 folders in {cache}")
    assert CLAUDE.clean_home(COPIES, around) == []
    assert {path.name for path in cache.iterdir()} == {path.replace("/", "-") for path in OTHERS}
    assert (tmp_path / "precious").is_dir()


def test_configured_folder_is_cleaned_too(tmp_path: Path) -> None:
    other = tmp_path / "config"
    (other / "projects" / COPIES[1].replace("/", "-")).mkdir(parents=True)
    config = write_config(other, *COPIES)
    assert CLAUDE.clean_home(COPIES, environment(tmp_path) | {"CLAUDE_CONFIG_DIR": str(other)}) == []
    assert projects_in(config) == []
    assert list((other / "projects").iterdir()) == []


def test_entry_of_existing_copy_stays(tmp_path: Path) -> None:
    copy = tmp_path / "swarm-s-add-1"
    copy.mkdir()
    config = write_config(tmp_path, str(copy))
    assert CLAUDE.clean_home([str(copy)], environment(tmp_path)) == []
    assert projects_in(config) == [str(copy)]


def test_resolved_path_of_copy_is_recognized(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    config = write_config(tmp_path, f"{tmp_path.resolve()}/real/swarm-s-add-1")
    assert CLAUDE.clean_home([f"{tmp_path}/link/swarm-s-add-1"], environment(tmp_path)) == []
    assert projects_in(config) == []


def test_linked_config_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    config = write_config(tmp_path / "dotfiles", *COPIES)
    (tmp_path / ".claude.json").symlink_to(config)
    assert CLAUDE.clean_home(COPIES, environment(tmp_path)) == []
    assert (tmp_path / ".claude.json").is_symlink()
    assert projects_in(config) == []


@pytest.mark.parametrize("ending", ["", "}}garbage", '"x": NaN}}', "[" * 100_000])
def test_invalid_json_is_reported_and_left_alone(tmp_path: Path, ending: str) -> None:
    config = tmp_path / ".claude.json"
    config.write_text(f'{{"projects": {{"{COPIES[0]}": {{}},{ending}')
    before = config.read_bytes()
    assert CLAUDE.home_leftovers(COPIES, environment(tmp_path)).removable == (f"entries in {config}",)
    (problem,) = CLAUDE.clean_home(COPIES, environment(tmp_path))
    assert problem == f"entries in {config}: the file is not valid JSON; remove them yourself"
    assert config.read_bytes() == before


@pytest.mark.parametrize("content", ["", "[]", '{"projects": []}', "{", "null"])
def test_config_without_entries_is_ignored(tmp_path: Path, content: str) -> None:
    (tmp_path / ".claude.json").write_text(content)
    assert CLAUDE.home_leftovers(COPIES, environment(tmp_path)) == HomeLeftovers()
    assert CLAUDE.clean_home(COPIES, environment(tmp_path)) == []
    assert (tmp_path / ".claude.json").read_text() == content


def check_in_use(config: Path, around: Mapping[str, str]) -> None:
    (problem,) = CLAUDE.clean_home(COPIES, around)
    assert problem.startswith(f"entries in {config}: another program is changing it")
    assert projects_in(config) == list(COPIES)


def test_locked_config_is_reported_and_left_alone(tmp_path: Path) -> None:
    config = write_config(tmp_path, *COPIES)
    lock = tmp_path / ".claude.json.lock"
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        check_in_use(config, environment(tmp_path))
    assert CLAUDE.clean_home(COPIES, environment(tmp_path)) == []
    assert projects_in(config) == []


def test_config_locked_by_claude_is_left_alone(tmp_path: Path) -> None:
    config = write_config(tmp_path, *COPIES)
    lock = tmp_path / ".claude.json.lock"
    lock.mkdir()
    check_in_use(config, environment(tmp_path))
    os.utime(lock, (1.0, 1.0))
    assert CLAUDE.clean_home(COPIES, environment(tmp_path)) == []
    assert projects_in(config) == []


def test_kept_files_are_named(tmp_path: Path) -> None:
    write_config(tmp_path, *COPIES)
    (tmp_path / ".claude.json.bak").write_text("{}")
    (tmp_path / ".claude").mkdir()
    keys = tmp_path / ".claude/keybindings.json"
    keys.write_text('{"bindings": []}')
    backup = f"{tmp_path}/.claude.json.bak (mngr's backup)"
    assert CLAUDE.home_leftovers(COPIES, environment(tmp_path)).kept == (backup,)
    keys.write_text('{"bindings": [{"bindings": {"meta+q": "chat:cancel"}}]}')
    kept = (backup, f"{keys} (mngr added the key meta+q)")
    assert CLAUDE.home_leftovers(COPIES, environment(tmp_path)).kept == kept
    assert CLAUDE.home_leftovers((), environment(tmp_path)) == HomeLeftovers()


def test_preserved_transcripts_are_named(tmp_path: Path) -> None:
    around = environment(tmp_path) | {"MNGR_HOST_DIR": str(tmp_path / "mngr")}
    kept = (f"{tmp_path}/mngr/preserved (mngr copies transcripts of destroyed agents to it)",)
    assert CLAUDE.home_leftovers(COPIES, around).kept == ()
    assert CLAUDE.home_leftovers([str(tmp_path)], around).kept == kept
    (tmp_path / "mngr/preserved").mkdir(parents=True)
    assert CLAUDE.home_leftovers(COPIES, around).kept == kept


def test_other_types_leave_home_alone(tmp_path: Path) -> None:
    config = write_config(tmp_path, *COPIES)
    for name in ("offline", "command", "codex"):
        assert agent_type_of(name).home_leftovers(COPIES, environment(tmp_path)) == HomeLeftovers()
        assert agent_type_of(name).clean_home(COPIES, environment(tmp_path)) == []
    assert projects_in(config) == list(COPIES)
