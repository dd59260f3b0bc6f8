"""swarm-tui: one coding agent on every test, one room to watch them, one verdict for each fix."""

__version__ = "0.2.0"
