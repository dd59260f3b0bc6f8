"""Screen 1: the tests of a sweep."""
