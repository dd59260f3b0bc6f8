"""The room: the screens in which a person watches a sweep, steps in, and in the end decides.

How a screen is added: (1) its entry in `actions.SCREENS`; (2) its table of actions in `actions.TABLES`, under
the same name; (3) a class in `screens/`, a `RoomScreen` with that `NAME`, whose `compose_body` gives its panels
(`widgets.lines.Lines` and its like), whose `show_changes` takes in what the store says changed, and which has a
method `do_x` for each action `name.x`, and `why_not_x` where it is not always possible. What a line looks like
is a pure function in `draw/`. Keys, footer, help, palette and the config's key names come from the table.
"""
