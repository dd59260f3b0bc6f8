"""The tests: they mirror the package, and use the real git, tmux, pytest and mngr."""
