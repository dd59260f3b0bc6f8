"""Opens runs of `mngr tmr`, which mngr had until July 2026, as sweeps; their folders stay as they are."""
