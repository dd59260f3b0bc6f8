"""Check this machine and other hosts for missing or outdated programs."""
