"""The command line: one module a command, arguments and words only."""
