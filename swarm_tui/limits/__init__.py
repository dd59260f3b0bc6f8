"""API errors, the throttle, and stuck agents."""
