"""Claude Code from outside: the files in which it says what it does, what its work costs, and our hook in it."""
