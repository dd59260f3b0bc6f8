"""The config file and the saved state of the room."""

from pathlib import Path

import pytest

from swarm_tui.errors import UsageError
from swarm_tui.room.settings import ProjectChoices, Remembered, Settings, read_settings


def environment(folder: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(folder / "config"), "XDG_STATE_HOME": str(folder / "state")}


def write_config(folder: Path, text: str) -> dict[str, str]:
    path = folder / "config" / "swarm-tui" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return environment(folder)


def test_settings_without_files_are_defaults(tmp_path: Path) -> None:
    settings = read_settings(environment(tmp_path))
    assert (settings.remembered, settings.keys, settings.notify) == (Remembered(), {}, "bell")


def test_view_setting_is_saved(tmp_path: Path) -> None:
    read_settings(environment(tmp_path)).remember(theme="nord", has_side=False)
    assert read_settings(environment(tmp_path)).remembered == Remembered(theme="nord", has_side=False)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"theme": 3, "has_side": false, "unknown": 1}', "\x00"])
def test_invalid_saved_values_are_ignored(tmp_path: Path, content: str) -> None:
    path = tmp_path / "state" / "swarm-tui" / "room.json"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    remembered = read_settings(environment(tmp_path)).remembered
    assert remembered.theme == ""
    assert remembered.has_side == ("has_side" not in content)


def test_view_settings_belong_to_project(tmp_path: Path) -> None:
    settings = read_settings(environment(tmp_path)).remember_for("/one", zoom="rows", sort="cost")
    settings.remember_for("/two", group="state", sweep="s", test="t")
    settings = read_settings(environment(tmp_path))
    assert settings.choices_for("/one") == ProjectChoices(zoom="rows", sort="cost")
    assert settings.choices_for("/two") == ProjectChoices(group="state", sweep="s", test="t")
    assert settings.choices_for("/three") == ProjectChoices()


@pytest.mark.parametrize("choices", [3, [], {"zoom": 3}, {"nothing": "x"}, None])
def test_invalid_project_settings_are_ignored(choices: object) -> None:
    settings = Settings(remembered=Remembered(projects={"/one": choices}))
    assert settings.choices_for("/one") == ProjectChoices()
    assert settings.remember_for("/one", zoom="rows").choices_for("/one").zoom == "rows"


def test_unwritable_state_file_is_ignored(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    settings = Settings(state_file=blocked / "room.json").remember(theme="nord")
    assert settings.remembered.theme == "nord"


def test_config_sets_theme_notifications_and_keys(tmp_path: Path) -> None:
    text = '[room]\ntheme = "nord"\nnotify = "none"\n[keys]\n"sweep.wanted" = "W"\n"room.help" = ["?", "f1"]\n'
    settings = read_settings(write_config(tmp_path, text))
    assert (settings.theme, settings.notify) == ("nord", "none")
    assert settings.keys == {"sweep.wanted": ("W",), "room.help": ("?", "f1")}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[keys]\nnothing = 'x'\n", "nothing"),
        ("[keys]\n'room.help' = 3\n", "room.help"),
        ("[room]\nnotify = 'loud'\n", "loud"),
        ("room = 3\n", "room"),
        ("[", "config.toml"),
    ],
)
def test_invalid_config_is_reported(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        read_settings(write_config(tmp_path, text))


def test_unknown_setting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown key in \[room\]: 'thme'"):
        read_settings(write_config(tmp_path, '[room]\nthme = "nord"\n'))
