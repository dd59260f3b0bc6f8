"""Tests of the demo: the sample project, its records and the whole sweep."""
