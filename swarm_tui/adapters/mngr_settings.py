"""Where mngr has its agents and settings: the variables that say so, the files of a home's profiles, of a project."""

from __future__ import annotations

import os
import site
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from swarm_tui.adapters.environment import scrubbed_environment
from swarm_tui.model.sweep import MngrSettings
from swarm_tui.regular_file import read_regular

_SETTING_NAMES: Final = ("MNGR_HOST_DIR", "TMUX_TMPDIR", "MNGR_PREFIX", "MNGR_ROOT_NAME")
_PROJECT_FILES: Final = (".mngr/settings.toml", ".mngr/settings.local.toml")


def current_settings(path: str, environment: Mapping[str, str] | None = None) -> MngrSettings:
    """Return the settings with which later calls of this mngr find the same agents, whatever their environment."""
    given = os.environ if environment is None else environment
    home = given.get("HOME") or str(Path.home())
    root = given.get("MNGR_ROOT_NAME") or "mngr"
    return MngrSettings(
        path=path,
        host_dir=str(Path(given.get("MNGR_HOST_DIR") or f"{home}/.{root}").expanduser().absolute()),
        tmux_tmpdir=given.get("TMUX_TMPDIR") or None,
        prefix=given.get("MNGR_PREFIX") or f"{root}-",
        home=home,
    )


def mngr_environment(settings: MngrSettings, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the scrubbed environment in which mngr and tmux find the agents that belong to these settings."""
    environment = {name: value for name, value in scrubbed_environment().items() if name not in _SETTING_NAMES}
    environment["MNGR_PREFIX"] = settings.prefix
    for name, value in (
        ("MNGR_HOST_DIR", settings.host_dir),
        ("TMUX_TMPDIR", settings.tmux_tmpdir),
        ("HOME", settings.home),
    ):
        if value is not None:
            environment[name] = value
    if site.ENABLE_USER_SITE and settings.home not in (None, os.environ.get("HOME")):
        # Python looks for the user's packages below HOME, which is another folder for these agents.
        environment.setdefault("PYTHONUSERBASE", site.getuserbase())
    return environment | dict(extra or {})


class AgentTypes:
    """The agent types that settings files define, which are read again only when a file has changed."""

    def __init__(self, host_dir: Path, project: Path | None = None) -> None:
        self._host_dir = host_dir
        self._project = project
        self._signature: tuple[tuple[Path, int], ...] = ()
        self._parents: dict[str, str] = {}

    def parents(self) -> Mapping[str, str]:
        """Return the defined types, each with its parent type (empty without one), such as `my-claude` of `claude`."""
        signature = tuple((path, path.stat().st_mtime_ns) for path in self._files())
        if signature != self._signature:
            self._parents = {}
            for path, _ in signature:
                self._parents |= _read_parents(path)
            self._signature = signature
        return self._parents

    def _files(self) -> Iterator[Path]:
        yield from sorted(self._host_dir.glob("profiles/*/settings.toml"))
        yield from project_settings(self._project)


def project_settings(project: Path | None) -> Iterator[Path]:
    """Yield the settings files of a project that exist."""
    if project is not None:
        yield from (path for name in _PROJECT_FILES if (path := project / name).is_file())


def user_settings(host_dir: Path) -> Path | None:
    """Return the file with a person's settings, there or not; None where mngr has never run."""
    try:
        profile = tomllib.loads(read_regular(host_dir / "config.toml").decode()).get("profile")
    except (OSError, ValueError):
        return None
    if not isinstance(profile, str) or profile in ("", ".", "..") or "/" in profile:
        return None
    return host_dir / "profiles" / profile / "settings.toml"


def _read_parents(path: Path) -> dict[str, str]:
    """Return what one file defines; a file that cannot be read defines nothing."""
    try:
        types = tomllib.loads(read_regular(path).decode()).get("agent_types")
    except (OSError, ValueError):
        return {}
    if not isinstance(types, dict):
        return {}
    parents = {name: content.get("parent_type") for name, content in types.items() if isinstance(content, dict)}
    return {name: parent if isinstance(parent, str) else "" for name, parent in parents.items()}
