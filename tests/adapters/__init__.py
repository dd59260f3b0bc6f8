"""The adapters, each against the real program."""
