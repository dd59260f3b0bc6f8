"""What the records of a sweep show together: tests that need a person, patterns of failures, the forecast. Pure."""
