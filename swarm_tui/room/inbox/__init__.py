"""Screen 5: the inbox."""
