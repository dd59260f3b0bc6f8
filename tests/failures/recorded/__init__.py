"""Failures with a known cause, produced by running the tests of small broken projects."""
