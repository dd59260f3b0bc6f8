"""Text box for a message or an answer to agents. It stays open until the text is accepted or Esc is pressed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import TextArea

from swarm_tui.journal.record import TestRecord
from swarm_tui.model.formatting import counted
from swarm_tui.model.questions import Question, QuestionKind
from swarm_tui.model.text import fit_to_terminal, plain, plain_lines
from swarm_tui.questions.inbox import NOT_ALL
from swarm_tui.room.draw.glyphs import glyph_of, role_of, word_of
from swarm_tui.room.draw.spans import Line, Span, cut_line, wrap_text
from swarm_tui.room.inbox.draw import draw_question
from swarm_tui.room.widgets.lines import TextLines

RECEIVERS_SHOWN = 8
INPUT_LINES = 7

Drafts = MutableMapping[str, str]
"""Unsent texts by the tests of their receivers."""
Deliver = Callable[[str], Awaitable[str]]
"""Sends a text. Returns why it was not accepted, or ""."""


class MessageInput(TextArea):
    """The text. Enter sends it; ctrl+j starts a new line, and so does Enter in pasted text."""

    async def _on_key(self, event: events.Key) -> None:
        if isinstance(self.screen, MessageScreen) and self.screen.take_key(event):
            event.stop()
            event.prevent_default()
            return
        if event.key == "ctrl+j":
            event.stop()
            event.prevent_default()
            self.insert("\n")
            return
        await super()._on_key(event)


class MessageScreen(ModalScreen[bool]):
    """Returns whether the text was accepted. Enter sends it to one agent; for several agents Ctrl+s confirms."""

    AUTO_FOCUS = "MessageInput"

    def __init__(
        self,
        receivers: Sequence[TestRecord],
        drafts: Drafts,
        deliver: Deliver,
        *,
        title: str = "",
        question: Question | None = None,
        left_out: int = 0,
        text: str = "",
    ) -> None:
        """`question` is the question to answer. Without it, the first receiver's question is shown."""
        super().__init__()
        self.receivers = list(receivers)
        self.left_out = left_out
        self.is_confirming = False
        self.is_sending = False
        self.is_accepted = False
        """Whether the text was accepted. The box is then still open if the user has typed since."""
        self.problem = ""
        """Why the text was not accepted."""
        self.about = TextLines()
        self._question = question
        self._title = title or (
            f"Message to {counted(len(self.receivers), 'agent')}" if question is None else "Answer to 1 agent"
        )
        self._deliver = deliver
        self._drafts = drafts
        self._draft_key = " ".join((title, *(record.test for record in receivers)))
        draft = text or drafts.get(self._draft_key, "")
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

    def on_click(self) -> None:
        self.set_focus(self.input)

    # Keys.

    def take_key(self, event: events.Key) -> bool:
        """Handle a key that is not text. Return whether it was handled."""
        if event.key == "enter":
            self.send()
        elif event.key == "ctrl+s":
            self.send(is_confirmed=True)
        elif event.key in ("pageup", "pagedown"):
            page = max(1, self.about.visible_rows - 1)
            self.about.move(page if event.key == "pagedown" else -page)
        elif event.key == "escape":
            self._escape()
        else:
            self._write_on()
            return False
        return True

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            event.stop()
            self._escape()

    def _escape(self) -> None:
        if self.is_confirming:
            self._write_on()
            return
        if not self.is_accepted:
            self._drafts[self._draft_key] = self.input.text
        self.dismiss(self.is_accepted)

    def _write_on(self) -> None:
        if self.is_confirming or self.problem:
            self.is_confirming, self.problem = False, ""
            self._draw()

    # Sending.

    def send(self, *, is_confirmed: bool = False) -> None:
        """Send the text to one agent. For several agents, ask first."""
        if self.is_sending:
            return
        if self.is_accepted:
            self.dismiss(True)
        elif not self.input.text.strip():
            self._refuse("the text is empty")
        elif len(self.receivers) > 1 and not (is_confirmed and self.is_confirming):
            self.is_confirming, self.problem = True, ""
            self._draw()
        else:
            self.is_confirming, self.problem, self.is_sending = False, "", True
            self._draw()
            # The app runs it, so closing the box does not cancel it.
            self.app.run_worker(self._send(fit_to_terminal(self.input.text)), group="message")

    async def _send(self, text: str) -> None:
        typed = self.input.text
        problem = await self._deliver(text)
        self.is_sending = False
        if not problem:
            self._drafts.pop(self._draft_key, None)
        if not self.is_attached:
            return
        if problem:
            self._refuse(problem)
        elif self.input.text == typed:
            self.dismiss(True)
        else:
            # The user is still typing, and the next keys must not become commands of the room.
            self.is_accepted = True
            self._draw()

    def _refuse(self, problem: str) -> None:
        self.problem = plain(problem, 500)
        self._draw()

    # Drawing.

    def _draw(self) -> None:
        width, height = min(100, self.app.size.width), self.app.size.height
        self.query_one("#message").styles.width = width
        self.query_one("#message").styles.height = "auto"
        lines, foot_lines = self._about(max(8, width - 4)), self._foot(max(8, width - 4))
        # On a small terminal the text and the keys to send it come first.
        foot = min(len(foot_lines), 3 if height >= 16 else 1) + 2
        text = INPUT_LINES if height >= 16 else max(3, min(INPUT_LINES, height - 3))
        left = height - foot - text
        self.about.styles.height = max(0, min(len(lines) + 2, left))
        self.about.display = left >= 3
        self.about.title(self._title, "PgDn for more" if len(lines) + 2 > left else "")
        self.about.show(lines)
        self.input.styles.height = text
        self.foot.styles.height = foot
        self.foot.show(foot_lines)

    def _about(self, width: int) -> list[Line]:
        """Return lines about the receivers and their questions."""
        lines: list[Line] = []
        for record in self.receivers[:RECEIVERS_SHOWN]:
            name = plain(record.test, 300)
            lines.append(
                cut_line([Span(f"{glyph_of(record)} {word_of(record):9} ", role_of(record)), Span(name)], width)
            )
        if len(self.receivers) > RECEIVERS_SHOWN:
            lines.append([Span(f"… and {len(self.receivers) - RECEIVERS_SHOWN} more", "dim")])
        if self.left_out:
            lines.append([Span(f"{self.left_out} of the marked ones have no running agent", "dim")])
        asking = [record for record in self.receivers if record.question]
        if self._question is not None:
            lines += [[Span("question:", "waiting")], *draw_question(self._question, width, are_keys=False)]
            lines += [[Span(row, "warning")] for row in wrap_text(NOT_ALL, width)] if self._question.is_inexact else []
            if not self._question.parts:
                words = "yes, or no and why" if self._question.kind is QuestionKind.PLAN else "yes, no, or why not"
                lines.append([Span(f"answer: {words}", "dim")])
        elif asking:
            head = "question:" if len(self.receivers) == 1 else "question of the first waiting agent:"
            question = plain_lines(asking[0].question).strip()
            lines += [[Span(head, "waiting")], *([Span(f"  {text}")] for text in wrap_text(question, width - 2))]
        elif len(self.receivers) == 1 and self.receivers[0].is_finished:
            lines += [[Span(row, "dim")] for row in wrap_text(plain(self.receivers[0].reason, 1_000), width) if row]
        return lines

    def _foot(self, width: int) -> list[Line]:
        if self.is_sending:
            return [[Span("sending …", "pending"), Span("   Esc", "key"), Span(" closes; sending continues", "dim")]]
        if self.is_accepted:
            words = " closes; the text was accepted without what you typed since"
            return [[Span("accepted", "good"), Span("   Esc", "key"), Span(words, "dim")]]
        if self.is_confirming:
            text = fit_to_terminal(self.input.text)
            size = f"{counted(text.count(chr(10)) + 1, 'line')}, {counted(len(text), 'character')}"
            receivers = counted(len(self.receivers), "agent")
            keys = [("Ctrl+s", "send"), ("Esc", "or any letter continues writing")]
            return [[Span(f"Send {size}, to {receivers}?", "strong")], _keys(keys)]
        sends = "send" if len(self.receivers) == 1 else "continue"
        keys = [("Enter", sends), ("Ctrl+j", "new line"), ("Esc", "close and keep the text")]
        refused: list[Line] = [[Span(row, "warning")] for row in wrap_text(self.problem, width, 2) if row]
        return [*refused, _keys(keys)]


def _keys(keys: Sequence[tuple[str, str]]) -> Line:
    return [part for key, word in keys for part in (Span(key, "key"), Span(f" {word}   ", "dim"))]
