"""What a key opens that is refused while an earlier moment is shown: the reason, and no key that follows acts.

Whoever pressed it may go on typing what was meant for a composer, a menu or an agent's terminal.
"""

from __future__ import annotations

from textual import events

from swarm_tui.model.text import plain
from swarm_tui.room.draw.parts import Line, Part, wrap_text
from swarm_tui.room.screens.dialog import Dialog


class OnlyNowScreen(Dialog[None]):
    """Says why something cannot be done in the past; only Escape closes it."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__("Of now only")
        self._what, self._reason = plain(what, 300), plain(reason, 300)

    def draw(self) -> None:
        width = max(8, min(self.WIDTH, self.app.size.width) - 4)
        lines: list[Line] = [[Part(row, "dim")] for row in wrap_text(self._what, width - 1, 2)]
        lines += [[Part(row, "warning")] for row in wrap_text(self._reason, width - 1, 3)]
        lines.append([Part("Esc", "key"), Part(" closes this", "dim")])
        self.resize_panel(width + 4, len(lines))
        self.panel.title(self._title)
        self.panel.show(lines)

    def on_key(self, event: events.Key) -> None:
        event.stop()
        if event.key == "escape":
            self.dismiss(None)
        else:
            self.panel.title(self._title, "Esc closes")
