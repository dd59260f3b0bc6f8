"""Tests of the simulated sweeps."""
