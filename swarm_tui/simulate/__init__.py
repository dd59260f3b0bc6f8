"""Simulated sweeps of any size. A separate process writes them into a sweep folder."""
