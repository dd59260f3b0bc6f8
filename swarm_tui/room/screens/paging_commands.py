"""What can be done in a transcript or a file: follow, search, filter, choose whose entries, show more or less."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from swarm_tui.room.actions import Action
from swarm_tui.room.screens.dialog import Choosable, PickScreen
from swarm_tui.room.screens.services import ScreenServices
from swarm_tui.room.widgets.transcript import TranscriptLines, roles_word
from swarm_tui.transcripts.entries import Role
from swarm_tui.transcripts.filters import ALL_ROLES, EntryFilter

DENSITY_MESSAGES: Final = ("one line an event", "messages whole, results folded", "everything whole")


class PagingCommands:
    """The actions on the transcript or file that is shown, and the filter that applies to both."""

    def __init__(self, screen: ScreenServices, shown: Callable[[], TranscriptLines | None]) -> None:
        self._screen = screen
        self._shown = shown
        self._roles = ALL_ROLES
        self.words = ""
        self.is_errors_only = False

    def actions(self) -> tuple[Action, ...]:
        why_not = self.why_not
        return (
            Action("agent.next_error", ("e",), "errors", "To the next error",
                   partial(self.find_error, is_backwards=False), why_not),
            Action("agent.previous_error", ("E",), "", "To the previous error",
                   partial(self.find_error, is_backwards=True), why_not),
            Action("agent.follow", ("F",), "follow", "Follow the end, or stay here", self.switch_following, why_not),
            Action("agent.next_match", ("n",), "", "To the next match, among everything",
                   partial(self.find_match, is_backwards=False), why_not),
            Action("agent.previous_match", ("N",), "", "To the previous match, among everything",
                   partial(self.find_match, is_backwards=True), why_not),
            Action("agent.more", ("+", "="), "", "Show more of each entry", partial(self.change_density, 1), why_not),
            Action("agent.less", ("-",), "", "Show less: one line an event", partial(self.change_density, -1), why_not),
            Action("agent.roles", ("f",), "roles", "Choose whose entries are shown: user, agent, calls, results ...",
                   self.choose_roles, why_not),
            Action("agent.errors_only", ("!",), "", "Only entries with errors; again: all", self.switch_errors_only,
                   why_not),
        )  # fmt: skip

    def why_not(self) -> str:
        return "" if self._shown() is not None else "that is for the transcript: t brings it"

    def _pages(self) -> TranscriptLines:
        pages = self._shown()
        assert pages is not None, "its actions are possible only while a transcript or a file is shown"
        return pages

    def draw_title(self, title: str) -> None:
        """Show in the border which part of the lines is shown."""
        pages = self._pages()
        pager = pages.pager
        if pager.matches is not None:
            title += f" · {pager.matches.count:,} match" + (" so far" if pager.is_searching else "")
            title += f" /{self.words}" if self.words else ""
            title += " errors only" if self.is_errors_only else ""
        title += f" · {roles_word(self._roles)}" if self._roles != ALL_ROLES else ""
        if pages.is_finding:
            mode = "searching …"
        elif pager.is_following:
            mode = "following"
        else:
            mode = f"paused · +{pager.unseen} new" if pager.unseen else "paused"
        pages.title(title, f"{mode} · {pager.percent()} %")

    def switch_following(self) -> None:
        self._pages().toggle_follow()

    def find_error(self, *, is_backwards: bool) -> None:
        self._pages().find_error(is_backwards=is_backwards)

    def find_match(self, *, is_backwards: bool) -> None:
        """Go to the next match among all entries, so that what surrounds it can be read."""
        pages = self._pages()
        words = (self.words or pages.words).removeprefix("!")
        if not words:
            self._screen.show_message("/ filters first, then n and N go from match to match")
            return
        if self.words:
            self.set_words("")
        pages.find(words, is_backwards)

    def change_density(self, step: int) -> None:
        self._screen.show_message(DENSITY_MESSAGES[self._pages().set_density(step)])

    def choose_roles(self) -> None:
        entries = [Choosable(role.value, role.value or "text", is_on=role in self._roles) for role in Role]

        def change(chosen: tuple[str, ...] | None) -> None:
            if chosen is not None:
                self._roles = frozenset(Role(value) for value in chosen) or ALL_ROLES
                self._apply()

        self._screen.room.push_screen(PickScreen("Show", entries, is_many=True), change)

    def switch_errors_only(self) -> None:
        self.is_errors_only = not self.is_errors_only
        self._apply()

    def set_words(self, words: str) -> None:
        self.words = words
        self._pages().words = "" if words.startswith("!") else words
        self._apply()

    def _apply(self) -> None:
        words = self.words.removeprefix("!")
        is_inverse = self.words.startswith("!") and bool(words)
        self._pages().show_choice(EntryFilter(words, is_inverse, self._roles, self.is_errors_only))
