"""Settings of the room: what it remembers for each project, and the user's config file. Both are in XDG folders.

`$XDG_CONFIG_HOME/swarm-tui/config.toml` belongs to the user; the room only reads it:

    [room]
    theme = "nord"          # default: the theme chosen last
    notify = "bell"         # or "desktop", "none"
    [keys]
    "sweep.wanted" = ["w", "n"]

The room writes `$XDG_STATE_HOME/swarm-tui/room.json`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from swarm_tui.errors import JournalError, UsageError
from swarm_tui.files import read_regular
from swarm_tui.journal.folder import write_beside
from swarm_tui.journal.user_files import config_file, config_table, read_config, state_folder
from swarm_tui.model.text import parse_json
from swarm_tui.room.actions import SCOPES, actions_in

if TYPE_CHECKING:
    from textual.app import App

NOTICES: Final = ("bell", "desktop", "none")
PROJECTS_KEPT: Final = 100
DEFAULT_THEME: Final = "textual-dark"
TERMINAL_THEME: Final = "ansi-dark"


@dataclass(frozen=True, slots=True)
class Remembered:
    """State of the room that is saved between runs."""

    theme: str = ""
    has_side: bool = True
    is_taught: bool = False
    """Whether the introduction to the first keys has been shown."""
    projects: Mapping[str, Any] = field(default_factory=dict)
    """View settings for each project, by repository. The most recently used project is last."""


@dataclass(frozen=True, slots=True)
class ProjectChoices:
    """View settings and cursor position of one project."""

    zoom: str = ""
    """Empty until the user has chosen a zoom. The largest zoom that shows all tests is used then."""
    group: str = "file"
    sort: str = "file"
    sweep: str = ""
    test: str = ""
    """The test under the cursor in that sweep."""
    panels: str = ""
    """Sizes of dragged panels on each screen, in percent: `sweep=40 inbox-stacked=30`."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of this room."""

    remembered: Remembered = Remembered()
    theme: str = ""
    notify: str = "bell"
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    state_file: Path | None = None
    """File for `remembered`. None saves nothing, as in tests."""

    @property
    def personal_folder(self) -> Path | None:
        """Folder for the positions of last visits."""
        return self.state_file.parent if self.state_file is not None else None

    def choices_for(self, project: str) -> ProjectChoices:
        """Return the view settings of a project, or the defaults."""
        known = self.remembered.projects.get(project)
        names = {entry.name for entry in fields(ProjectChoices)}
        chosen = known.items() if isinstance(known, dict) else ()
        return ProjectChoices(**{name: value for name, value in chosen if name in names and isinstance(value, str)})

    def remember_for(self, project: str, **changes: str) -> Settings:
        """Return the settings with new view settings for a project. They are also written to disk if possible."""
        choices = asdict(replace(self.choices_for(project), **changes))
        others = {name: kept for name, kept in self.remembered.projects.items() if name != project}
        return self.remember(projects=dict([*others.items(), (project, choices)][-PROJECTS_KEPT:]))

    def remember(self, **changes: Any) -> Settings:
        """Return the settings with these values changed. They are also written to disk if possible."""
        remembered = replace(self.remembered, **changes)
        if self.state_file is not None and remembered != self.remembered:
            try:
                self.state_file.parent.mkdir(parents=True, exist_ok=True)
                write_beside(self.state_file, json.dumps(asdict(remembered)).encode())
            except (OSError, JournalError):
                # Failing to save a view setting is not an error.
                return replace(self, remembered=remembered, state_file=None)
        return replace(self, remembered=remembered)


def first_theme(app: App[Any]) -> str:
    """Return the default theme: terminal colours if the terminal has few colours or none."""
    has_few = app.no_color or app.console.color_system == "standard"
    return TERMINAL_THEME if has_few else DEFAULT_THEME


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the config file and the saved state. Raise UsageError if the config file is invalid."""
    config, config_path = read_config(environment), config_file(environment)
    state_file = state_folder(environment) / "room.json"
    room = config_table(config, "room", config_path)
    unknown = [name for name in room if name not in ("theme", "notify")]
    if unknown:
        raise UsageError(f"{config_path}: unknown key in [room]: {unknown[0]!r}", "valid keys: theme, notify")
    notify = room.get("notify", "bell")
    if notify not in NOTICES:
        valid = f"valid values: {', '.join(NOTICES)}"
        raise UsageError(f"{config_path}: invalid value for room.notify: {notify!r}", valid)
    return Settings(
        remembered=_read_remembered(state_file),
        theme=str(room.get("theme", "")),
        notify=notify,
        keys=_read_keys(config_table(config, "keys", config_path), config_path),
        state_file=state_file,
    )


def _read_keys(table: dict[str, Any], path: Path) -> dict[str, tuple[str, ...]]:
    # Import only the screens that are named, because most users name none.
    scopes = {name.partition(".")[0] for name in table}
    action_ids = {action.id for scope in scopes & set(SCOPES) for action in actions_in(scope)}
    keys = {}
    for name, value in table.items():
        if name not in action_ids:
            raise UsageError(f"{path}: unknown action in [keys]: {name!r}", "press `?` in the room to list the names")
        key_list = [value] if isinstance(value, str) else value
        if not isinstance(key_list, list) or not all(isinstance(key, str) and key for key in key_list):
            raise UsageError(f"{path}: invalid keys for {name}: {value!r}", 'use "w" or ["w", "ctrl+n"]')
        keys[name] = tuple(key_list)
    return keys


def _read_remembered(path: Path) -> Remembered:
    try:
        content = parse_json(read_regular(path))
        plain_values = {entry.name: content[entry.name] for entry in fields(Remembered) if entry.name in content}
        defaults = asdict(Remembered())
        return replace(
            Remembered(), **{name: value for name, value in plain_values.items() if type(value) is type(defaults[name])}
        )
    except (OSError, ValueError, TypeError):
        return Remembered()
