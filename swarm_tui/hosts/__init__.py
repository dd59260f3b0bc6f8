"""Machines with agents: their files, processes and terminals, with one protocol for this machine and others."""
