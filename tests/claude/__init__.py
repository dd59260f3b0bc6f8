"""Tests with the real Claude Code and a scripted model, without account and network."""
