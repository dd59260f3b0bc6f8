"""Writes a message to agents. It always opens: who would hear it, or that nobody would, is said there."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence

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


Drafts = MutableMapping[str, str]
"""What was written and not sent, by the tests whose agents it was for."""


class MessageInput(TextArea):
    """The text being written. Enter sends it; ctrl+j begins a new line, and so does Enter in what is pasted."""

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            if isinstance(self.screen, MessageScreen):
                self.screen.send()
            return
        if event.key == "ctrl+j":
            event.stop()
            event.prevent_default()
            self.insert("\n")
            return
        await super()._on_key(event)


class MessageScreen(ModalScreen[str | None]):
    """Returns the text to send, or None. One agent gets it at once; for several a question comes first."""

    AUTO_FOCUS = "MessageInput"

    def __init__(
        self, receivers: Sequence[TestRecord], drafts: Drafts, left_out: int = 0, *, why_nobody: str = ""
    ) -> None:
        super().__init__()
        self.receivers = list(receivers)
        self.left_out = left_out
        self.why_nobody = why_nobody
        """Why nobody would hear it now; what is written is kept all the same, for the receivers if there are some."""
        self.is_asking = False
        self.about = TextLines()
        self._drafts = drafts
        self._draft_key = " ".join(record.test for record in receivers)
        draft = drafts.get(self._draft_key, "")
        self.input = MessageInput(draft, id="message_text", soft_wrap=True, show_line_numbers=False)
        self.input.move_cursor(self.input.document.end)
        self.foot = TextLines()

    def compose(self) -> ComposeResult:
        with Vertical(id="message"):
            yield self.about
            yield self.input
            yield self.foot

    def on_mount(self) -> None:
        self.about.can_focus = self.foot.can_focus = False
        self._draw()

    def on_resize(self, event: events.Resize) -> None:
        self._draw()

    def _draw(self) -> None:
        width, height = min(100, self.app.size.width), self.app.size.height
        self.query_one("#message").styles.width = width
        self.query_one("#message").styles.height = "auto"
        lines = self._about(max(8, width - 4))
        # On a small terminal the text itself and how to send it come first.
        foot, text = (4, INPUT_LINES) if height >= 16 else (3, max(3, min(INPUT_LINES, height - 3)))
        left = height - foot - text
        self.about.styles.height = max(0, min(len(lines) + 2, left))
        self.about.display = left >= 3
        self.about.title(f"Message to {counted(len(self.receivers), 'agent')}" if self.receivers else "Message")
        self.about.show(lines)
        self.input.styles.height = text
        self.foot.styles.height = foot
        self._show_foot()

    def _about(self, width: int) -> list[Line]:
        """Return lines about the receivers and their questions."""
        lines: list[Line] = [[Part(row, "warning")] for row in wrap_text(self.why_nobody, width) if row]
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
            sends = (
                [("Enter", "sends it" if len(self.receivers) == 1 else "goes on")]
                if self.receivers and not self.why_nobody
                else []
            )
            keys = [*sends, ("Ctrl+j", "new line"), ("Esc", "closes, what is written stays")]
            self.foot.show([[part for key, word in keys for part in (Part(key, "key"), Part(f" {word}   ", "dim"))]])
            return
        text = fit_to_terminal(self.input.text)
        size = f"{counted(text.count(chr(10)) + 1, 'line')}, {counted(len(text), 'character')}"
        self.foot.show(
            [
                [Part(f"Send {size}, to {counted(len(self.receivers), 'agent')}?", "strong")],
                [Part("y", "key"), Part(" yes   "), Part("n", "key"), Part(" write on")],
            ]
        )

    def send(self) -> None:
        """Send the message to one agent, or ask whether to send it to several."""
        if self.why_nobody or not self.receivers:
            why = wrap_text(f"not sent: {self.why_nobody}", max(8, self.foot.text_width), 2)
            self.foot.show([[Part(row, "warning")] for row in why])
            return
        if not self.input.text.strip():
            self.foot.show([[Part("there is nothing written yet", "warning")]])
            return
        if len(self.receivers) == 1:
            self._finish()
            return
        self.is_asking = True
        self.input.read_only = True
        self.set_focus(None)
        self._show_foot()

    def _finish(self) -> None:
        self._drafts.pop(self._draft_key, None)
        self.dismiss(fit_to_terminal(self.input.text))

    def on_key(self, event: events.Key) -> None:
        if not self.is_asking:
            if event.key == "escape":
                event.stop()
                self._drafts[self._draft_key] = self.input.text
                self.dismiss(None)
            return
        event.stop()
        if event.character in ("y", "Y"):
            self._finish()
        elif event.character in ("n", "N", "q") or event.key == "escape":
            self.is_asking = False
            self.input.read_only = False
            self.set_focus(self.input)
            self._show_foot()
