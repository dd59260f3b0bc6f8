"""The engine: one process that launches, follows, pulls, verifies and stops the agents of a sweep."""
