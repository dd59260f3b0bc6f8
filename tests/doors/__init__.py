"""The doors, each against the real program."""
