"""Screen 2: one agent."""
