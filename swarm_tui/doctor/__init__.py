"""The doctor: finds out whether this machine has what swarm-tui needs, and how to get what is missing."""
