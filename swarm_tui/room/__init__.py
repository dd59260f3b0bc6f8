"""The terminal interface ("room") of a sweep: watch agents, answer questions, review fixes.

To add a key, add a method with `@action` (`actions.py`) to its screen: keys, id, label, description, and a function
that returns why the action is unavailable. An action of several screens is a function that takes the screen
(`external.py`, `agent/actions.py`). The footer, the help, the palette, the page of keys (docs/keys.md, written by
the tests with SWARM_WRITE_SCENES=1) and the key names in the config file are generated from these actions.

What a screen works on is an object without Textual that is tested without a terminal: `SweepView` (`grid/session.py`),
`InboxSession` (`inbox/session.py`) and `ReviewSession` (`fixes/session.py`).

To add a screen, add an entry to `actions.SCREENS` and a subclass of `RoomScreen` with that `NAME`. Its `compose_body`
returns the panels (subclasses of `widgets.lines.Lines`), and `show_change` updates the panels from the store. Pure
functions in `draw/` and `*/draw.py` draw the lines.

Imports inside functions are marked `# Late:` with the CPU time that they would add to the start, which takes 360 ms on
the same machine.

The current screen receives changes of the journal as one `store.SweepChanged`, at most ten times a second.
"""

import os

# Textual reads these when it is imported, so they are set before every other import of this package. A key pressed
# after a frame waits for the next frame: up to 17 ms at 60 frames a second, half of that at 120 (textual #6333).
os.environ.setdefault("TEXTUAL_FPS", "120")
os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
# If a shell exports these, Textual uses them instead of the terminal's real size.
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)
