"""The demo: a packaged sample project, recorded work of agents on it, and the sweep that replays the work."""
