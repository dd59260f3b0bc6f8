"""The room: the screens in which a person watches a sweep, steps in, and in the end decides.

How a screen is added: (1) its entry in `actions.SCREENS`; (2) its table of actions in `actions.TABLES`, under
the same name; (3) a class in `screens/`, a `RoomScreen` with that `NAME`, whose `compose_body` gives its panels
(`widgets.lines.Lines` and its like), whose `show_changes` takes in what the store says changed, and which has a
method `do_x` for each action `name.x`, and `why_not_x` where it is not always possible. What a line looks like
is a pure function in `draw/`. Keys, footer, help, palette and the config's key names come from the table.
"""

import os

# Textual reads these while it is imported, and everything here is imported after this.
# A key after a frame waits for the next one: at 60 frames a second up to 17 ms, at 120 half of that (textual #6333).
os.environ.setdefault("TEXTUAL_FPS", "120")
os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
# Exported by a shell, these would fix the size that Textual believes in, whatever the terminal does.
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)
