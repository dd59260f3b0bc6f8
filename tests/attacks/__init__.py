"""Attacks on the whole program: kills, mutated folders, hostile agents, full disks, a long run."""
