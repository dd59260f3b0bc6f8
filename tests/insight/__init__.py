"""Tests of what the records tell together."""
