"""The one table of everything a person can do: keys, footer, help, palette and the docs' key page are made from it.

An action `sweep.zoom_in` is carried out by the method `do_zoom_in` of the screen `sweep`; when the screen
also has `why_not_zoom_in`, that gives the reason why it is not possible now, or "". Actions of scope `room`
work on every screen; a screen's own action takes a key away from them.

Keys are written as people read them ("+", "G", "ctrl+d", "enter"); `keymap.py` lets the config file change them.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Action(NamedTuple):
    """One thing a person can do."""

    id: str
    keys: tuple[str, ...]
    label: str
    """One or two words for the footer; "" keeps it out of there."""
    description: str
    is_listed: bool = True
    """Whether the palette offers it; moving the cursor by palette helps nobody."""
    rank: int = 5
    """Its place in the footer, where the last ones fall away when the line is short."""

    @property
    def scope(self) -> str:
        return self.id.partition(".")[0]

    @property
    def method(self) -> str:
        """The part of the id that names the methods `do_...` and `why_not_...`."""
        return self.id.partition(".")[2]


class ScreenEntry(NamedTuple):
    """One of the room's screens: its number key, its name (the scope of its actions) and where its class is."""

    key: str
    name: str
    title: str
    place: str
    """`module:Class`, imported when the screen is opened first."""


SCREENS: Final = (
    ScreenEntry("1", "sweep", "Sweep", "swarm_tui.room.screens.sweep:SweepScreen"),
    ScreenEntry("2", "agent", "Agent", "swarm_tui.room.screens.agent:AgentScreen"),
    ScreenEntry("3", "fixes", "Fixes", "swarm_tui.room.screens.fixes:FixesScreen"),
    ScreenEntry("4", "patterns", "Patterns", "swarm_tui.room.screens.patterns:PatternsScreen"),
    ScreenEntry("5", "blocked", "Blocked", "swarm_tui.room.screens.blocked:BlockedScreen"),
    ScreenEntry("6", "log", "Log", "swarm_tui.room.screens.log:LogScreen"),
    ScreenEntry("7", "tail", "Tail", "swarm_tui.room.screens.tail:TailScreen"),
)

OPENING: Final = tuple(
    Action(f"room.open_{entry.name}", (entry.key,), "", f"Screen {entry.key}: {entry.title}") for entry in SCREENS
)

MOVING: Final = (
    Action("room.up", ("up", "k"), "", "Up", False),
    Action("room.down", ("down", "j"), "", "Down", False),
    Action("room.left", ("left", "h"), "", "Left", False),
    Action("room.right", ("right", "l"), "", "Right", False),
    Action("room.page_up", ("pageup",), "", "A page up", False),
    Action("room.page_down", ("pagedown",), "", "A page down", False),
    Action("room.half_up", ("ctrl+u",), "", "Half a page up", False),
    Action("room.half_down", ("ctrl+d",), "", "Half a page down", False),
    Action("room.top", ("g", "home"), "", "To the top", False),
    Action("room.bottom", ("G", "end"), "", "To the bottom", False),
    Action("room.next_panel", ("tab",), "", "Next panel", False),
    Action("room.previous_panel", ("shift+tab",), "", "Previous panel", False),
)

EVERYWHERE: Final = (
    *OPENING,
    *MOVING,
    Action("room.attach", ("a",), "attach", "Attach to the agent's terminal; the room waits behind it", rank=10),
    Action("room.transcript", ("t",), "transcript", "The agent's transcript, following", rank=11),
    Action("room.message", ("m",), "message", "Write to this agent, or to all marked ones", rank=12),
    Action("room.interact", ("i",), "", "Work in the agent's pane in place; Ctrl+\\ leaves it"),
    Action("room.filter", ("/",), "filter", "Filter as you type; `!word` shows what does not match", rank=13),
    Action("room.palette", (":", "ctrl+p"), "", "Everything by name, and commands such as `slots 24`", False),
    Action("room.copy", ("Y",), "", "Copy the name under the cursor"),
    Action("room.undo", ("z",), "", "Undo the last change of marks"),
    Action("room.redo", ("Z",), "", "Redo it"),
    Action("room.theme", (), "", "Choose a theme; the choice is remembered"),
    Action("room.back", ("q", "escape"), "", "Back; at home, leave the room (the agents go on)"),
    Action("room.leave", (), "", "Leave the room; the agents go on"),
    Action("room.help", ("?",), "keys", "The keys of this screen, searchable"),
)

