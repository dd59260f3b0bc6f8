"""The demo: a packaged sample project, the records of the work on it, and the sweep that plays them."""
