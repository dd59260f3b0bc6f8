"""What the config says of notices to a person who is away.

[notify]
command = ["ntfy", "publish", "sweeps"]     # words, no shell; it gets the notice as JSON on its standard input
webhook = "https://example.org/hook"        # gets the same JSON by POST
desktop = true                              # notify-send
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from swarm_tui.errors import UsageError
from swarm_tui.journal.personal_files import config_file, config_table, read_config


@dataclass(frozen=True, slots=True)
class NotifySettings:
    """The ways on which a person is told."""

    command: tuple[str, ...] = ()
    webhook: str = ""
    has_desktop: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.command or self.webhook or self.has_desktop)


def read_notify_settings(environment: Mapping[str, str] = os.environ) -> NotifySettings:
    """Read the ways from the config file; raise UsageError for what cannot be one."""
    path = config_file(environment)
    table = config_table(read_config(environment), "notify", path)
    unknown = [name for name in table if name not in ("command", "webhook", "desktop")]
    if unknown:
        raise UsageError(f"{path}: [notify] knows no {unknown[0]!r}", "it has command, webhook and desktop")
    command, webhook, has_desktop = table.get("command", []), table.get("webhook", ""), table.get("desktop", False)
    if not isinstance(command, list) or not all(isinstance(word, str) and "\0" not in word for word in command):
        raise UsageError(f"{path}: notify.command is {command!r}", 'write its words: ["ntfy", "publish", "sweeps"]')
    if command and not command[0]:
        raise UsageError(f"{path}: notify.command names no program", "its first word is the program")
    if not isinstance(webhook, str) or (webhook and not _is_address(webhook)):
        # The address may hold a secret, so that it is not repeated.
        raise UsageError(f"{path}: notify.webhook is no address", "it begins with https:// or http://")
    if not isinstance(has_desktop, bool):
        raise UsageError(f"{path}: notify.desktop is {has_desktop!r}", "it is true or false")
    return NotifySettings(tuple(command), webhook, has_desktop)


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and text.isprintable()
    except ValueError:
        return False
