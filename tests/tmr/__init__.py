"""Runs of `mngr tmr`: what the generations of that pipeline left behind, and how it is shown."""
