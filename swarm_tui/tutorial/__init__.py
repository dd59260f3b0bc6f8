"""A tutorial's blocks, the tests that cite them, and what does not fit together."""