# What is done to tests is the same on every screen that has tests under its cursor.
FEWER_SLOTS: Final = Action("sweep.fewer_slots", ("<",), "", "One slot less: fewer agents at once")
MORE_SLOTS: Final = Action("sweep.more_slots", (">",), "", "One slot more: more agents at once")

SWEEP: Final = (
    Action("sweep.open", ("enter",), "open", "Open the test under the cursor", False, 0),
    Action("sweep.act", ("x",), "act", "Stop, retry, hold or release what is marked, or this test", rank=15),
    Action("sweep.wanted", ("w",), "wants you", "To who wants you: waiting, then blocked, then others", rank=14),
    Action("sweep.mark", ("space",), "mark", "Mark or unmark the test under the cursor", rank=20),
    Action("sweep.zoom_in", ("+", "="), "zoom", "Larger: dots, chips, rows", rank=21),
    Action("sweep.zoom_out", ("-",), "", "Smaller: rows, chips, dots"),
    Action("sweep.group", ("b",), "group", "Group by file, state, result, cause, host, or not at all", rank=22),
    Action("sweep.sort", ("s",), "sort", "Sort by file, state, need, duration, cost or name", rank=23),
    Action("sweep.states", ("f",), "states", "Show only the states you choose", rank=24),
    Action("sweep.failed_only", ("!",), "", "Show only what failed or is unresolved; again: all"),
    Action("sweep.next_group", ("}",), "", "To the next group", False),
    Action("sweep.previous_group", ("{",), "", "To the previous group", False),
    Action("sweep.mark_range", ("v",), "", "Mark a range, from here to where you move; again: end it"),
    Action("sweep.mark_all", ("*",), "", "Mark all tests that are shown; again: none"),
    Action("sweep.side", ("p",), "", "Show or hide the panel about the test under the cursor"),
    FEWER_SLOTS,
    MORE_SLOTS,
    Action("sweep.hold_queue", (), "", "Hold the queue: nothing further is launched"),
    Action("sweep.release_queue", (), "", "Release the queue"),
    Action("sweep.stop_sweep", (), "", "Stop the sweep: its engine ends, what was harvested stays"),
    Action("sweep.resume", ("R",), "", "Resume the sweep: start an engine that goes on with it"),
)

FIXES: Final = (
    Action("fixes.keep", ("y",), "keep", "Keep this fix, and go to the next open one"),
    Action("fixes.revert", ("n",), "revert", "Revert this fix, and go to the next open one"),
    Action("fixes.later", ("l",), "later", "Decide later, and go to the next open one"),
    Action("fixes.clear", ("u",), "", "Take back the verdict on this fix"),
    Action("fixes.undo", ("z",), "undo", "Undo your last verdict"),
    Action("fixes.redo", ("Z",), "", "Give it again"),
    Action("fixes.evidence", ("e",), "evidence", "Show or hide what speaks for it: message, agents, tests, block"),
    Action("fixes.resolve", ("c",), "conflict", "What can be done when its revert conflicts with a fix that stays"),
    Action("fixes.test", ("T",), "test", "Run the tests that this fix concerns, without it: what goes red?"),
    Action("fixes.test_plan", ("V",), "", "Run all tests of the sweep on what the plan makes of the branch"),
    Action("fixes.apply", ("A",), "apply", "Make the plan so, on a branch of its own; asks first"),
    Action("fixes.report", ("R",), "report", "What the integrator left out, made uniform, and asks about"),
    Action("fixes.net", ("D",), "", "What the plan as a whole does to the base, until you move"),
    Action("fixes.pager", ("o",), "", "Open the commit in git's pager"),
    Action("fixes.tree", ("O",), "", "Open the tree of the plan in your editor, in a scratch folder"),
    Action("fixes.diff_down", ("J",), "diff", "Scroll the diff down", False),
    Action("fixes.diff_up", ("K",), "", "Scroll the diff up", False),
    Action("fixes.next_hunk", ("]",), "", "To the next hunk"),
    Action("fixes.previous_hunk", ("[",), "", "To the previous hunk"),
    Action("fixes.next_match", ("ctrl+n",), "", "To the next fix that matches the filter", False),
    Action("fixes.previous_match", ("ctrl+p",), "", "To the previous one", False),
    Action("fixes.open", ("enter",), "show test", "Show the test whose agent made it, in the grid", False),
)

