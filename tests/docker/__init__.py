"""Sweeps on containers of a real Docker daemon."""
