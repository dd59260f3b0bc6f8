"""Which agent types mngr's settings files define: in a home's profiles and in a project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swarm_tui.adapters.mngr_settings import AgentTypes


def write(path: Path, content: str, at: int = 1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    os.utime(path, ns=(at, at))


def test_project_types_override_profile(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    assert AgentTypes(home, project).parents() == {}
    write(home / "profiles/p/settings.toml", "[agent_types.mine]\nparent_type = 'claude'\n[agent_types.bare]\n")
    write(project / ".mngr/settings.toml", "[agent_types.ours]\nparent_type = 'codex'\n")
    write(project / ".mngr/settings.local.toml", "[agent_types.ours]\nparent_type = 'claude'\n")
    write(project / ".mngr/settings.old.toml", "[agent_types.old]\nparent_type = 'claude'\n")
    assert AgentTypes(home, project).parents() == {"mine": "claude", "bare": "", "ours": "claude"}
    assert AgentTypes(home).parents() == {"mine": "claude", "bare": ""}


@pytest.mark.parametrize("broken", ["broken [", "agent_types = 3\n", "[agent_types]\nmine = 'claude'\n", "\x00"])
def test_broken_settings_define_no_types(tmp_path: Path, broken: str) -> None:
    settings = tmp_path / "profiles/p/settings.toml"
    types = AgentTypes(tmp_path)
    write(settings, broken)
    assert types.parents() == {}
    write(settings, "[agent_types.mine]\nparent_type = 3\n", at=2)
    assert types.parents() == {"mine": ""}
    settings.unlink()
    assert types.parents() == {}
