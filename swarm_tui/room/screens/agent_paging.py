"""What can be done in a transcript or a file: follow, search, filter, choose whose entries, show more or less."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from swarm_tui.room.screens.base import RoomScreen
from swarm_tui.room.screens.dialog import Choosable, PickScreen
from swarm_tui.room.widgets.transcript import TranscriptLines, roles_word
from swarm_tui.transcripts.entries import Role
from swarm_tui.transcripts.filters import ALL_ROLES, EntryFilter


class PagingScreen(RoomScreen):
    """A screen with a transcript or a file on it."""

    can_filter: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self._roles = ALL_ROLES
        self._is_errors_only = False

    @property
    def pages(self) -> TranscriptLines:
        """The transcript or the file, whichever is up."""
        raise NotImplementedError

    @property
    def is_paged(self) -> bool:
        """Whether one of them is up."""
        raise NotImplementedError

    def pages_title(self) -> str:
        """Return what the border calls it."""
        raise NotImplementedError

    def _why_not_paged(self) -> str:
        return "" if self.is_paged else "that is for the transcript: t brings it"

    def draw_pages_title(self) -> None:
        """Say in the panel's border what is shown of how much."""
        pages = self.pages
        pager = pages.pager
        title = self.pages_title()
        if pager.matches is not None:
            title += f" · {pager.matches.count:,} match" + (" so far" if pager.is_searching else "")
            title += f" /{self.filter_words}" if self.filter_words else ""
            title += " errors only" if self._is_errors_only else ""
        title += f" · {roles_word(self._roles)}" if self._roles != ALL_ROLES else ""
        if pages.is_finding:
            mode = "searching …"
        elif pager.is_following:
            mode = "following"
        else:
            mode = f"paused · +{pager.unseen} new" if pager.unseen else "paused"
        pages.title(title, f"{mode} · {pager.percent()} %")

    why_not_follow = why_not_next_error = why_not_previous_error = _why_not_paged
    why_not_next_match = why_not_previous_match = why_not_roles = why_not_errors_only = _why_not_paged
    why_not_more = why_not_less = why_not_filter = _why_not_paged

    def do_follow(self) -> None:
        self.pages.toggle_follow()

    def do_next_error(self) -> None:
        self.pages.find_error(is_backwards=False)

    def do_previous_error(self) -> None:
        self.pages.find_error(is_backwards=True)

    def do_next_match(self) -> None:
        self._to_match(is_backwards=False)

    def do_previous_match(self) -> None:
        self._to_match(is_backwards=True)

    def _to_match(self, is_backwards: bool) -> None:
        """Go to the next match within everything: what stands around it is what one looks for."""
        words = (self.filter_words or self.pages.words).removeprefix("!")
        if not words:
            self.say("/ filters first, then n and N go from match to match")
            return
        if self.filter_words:
            self.set_filter("")
        self.pages.find(words, is_backwards)

    def do_more(self) -> None:
        self._say_density(1)

    def do_less(self) -> None:
        self._say_density(-1)

    def _say_density(self, step: int) -> None:
        density = self.pages.set_density(step)
        self.say(("one line an event", "messages whole, results folded", "everything whole")[density])

    def do_roles(self) -> None:
        entries = [Choosable(role.value, role.value or "text", is_on=role in self._roles) for role in Role]

        def picked(chosen: tuple[str, ...] | None) -> None:
            if chosen is not None:
                self._roles = frozenset(Role(value) for value in chosen) or ALL_ROLES
                self._choose()

        self.app.push_screen(PickScreen("Show", entries, is_many=True), picked)

    def do_errors_only(self) -> None:
        self._is_errors_only = not self._is_errors_only
        self._choose()

    def set_filter(self, words: str) -> None:
        self.filter_words = words
        self.pages.words = words.removeprefix("!") if not words.startswith("!") else ""
        self._choose()

    def remember_place(self) -> Callable[[], None]:
        """Return what returns to the line that is under the cursor now."""
        return self.pages.remember_place() if self.is_paged else super().remember_place()

    def _choose(self) -> None:
        words = self.filter_words.removeprefix("!")
        is_inverse = self.filter_words.startswith("!") and bool(words)
        self.pages.show_choice(EntryFilter(words, is_inverse, self._roles, self._is_errors_only))
        self.draw_pages_title()
