"""Simulated sweeps of any size, written into a sweep folder by a process of their own."""
