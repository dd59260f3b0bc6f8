"""Screen 3: the merge view."""
