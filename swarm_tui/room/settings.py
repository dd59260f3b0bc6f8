"""What the room remembers, much of it for each project, and what the config file sets (keys, notices); XDG folders.

`$XDG_CONFIG_HOME/swarm-tui/config.toml` belongs to the person and is only read:

    [room]
    theme = "nord"          # else the one chosen last
    notify = "bell"         # or "desktop", "none"
    [keys]
    "sweep.wanted" = ["w", "n"]

`$XDG_STATE_HOME/swarm-tui/room.json` is the room's own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from swarm_tui.errors import JournalError, UsageError
from swarm_tui.journal.folder import write_beside
from swarm_tui.journal.personal_files import config_file, config_table, read_config, state_folder
from swarm_tui.regular_file import read_regular
from swarm_tui.room.actions import SCOPES, actions_in

if TYPE_CHECKING:
    from textual.app import App

NOTICES: Final = ("bell", "desktop", "none")
PROJECTS_KEPT: Final = 100
DEFAULT_THEME: Final = "textual-dark"
TERMINAL_THEME: Final = "ansi-dark"


@dataclass(frozen=True, slots=True)
class Remembered:
    """What the room remembers from one time to the next."""

    theme: str = ""
    has_side: bool = True
    is_taught: bool = False
    """Whether the lines that teach the first keys have been shown."""
    projects: Mapping[str, Any] = field(default_factory=dict)
    """The choices for each project, by its repository; those used last at the end."""


@dataclass(frozen=True, slots=True)
class ProjectChoices:
    """How a person wants to see the sweeps of one project, and where they were."""

    zoom: str = ""
    """Empty until somebody has chosen one: then it is the largest in which all tests are seen."""
    group: str = "file"
    sort: str = "file"
    sweep: str = ""
    test: str = ""
    """The test under the cursor in that sweep."""
    panels: str = ""
    """The share of a panel on each screen where it was dragged, in percent: `sweep=40 inbox-stacked=30`."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How this room is set up."""

    remembered: Remembered = Remembered()
    theme: str = ""
    notify: str = "bell"
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    state_file: Path | None = None
    """Where `remembered` is kept; None remembers nothing, as in tests."""

    @property
    def personal_folder(self) -> Path | None:
        """Where it is kept how far each sweep was seen."""
        return self.state_file.parent if self.state_file is not None else None

    def choices_for(self, project: str) -> ProjectChoices:
        """Return the choices for a project, the defaults where there are none."""
        known = self.remembered.projects.get(project)
        names = {entry.name for entry in fields(ProjectChoices)}
        chosen = known.items() if isinstance(known, dict) else ()
        return ProjectChoices(**{name: value for name, value in chosen if name in names and isinstance(value, str)})

    def remember_for(self, project: str, **changes: str) -> Settings:
        """Return the settings with these choices for a project, on disk too where that is possible."""
        choices = asdict(replace(self.choices_for(project), **changes))
        others = {name: kept for name, kept in self.remembered.projects.items() if name != project}
        return self.remember(projects=dict([*others.items(), (project, choices)][-PROJECTS_KEPT:]))

    def remember(self, **changes: Any) -> Settings:
        """Return the settings with these things remembered, on disk too where that is possible."""
        remembered = replace(self.remembered, **changes)
        if self.state_file is not None and remembered != self.remembered:
            try:
                self.state_file.parent.mkdir(parents=True, exist_ok=True)
                write_beside(self.state_file, json.dumps(asdict(remembered)).encode())
            except (OSError, JournalError):
                # A choice that cannot be kept is no error.
                return replace(self, remembered=remembered, state_file=None)
        return replace(self, remembered=remembered)


def first_theme(app: App[Any]) -> str:
    """Return the theme until one is chosen: the terminal's own colours where it has few, or none."""
    has_few = app.no_color or app.console.color_system == "standard"
    return TERMINAL_THEME if has_few else DEFAULT_THEME


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read config and memory; raise UsageError where the config cannot be understood."""
    config, config_path = read_config(environment), config_file(environment)
    state_file = state_folder(environment) / "room.json"
    room = config_table(config, "room", config_path)
    unknown = [name for name in room if name not in ("theme", "notify")]
    if unknown:
        raise UsageError(f"{config_path}: [room] knows no {unknown[0]!r}", "it has theme and notify")
    notify = room.get("notify", "bell")
    if notify not in NOTICES:
        raise UsageError(f"{config_path}: room.notify is {notify!r}", f"it can be {', '.join(NOTICES)}")
    return Settings(
        remembered=_read_remembered(state_file),
        theme=str(room.get("theme", "")),
        notify=notify,
        keys=_read_keys(config_table(config, "keys", config_path), config_path),
        state_file=state_file,
    )


def _read_keys(table: dict[str, Any], path: Path) -> dict[str, tuple[str, ...]]:
    # Only the screens that are named are imported for it: most people name none.
    scopes = {name.partition(".")[0] for name in table}
    known = {action.id for scope in scopes & set(SCOPES) for action in actions_in(scope)}
    keys = {}
    for name, value in table.items():
        if name not in known:
            raise UsageError(f"{path}: there is no action {name!r}", "`?` in the room lists them with their names")
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or not all(isinstance(key, str) and key for key in listed):
            raise UsageError(f"{path}: the keys of {name} are {value!r}", 'write them as "w" or ["w", "ctrl+n"]')
        keys[name] = tuple(listed)
    return keys


def _read_remembered(path: Path) -> Remembered:
    try:
        content = json.loads(read_regular(path))
        plain_values = {entry.name: content[entry.name] for entry in fields(Remembered) if entry.name in content}
        known = asdict(Remembered())
        return replace(
            Remembered(), **{name: value for name, value in plain_values.items() if type(value) is type(known[name])}
        )
    except (OSError, ValueError, TypeError, RecursionError):
        return Remembered()
