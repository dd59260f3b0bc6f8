"""The engine: one process that launches the agents of a sweep, watches them, harvests them and keeps the journal."""
