"""Tests of conclusions from the records of a sweep."""
