"""Tests of the demo: the sample project, the recorded work on it, the whole sweep."""
