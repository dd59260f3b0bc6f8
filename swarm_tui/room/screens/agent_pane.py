"""An agent's pane inside the room: what tmux shows there, and keys that reach its program."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.screen import ModalScreen

from swarm_tui.adapters.terminal import TerminalProgram
from swarm_tui.model.state import TestRecord
from swarm_tui.model.text import plain
from swarm_tui.places.attach import Attacher, Prepared
from swarm_tui.room.draw.parts import Part, spread
from swarm_tui.room.widgets.band import Band
from swarm_tui.room.widgets.terminal import TerminalPane


class PaneScreen(ModalScreen[str]):
    """Returns a sentence about how it was left."""

    TAKES_ALL_KEYS: ClassVar[bool] = True
    AUTO_FOCUS = "TerminalPane"

    def __init__(self, attacher: Attacher, prepared: Prepared, record: TestRecord) -> None:
        super().__init__()
        self._attacher = attacher
        self._prepared = prepared
        self._record = record
        self._band = Band()

    def compose(self) -> ComposeResult:
        yield self._band
        yield TerminalPane(self._start)

    def _start(self, rows: int, columns: int) -> TerminalProgram:
        return self._attacher.open_pane(self._prepared, rows, columns)

    def on_mount(self) -> None:
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        width = self.size.width or 80
        name = [Part(f" {plain(self._record.test, 200)}", "strong"), Part("  all keys go to the agent", "dim")]
        self._band.show([spread(name, [Part("Ctrl+\\", "key"), Part(" leaves ", "dim")], width)])

    def on_terminal_pane_closed(self, event: TerminalPane.Closed) -> None:
        event.stop()
        if self.is_current:
            self.dismiss(f"the pane of {self._record.agent} has closed" if event.is_ended else "")
