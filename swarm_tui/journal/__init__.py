"""The sweep folder: the append-only journal, its readers, and the fold of events into a state."""
