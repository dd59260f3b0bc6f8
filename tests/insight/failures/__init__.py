"""Failures of which the cause is known, made by running the tests of small broken projects."""
