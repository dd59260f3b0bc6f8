"""The sweep folder: the append-only journal, its readers and the fold that makes a state of it."""
