"""Generates the page of the documentation that lists all keys, from the table of actions."""

from __future__ import annotations

from swarm_tui.room.actions import EVERYWHERE, SCREENS, Action, actions_in, key_name


def keys_page() -> str:
    """Return the page as Markdown."""
    lines = [
        "# Keys of the room",
        "",
        "Press `?` in the room to list and search the keys of the current screen.",
        "To change keys, use the names in the last column in `$XDG_CONFIG_HOME/swarm-tui/config.toml`:",
        "",
        "```toml",
        "[keys]",
        '"sweep.wanted" = ["w", "n"]',
        "```",
    ]
    for entry in SCREENS:
        lines += ["", f"## {entry.key} {entry.title}", "", *_table(actions_in(entry.name))]
    lines += ["", "## Everywhere", "", *_table(actions_in(EVERYWHERE))]
    return "\n".join(lines) + "\n"


def _table(actions: tuple[Action, ...]) -> list[str]:
    rows = ["| keys | description | name |", "| --- | --- | --- |"]
    for action in actions:
        keys = " ".join(f"`{key_name(key)}`" for key in action.keys) or "by `:`"
        rows.append(f"| {keys} | {action.description} | `{action.id}` |")
    return rows
