"""The doctor, in places with and without what it looks for."""
