"""The room: the screens in which a person watches a sweep, steps in, and in the end decides.

How a key is added: an `Action` in the table of its screen (`own_actions`) or of the controller that carries it out
(`actions` of a class in `screens/*_commands.py`), with a handler and a reason why not. Footer, help, palette, the page
of keys (tutorial/keys.md, written by the tests with SWARM_WRITE_SCENES=1) and the config's key names come from it.

How a screen is added: its entry in `actions.SCREENS`, and a class in `screens/`, a `RoomScreen` with that `NAME`, whose
`compose_body` returns its panels (`widgets.lines.Lines` and its like), whose `own_actions` returns its table, and whose
`show_change` updates the panels from the store. What a line looks like is a pure function in `draw/`.

What changes in the journal comes to the screen that is up as one `store.SweepChanged`, ten times a second at most.
"""

import os

# Textual reads these while it is imported, and everything here is imported after this.
# A key after a frame waits for the next one: at 60 frames a second up to 17 ms, at 120 half of that (textual #6333).
os.environ.setdefault("TEXTUAL_FPS", "120")
os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
# Exported by a shell, these would fix the size that Textual believes in, whatever the terminal does.
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)
