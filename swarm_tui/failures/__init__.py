"""Why tests fail: causes, patterns and alerts."""
