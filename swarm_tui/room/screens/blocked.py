"""Screen 5: who needs something from outside its test, and what; a list to hand to someone."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_tui.insight.blockers import Blocker, blockers_as_markdown
from swarm_tui.model.formatting import counted
from swarm_tui.room.draw.blocked import draw_blocker_detail, draw_blocker_row
from swarm_tui.room.draw.parts import Line
from swarm_tui.room.screens.groups import GatheredScreen


class BlockedScreen(GatheredScreen[Blocker]):
    """The blockers, those of the most tests first."""

    NAME = "blocked"
    TITLE_WORD = "blocked"
    NOBODY = "nothing is blocked here"
    WHEN_EMPTY = "Nothing is blocked. What only a person can get out of the way comes up here."

    def gather(self) -> Sequence[Blocker]:
        return self.store.blockers()

    def name_of(self, entry: Blocker) -> str:
        return f"{entry.kind} {entry.title}"

    def draw_row(self, entry: Blocker, width: int) -> Line:
        return draw_blocker_row(entry, width)

    def detail_title(self, entry: Blocker) -> str:
        return counted(len(entry.tests), "test")

    def draw_detail(self, entry: Blocker, width: int) -> list[Line]:
        return draw_blocker_detail(entry, width)

    def name_to_copy(self) -> str:
        blocker = self.current()
        return blocker.title if blocker is not None else ""

    def do_open(self) -> None:
        tests = self.current_tests()
        if len(tests) == 1:
            self.room.show_test(tests[0])
        else:
            self.room.show_only(tests, f"these {len(tests)} blocked")

    def why_not_copy_list(self) -> str:
        return "" if self.entries else "the list is empty"

    def do_copy_list(self) -> None:
        self.app.copy_to_clipboard(blockers_as_markdown(self.entries, self.store.opened.spec.sweep))
        self.say(f"copied as Markdown: {counted(len(self.entries), 'entry', 'entries')}")
