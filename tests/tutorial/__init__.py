"""Tests of tutorial blocks, citations and checks."""
