"""The demo: a packaged sample project, recorded work of agents on it, and a sweep that replays the work."""
