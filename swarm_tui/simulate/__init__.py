"""Believable sweeps of any size, played live into a sweep folder by a light process of their own."""
