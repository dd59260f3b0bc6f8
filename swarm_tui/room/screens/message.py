"""Writes a message to agents: it is sent after a confirmation that shows the text and its receivers."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import TextArea

from swarm_tui.model.formatting import counted
from swarm_tui.model.state import TestRecord
from swarm_tui.model.text import fit_to_terminal, plain, plain_lines
from swarm_tui.room.draw.glyphs import glyph_of, role_of, word_of
from swarm_tui.room.draw.parts import Line, Part, cut_line, wrap_text
from swarm_tui.room.widgets.lines import TextLines

RECEIVERS_SHOWN = 8
QUESTION_LINES = 12
INPUT_LINES = 7


class MessageInput(TextArea):
    """The text being written. Enter ends it; ctrl+j begins a new line, and so does Enter in what is pasted."""

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            if isinstance(self.screen, MessageScreen):
                self.screen.ask_confirmation()
            return
        if event.key == "ctrl+j":
            event.stop()
            event.prevent_default()
            self.insert("\n")
            return
        await super()._on_key(event)


class MessageScreen(ModalScreen[str | None]):
    """Returns the text to send, or None."""

    AUTO_FOCUS = "MessageInput"

    def __init__(self, receivers: Sequence[TestRecord], left_out: int = 0) -> None:
        super().__init__()
        self.receivers = list(receivers)
        self.left_out = left_out
        self.is_asking = False
        self.about = TextLines()
        self.input = MessageInput(id="message_text", soft_wrap=True, show_line_numbers=False)
        self.foot = TextLines()

    def compose(self) -> ComposeResult:
        with Vertical(id="message"):
            yield self.about
            yield self.input
            yield self.foot

    def on_mount(self) -> None:
        width = min(100, self.app.size.width)
        self.query_one("#message").styles.width = width
        self.query_one("#message").styles.height = "auto"
        self.about.can_focus = self.foot.can_focus = False
        lines = self._about(width - 4)
        self.about.styles.height = min(len(lines) + 2, max(4, self.app.size.height - INPUT_LINES - 4))
        self.about.title(f"Message to {counted(len(self.receivers), 'agent')}")
        self.about.show(lines)
        self.input.styles.height = INPUT_LINES
        self.foot.styles.height = 4
        self._show_foot()

    def _about(self, width: int) -> list[Line]:
        """Return lines about the receivers and their questions."""
        lines: list[Line] = []
        asking = [record for record in self.receivers if record.question]
        for record in self.receivers[:RECEIVERS_SHOWN]:
            name = plain(record.test, 300)
            lines.append(
                cut_line([Part(f"{glyph_of(record)} {word_of(record):9} ", role_of(record)), Part(name)], width)
            )
        if len(self.receivers) > RECEIVERS_SHOWN:
            lines.append([Part(f"… and {len(self.receivers) - RECEIVERS_SHOWN} more", "dim")])
        if self.left_out:
            lines.append([Part(f"{self.left_out} of those marked have no agent that could hear it", "dim")])
        if asking:
            lines.append(
                [Part("asks:" if len(self.receivers) == 1 else "the first of them that waits asks:", "waiting")]
            )
            question = plain_lines(asking[0].question[:4000]).strip()
            lines += [[Part(f"  {text}")] for text in wrap_text(question, width - 2, QUESTION_LINES)]
            options = "  ".join(f"{number} {plain(name, 60)}" for number, name in enumerate(asking[0].options, 1))
            lines += [cut_line([Part(f"  {options}", "key")], width)] if options else []
        return lines

    def _show_foot(self) -> None:
        if not self.is_asking:
            keys = [("Enter", "done"), ("Ctrl+j", "new line"), ("Esc", "leave it")]
            self.foot.show([[part for key, word in keys for part in (Part(key, "key"), Part(f" {word}   ", "dim"))]])
            return
        text = fit_to_terminal(self.input.text)
        size = f"{counted(text.count(chr(10)) + 1, 'line')}, {counted(len(text), 'character')}"
        who = self.receivers[0].agent if len(self.receivers) == 1 else counted(len(self.receivers), "agent")
        self.foot.show(
            [
                [Part(f"Send {size}, to {plain(who, 200)}?", "strong")],
                [Part("y", "key"), Part(" yes   "), Part("n", "key"), Part(" write on")],
            ]
        )

    def ask_confirmation(self) -> None:
        """Ask whether to send the message."""
        if not self.input.text.strip():
            self.foot.show([[Part("there is nothing written yet", "warning")]])
            return
        self.is_asking = True
        self.input.read_only = True
        self.set_focus(None)
        self._show_foot()

    def on_key(self, event: events.Key) -> None:
        if not self.is_asking:
            if event.key == "escape":
                event.stop()
                self.dismiss(None)
            return
        event.stop()
        if event.character in ("y", "Y"):
            self.dismiss(fit_to_terminal(self.input.text))
        elif event.character in ("n", "N", "q") or event.key == "escape":
            self.is_asking = False
            self.input.read_only = False
            self.set_focus(self.input)
            self._show_foot()
