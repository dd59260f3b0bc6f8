"""Start, follow, confine and stop processes."""
