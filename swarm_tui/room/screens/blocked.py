"""Screen 5: who needs something from outside its test, and what; a list to hand to someone."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_tui.insight.blockers import Blocker, blockers_as_markdown
from swarm_tui.model.formatting import counted
from swarm_tui.room.actions import Action
from swarm_tui.room.draw.blocked import draw_blocker_detail, draw_blocker_row
from swarm_tui.room.draw.parts import Line
from swarm_tui.room.screens.groups import GroupListScreen


class BlockedScreen(GroupListScreen[Blocker]):
    """The blockers, those of the most tests first."""

    NAME = "blocked"
    TITLE_WORD = "blocked"
    WHY_NO_ENTRY = "nothing is blocked here"
    WHEN_EMPTY = "Nothing is blocked. What only a person can get out of the way comes up here."

    def own_actions(self) -> tuple[Action, ...]:
        return (
            Action("blocked.open", ("enter",), "show", "Show this test in the grid", self.show_tests, self.why_no_entry,
                   is_listed=False, rank=0),
            Action("blocked.act", ("x",), "act", "Stop, retry, hold or release the tests of this blocker",
                   self.requests.choose, self.why_no_entry),
            Action("blocked.copy_list", ("c",), "copy list", "Copy the whole list as Markdown, to hand to someone",
                   self.copy_list, lambda: "" if self.entries else "the list is empty"),
        )  # fmt: skip

    def find_entries(self) -> Sequence[Blocker]:
        return self.store.blockers()

    def key_of(self, entry: Blocker) -> str:
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

    def show_tests(self) -> None:
        tests = self.current_tests()
        if len(tests) == 1:
            self.room.show_test(tests[0])
        else:
            self.room.show_only(tests, f"these {len(tests)} blocked")

    def copy_list(self) -> None:
        self.app.copy_to_clipboard(blockers_as_markdown(self.entries, self.store.opened.spec.sweep))
        self.show_message(f"copied as Markdown: {counted(len(self.entries), 'entry', 'entries')}")
