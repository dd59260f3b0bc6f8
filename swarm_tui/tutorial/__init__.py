"""The blocks of a tutorial, the tests that cite them, and where the two differ."""
