"""The real Claude Code, its model played by a script: no account, no network, every situation on demand."""
