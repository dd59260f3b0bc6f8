"""Screen 8, Hosts: the hosts of agents, and the tests on one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from swarm_tui.hosts.events import made_hosts
from swarm_tui.hosts.lines import HostLine, free_slots_reason
from swarm_tui.model.formatting import counted
from swarm_tui.model.results import State
from swarm_tui.room.actions import action
from swarm_tui.room.draw.hosts import draw_host_detail, draw_host_row, name_width
from swarm_tui.room.draw.spans import Line
from swarm_tui.room.engine_requests import choose_request
from swarm_tui.room.patterns import ListDetailScreen


class HostsScreen(ListDetailScreen[HostLine]):
    """A line for each host: agents, free slots, load, age of the last report."""

    NAME = "hosts"
    TITLE_WORD = "hosts"
    SIDE_BY_SIDE: ClassVar[int] = 150
    WHY_NO_ENTRY = "no host under the cursor"
    WHEN_EMPTY = "No agent was launched yet. To use other machines: `swarm-tui run --host NAME`"

    def why_no_launch(self) -> str:
        return self.why_no_entry() or ("" if self.current_tests() else "no agent has run on this host yet")

    def find_entries(self) -> Sequence[HostLine]:
        return self.store.hosts()

    def key_of(self, entry: HostLine) -> str:
        return entry.name

    def draw_row(self, entry: HostLine, width: int) -> Line:
        return draw_host_row(entry, name_width(self.entries, width), width, self.store.clock())

    def detail_title(self, entry: HostLine) -> str:
        return counted(len(entry.tests), "test")

    def draw_detail(self, entry: HostLine, width: int) -> list[Line]:
        known = (*self.store.opened.spec.access, *made_hosts(self.store.state.hosts))
        access = next((each for each in known if each.name == entry.name), None)
        records = self.store.records_of(entry.tests)
        return draw_host_detail(entry, access, records, width, self.store.clock())

    def about_list(self) -> str:
        state = self.store.state
        queued = state.counts[State.QUEUED.value]
        return free_slots_reason(self.store.hosts(), state.slots, queued, self.store.clock())

    def name_to_copy(self) -> str:
        host = self.current()
        return host.name if host is not None else ""

    @action("enter", "hosts.open", "show tests", "Show the tests of this host in the grid",
            lambda screen: screen.why_no_launch(), is_listed=False, rank=0)  # fmt: skip
    def show_tests(self) -> None:
        host = self.current()
        if host is not None:
            self.room.show_only(host.tests, f"on {host.name}")

    @action("x", "hosts.act", "act on all", "Stop, retry, hold or release all tests of this host",
            lambda screen: screen.why_no_launch(), is_of_now=True)  # fmt: skip
    def act(self) -> None:
        choose_request(self)

    @action("b", "hosts.group", "group", "Show all tests in the grid, grouped by host")
    def show_by_host(self) -> None:
        self.room.remember_for_project(group="host")
        self.room.view.change(group="host")
        self.room.open_screen("sweep")