AGENT: Final = (
    Action("agent.open", ("enter",), "open", "Unfold or fold what is under the cursor, or open the file", False),
    Action("agent.next_tab", ("tab", "right", "l"), "tabs", "Next tab: transcript, screen, tries and files", False),
    Action("agent.previous_tab", ("shift+tab", "left", "h"), "", "Previous tab", False),
    Action("agent.next_error", ("e",), "errors", "To the next error"),
    Action("agent.previous_error", ("E",), "", "To the previous error"),
    Action("agent.follow", ("F",), "follow", "Follow the end, or stay here"),
    Action("agent.next_match", ("n",), "", "To the next match, among everything"),
    Action("agent.previous_match", ("N",), "", "To the previous match, among everything"),
    Action("agent.more", ("+", "="), "", "Show more of each entry"),
    Action("agent.less", ("-",), "", "Show less: one line an event"),
    Action("agent.roles", ("f",), "roles", "Choose whose entries are shown: user, agent, calls, results ..."),
    Action("agent.errors_only", ("!",), "", "Only entries with errors; again: all"),
    Action("agent.next_test", ("}",), "", "To the next test"),
    Action("agent.previous_test", ("{",), "", "To the previous test"),
    Action("agent.act", ("x",), "act", "Stop, retry, hold or release this test"),
)

PATTERNS: Final = (
    Action("patterns.open", ("enter",), "show tests", "Show the tests of this pattern in the grid", False, 0),
    Action("patterns.act", ("x",), "act on all", "Stop, retry, hold or release all tests of this pattern"),
    Action("patterns.mark", ("space",), "mark", "Mark the tests of this pattern in the grid"),
)

BLOCKED: Final = (
    Action("blocked.open", ("enter",), "show", "Show this test in the grid", False, 0),
    Action("blocked.act", ("x",), "act", "Stop, retry, hold or release the tests of this blocker"),
    Action("blocked.copy_list", ("c",), "copy list", "Copy the whole list as Markdown, to hand to someone"),
)

LOG: Final = (
    Action("log.follow", ("F",), "follow", "Follow: stay at the newest line"),
    Action("log.next_error", ("e",), "next error", "To the next error or warning"),
    Action("log.previous_error", ("E",), "", "To the previous error or warning"),
    Action("log.open", ("enter",), "show test", "Show the test of this line in the grid", False, 0),
)

TAIL: Final = (
    Action("tail.open", ("enter",), "transcript", "The transcript of the agent of this line", False),
    Action("tail.follow", ("F",), "follow", "Follow: stay at the newest line"),
    Action("tail.next_error", ("e",), "errors", "To the next error"),
    Action("tail.previous_error", ("E",), "", "To the previous error"),
    Action("tail.errors_only", ("!",), "", "Only lines with errors; again: all"),
)

TABLES: Final[dict[str, tuple[Action, ...]]] = {
    "room": EVERYWHERE,
    "sweep": SWEEP,
    "fixes": FIXES,
    "agent": AGENT,
    "patterns": PATTERNS,
    "blocked": BLOCKED,
    "log": LOG,
    "tail": TAIL,
}
"""Every scope's actions. A new screen adds its entry to SCREENS and its table here."""


def all_actions() -> tuple[Action, ...]:
    """Return every action of the room."""
    return tuple(action for table in TABLES.values() for action in table)


def actions_of(scope: str) -> tuple[Action, ...]:
    """Return what can be done on one screen: its own actions, then those that work everywhere."""
    return (*TABLES.get(scope, ()), *EVERYWHERE)


def keys_of(actions: tuple[Action, ...], remapped: dict[str, tuple[str, ...]]) -> dict[str, Action]:
    """Return the action behind each key; of two that want the same key, the first has it."""
    keys: dict[str, Action] = {}
    for action in actions:
        for key in remapped.get(action.id, action.keys):
            keys.setdefault(key, action)
    return keys


KEY_NAMES: Final = {
    "pageup": "PgUp", "pagedown": "PgDn", "home": "Home", "end": "End", "up": "↑", "down": "↓", "left": "←",
    "right": "→", "enter": "Enter", "escape": "Esc", "tab": "Tab", "shift+tab": "Shift+Tab", "space": "Space",
}  # fmt: skip


def key_name(key: str) -> str:
    """Return a key as it is printed: `PgDn`, `Ctrl+d`, `G`."""
    return KEY_NAMES.get(key) or (f"Ctrl+{key[5:]}" if key.startswith("ctrl+") else key)
