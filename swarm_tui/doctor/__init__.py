"""The doctor: what this machine has, what swarm-tui needs, and how to get the difference."""
