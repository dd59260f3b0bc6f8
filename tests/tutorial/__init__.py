"""Tests of blocks, citations and the check that holds them together."""
