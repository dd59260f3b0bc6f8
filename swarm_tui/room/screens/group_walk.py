"""Answers groups one after the other: each is shown with its count, answered, and followed to its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual import events

from swarm_tui.errors import SwarmError
from swarm_tui.insight.inbox import ItemGroup
from swarm_tui.model.asks import NO, YES
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.room.draw.inbox import draw_different, draw_options
from swarm_tui.room.draw.parts import Line, Part, cut_line, wrap_text
from swarm_tui.room.screens.dialog import Dialog, key_of
from swarm_tui.room.store import Store

POLL: Final = 0.1
TEXT_LINES: Final = 8
DIFFERENT: Final = 6


class GroupWalkScreen(Dialog[str]):
    """Shows a group, takes one answer for all of its members, and goes on to the next; returns what was done."""

    WIDTH = 96

    def __init__(self, groups: Sequence[ItemGroup], store: Store) -> None:
        super().__init__()
        self._groups = list(groups)
        self._store = store
        self._number = 0
        self._request = ""
        """The request that is under way."""
        self._told: list[Line] = []
        self._answered = 0
        self._is_over = False

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(POLL, self._follow)

    @property
    def _group(self) -> ItemGroup:
        return self._groups[self._number]

    def draw(self) -> None:
        width = min(self.WIDTH, self.app.size.width) - 4
        lines = [*self._told, *([()] if self._told else []), *(self._end() if self._is_over else self._question(width))]
        self.resize_panel(width + 4, len(lines))
        self.panel.title(f"Answer all · {self._number + 1} of {len(self._groups)}", "Esc ends here")
        self.panel.show(lines)
        self.panel.scroll_rows(0)

    def _question(self, width: int) -> list[Line]:
        group = self._group
        item, number = group.answerable[0], len(group.answerable)
        head = counted(number, "agent")
        head += f" of {len(group.items):,}, the others need their terminals" if number < len(group.items) else ""
        lines: list[Line] = [
            cut_line([Part(head, "strong"), Part(f"  {group.kind.value}: ", "waiting"), Part(group.title)], width),
        ]
        if plain(item.text, 300) != group.title:
            lines += [[Part(line)] for line in wrap_text(plain_lines(item.text), width, TEXT_LINES)]
        if len(group.different) > 1:
            lines += [(), *draw_different(group, width, DIFFERENT)]
        if self._request:
            return [*lines, (), [Part("one agent first, then the others …", "pending")]]
        if item.options == (YES, NO):
            lines += [(), [Part("y", "key"), Part(" yes   "), Part("n", "key"), Part(" no")]]
        else:
            lines += [(), *draw_options(item.options, width)]
        return [*lines, [Part("s", "key"), Part(" skip it   ", "dim"), Part("Esc", "key"), Part(" end here", "dim")]]

    def _end(self) -> list[Line]:
        return [[Part("Enter", "key"), Part(" goes on", "dim")]]

    def on_key(self, event: events.Key) -> None:
        event.stop()
        key = key_of(event)
        if key in ("escape", "q"):
            self._finish()
        elif self._is_over:
            if key == "enter":
                self._finish()
        elif self._request:
            return
        elif key == "s":
            self._go_on()
        else:
            self._answer(self._text_for(key))

    def _text_for(self, key: str) -> str:
        options = self._group.answerable[0].options
        if options == (YES, NO) and key in ("y", "n"):
            return YES if key == "y" else NO
        return key if key.isascii() and key.isdigit() and 1 <= int(key) <= len(options) else ""

    def _answer(self, text: str) -> None:
        problem = self._store.why_no_requests() if text else "that is none of the answers"
        if problem:
            self.panel.title(f"Answer all · {self._number + 1} of {len(self._groups)}", problem)
            return
        from swarm_tui.model.requests import RequestKind

        try:
            items = [item.id for item in self._group.answerable]
            self._request = self._store.send_request(RequestKind.ANSWER, text=text, items=items).id
        except SwarmError as error:
            self._tell(str(error), is_done=False)
            return
        self.draw()

    def _follow(self) -> None:
        """Go on when the engine has answered, or will not any more."""
        if not self._request:
            return
        answer = self._store.state.answers.get(self._request)
        if answer is None and not self._store.why_no_requests():
            return
        self._request = ""
        if answer is None:
            self._tell(f"no answer: {self._store.why_no_requests()}", is_done=False)
            return
        number = len(self._group.answerable)
        done = f"{number} of {number} answered" if answer.is_done else answer.detail
        self._answered += number if answer.is_done else 0
        self._tell(f"{self._group.title}: {done}", is_done=answer.is_done)

    def _tell(self, text: str, *, is_done: bool) -> None:
        """Show what became of a group; where something went wrong it stays until it is read."""
        width = min(self.WIDTH, self.app.size.width) - 4
        self._told = [[Part(line, "good" if is_done else "error")] for line in wrap_text(plain(text, 900), width, 8)]
        if is_done:
            self._go_on()
        else:
            self._told.append([Part("6 tells more, agent by agent", "dim")])
            self._is_over = True
            self.draw()

    def _go_on(self) -> None:
        self._number += 1
        if self._number >= len(self._groups):
            self._number -= 1
            self._finish()
        else:
            self.draw()

    def _finish(self) -> None:
        self.dismiss(f"{counted(self._answered, 'agent')} answered" if self._answered else "")
