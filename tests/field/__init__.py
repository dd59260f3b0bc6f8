"""Sweeps over whole projects of other people's habits, each with a known bug that a record mends."""
